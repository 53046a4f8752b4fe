"""
The kubelets of all nodes, played by one thread.

A bound pod runs and is ready at once, never ends, and goes at once when it is deleted; rules say
otherwise for the pods that they select. KWOK has none of these rules and takes a second for a
deletion, so the nodes of a case are not marked for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Literal

from pumice.local.api import STRATEGIC_PATCH, Api, Object
from pumice.local.errors import ApiError
from tests.cases import podfacts
from tests.cases.moment import Moment
from tests.cases.podstatus import status
from tests.cases.schema import Mode
from tests.cases.selection import Selection

WRITERS = 8
RUNS_S = 3.0
TERMINATES_S = 20.0
RETRY_S = 0.5
Act = Literal["start", "start unready", "end", "remove"]


@dataclass(frozen=True, slots=True)
class Rule:
    """How pods are treated from a time on."""

    select: Selection
    mode: Mode
    since: float


@dataclass(frozen=True, slots=True)
class Duty:
    """What is to be done with a pod, and when."""

    act: Act
    due: float


def duty(pod: Object, rule: Rule | None, since: Mapping[str, float]) -> Duty | None:
    """
    Return what is next to be done with a bound pod, None where nothing is.

    `since` says from when on it has been `bound`, `terminating` or in its phase.
    """
    mode = rule.mode if rule else "run"
    phase = podfacts.phase(pod)
    if podfacts.is_terminating(pod):
        takes = TERMINATES_S if mode == "terminateAfter20s" else 0.0
        return Duty("remove", since["terminating"] + takes)
    if phase == "Pending" and mode != "neverStart":
        return Duty("start unready" if mode == "runNotReady" else "start", since["bound"])
    if phase == "Running" and rule and mode == "succeedAfter3s":
        return Duty("end", max(since["Running"], rule.since) + RUNS_S)
    return None


class Kubelet:
    """Does the duties; `scene` returns what is watched, with `changed` held."""

    def __init__(self, api: Api, changed: threading.Condition, scene: Callable[[], Moment]) -> None:
        self._api = api
        self._changed = changed
        self._scene = scene
        self._rules: list[Rule] = []
        self._since: dict[str, dict[str, float]] = {}
        self._done: set[tuple[str, Act]] = set()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="kubelet", daemon=True)

    def start(self) -> None:
        """Start playing."""
        self._thread.start()

    def stop(self) -> None:
        """Stop playing."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()

    def treat(self, select: Selection, mode: Mode) -> None:
        """From now on treat the selected pods like this."""
        with self._changed:
            self._rules.append(Rule(select, mode, monotonic()))
            self._changed.notify_all()

    def _run(self) -> None:
        with ThreadPoolExecutor(WRITERS) as pool:
            while (due := self._wait()) is not None:
                list(pool.map(self._do, due))

    def _wait(self) -> list[tuple[Object, Act]] | None:
        """Wait until something is due and return it; None at the end."""
        with self._changed:
            while not self._stopping:
                now = monotonic()
                found = list(self._duties(now))
                due = [(pod, duty.act) for pod, duty in found if duty.due <= now]
                if due:
                    return due
                self._changed.wait(min((d.due - now for _, d in found), default=None))
        return None

    def _duties(self, now: float) -> Iterator[tuple[Object, Duty]]:
        scene = self._scene()
        for pod in scene.pods.values():
            if podfacts.node(pod) not in scene.nodes:
                continue
            uid = pod["metadata"]["uid"]
            found = duty(pod, self._rule(pod, scene), self._noted(pod, now))
            if found and (uid, found.act) not in self._done:
                yield pod, found

    def _noted(self, pod: Object, now: float) -> dict[str, float]:
        """Return since when the pod has been as it is, by this look or an earlier one."""
        since = self._since.setdefault(pod["metadata"]["uid"], {"bound": now})
        since.setdefault(podfacts.phase(pod), now)
        if podfacts.is_terminating(pod):
            since.setdefault("terminating", now)
        return since

    def _rule(self, pod: Object, scene: Moment) -> Rule | None:
        """Return the rule for a pod: the last one that selects it."""
        fitting = (rule for rule in reversed(self._rules) if rule.select.picks(pod, scene))
        return next(fitting, None)

    def _do(self, task: tuple[Object, Act]) -> None:
        """Do it once; a pod that is gone or another one by now needs nothing more."""
        pod, act = task
        mark = (pod["metadata"]["uid"], act)
        self._done.add(mark)
        try:
            self._send(pod, act)
        except (ApiError, OSError) as error:
            if not isinstance(error, ApiError) or error.status not in (404, 409):
                self._done.discard(mark)
                sleep(RETRY_S)

    def _send(self, pod: Object, act: Act) -> None:
        path = podfacts.path(pod)
        if act == "remove":
            only = {"uid": pod["metadata"]["uid"]}
            self._api.delete(path, {"gracePeriodSeconds": 0, "preconditions": only})
            return
        phase = "Succeeded" if act == "end" else "Running"
        patch = status(pod, phase, ready=act == "start")
        self._api.patch(f"{path}/status", patch, STRATEGIC_PATCH)
