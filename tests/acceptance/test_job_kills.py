"""
The controllers are killed again and again while Jobs of all kinds live: all end as they would.

Every Job has one of the lives below. They are lived twice, in two namespaces: once undisturbed,
once with controllers that are killed at random moments of every step. What is left must be equal.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pytest

from tests.acceptance.bed import Bed, label
from tests.acceptance.length import Length
from tests.acceptance.lives import command, commands
from tests.acceptance.objects import Object, a_job, a_task

pytestmark = pytest.mark.cluster

SIZE = 3
STEPS = 4
OBEYED_S = 20.0
PATIENCE_S = 180.0
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs"
PODS = "/api/v1/namespaces/{}/pods"
OF_PLUGINS = (
    "/api/v1/namespaces/{}/configmaps",
    "/api/v1/namespaces/{}/services",
    "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
)
DIFFERS = ("version", "runningDuration")
"""What of a status counts kills and seconds."""


@dataclass(frozen=True)
class Seen:
    """A Job, its pods, and the uid that its first pod had when all ran for the first time."""

    job: Object
    pods: Sequence[Object]
    first: str

    def __str__(self) -> str:
        pods = (
            f"{pod['metadata']['name']} {pod['status'].get('phase')}"
            f" {pod['metadata'].get('deletionTimestamp', '')} {pod['metadata'].get('annotations')}"
            for pod in self.pods
        )
        return "\n    ".join([str(self.status), *pods])

    @property
    def status(self) -> Object:
        found: Object = self.job.get("status", {})
        return found

    @property
    def phase(self) -> str:
        return str(self.status.get("state", {}).get("phase", ""))

    @property
    def running(self) -> list[Object]:
        return [
            pod
            for pod in self.pods
            if pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
        ]

    def runs(self, retries: int = 0) -> bool:
        """Tell whether it runs whole."""
        status = self.status
        counted = (status.get("running", 0), status.get("retryCount", 0))
        whole = len(self.running) == len(self.pods) == SIZE
        return self.phase == "Running" and counted == (SIZE, retries) and whole

    def runs_anew(self, retries: int) -> bool:
        """Tell whether it runs whole, with another pod in the place of its first."""
        uids = {pod["metadata"]["uid"] for pod in self.pods}
        return self.runs(retries) and self.first not in uids

    def is_over(self, phase: str) -> bool:
        """Tell whether it has come to an end, and so have its pods."""
        return self.phase == phase and not any(
            pod["status"].get("phase") in ("Pending", "Running") for pod in self.pods
        )


@dataclass(frozen=True)
class Step:
    """What happens to a Job, and what is to come of it."""

    happens: Callable[[Bed, Seen], None]
    comes_true: Callable[[Seen], bool]
    #: an order to the controllers, who may die between taking it and obeying it
    is_order: bool = False


def fail_one(bed: Bed, seen: Seen) -> None:
    bed.end(seen.running[0], code=3)


def fail_all(bed: Bed, seen: Seen) -> None:
    bed.end(*seen.running, code=1)


def delete_one(bed: Bed, seen: Seen) -> None:
    bed.delete(seen.running[0])


def end_first_task(bed: Bed, seen: Seen) -> None:
    bed.end(seen.running[0])


def end(bed: Bed, seen: Seen) -> None:
    bed.end(*seen.running)


def order(action: str, comes_true: Callable[[Seen], bool]) -> Step:
    def send(bed: Bed, seen: Seen) -> None:
        command(bed, seen.job["metadata"]["name"], action)

    return Step(send, comes_true, is_order=True)


def over(phase: str) -> Callable[[Seen], bool]:
    return lambda seen: seen.is_over(phase)


def anew(retries: int) -> Callable[[Seen], bool]:
    return lambda seen: seen.runs_anew(retries)


ENDS = Step(end, over("Completed"))
#: by name: the event and the action of the Job's policy, and what happens once it runs
LIVES: Mapping[str, tuple[Sequence[str], Sequence[Step]]] = {
    "runs": ((), [ENDS]),
    "restarts": (("PodFailed", "RestartJob"), [Step(fail_one, anew(1)), ENDS]),
    "restarts-task": (("PodFailed", "RestartTask"), [Step(fail_one, anew(1)), ENDS]),
    "restarts-pod": (("PodFailed", "RestartPod"), [Step(fail_one, anew(1)), ENDS]),
    "loses-pod": ((), [Step(delete_one, anew(0)), ENDS]),
    "is-restarted": ((), [order("RestartJob", anew(1)), ENDS]),
    "rests": ((), [order("AbortJob", over("Aborted")), order("ResumeJob", anew(1)), ENDS]),
    "is-aborted": ((), [order("AbortJob", over("Aborted"))]),
    "is-terminated": (("PodFailed", "TerminateJob"), [Step(fail_one, over("Terminated"))]),
    "fails": ((), [Step(fail_all, over("Failed"))]),
    "has-enough": (
        ("TaskCompleted", "CompleteJob"), [Step(end_first_task, over("Completed"))]
    ),
}  # fmt: skip


class Lives:
    """Jobs of all kinds in the bed's namespace."""

    def __init__(self, bed: Bed, of_each: int, kill: Callable[[], None]) -> None:
        self.bed = bed
        self._kill = kill
        self._lives = {f"{kind}-{i}": LIVES[kind] for i in range(of_each) for kind in LIVES}
        self._first: dict[str, str] = {}
        #: all as they were before the present step
        self._before: dict[str, Seen] = {}

    def live(self) -> dict[str, Object]:
        """Let all live to their ends; return what is left of each."""
        bodies = [body(name, *policy) for name, (policy, _) in self._lives.items()]
        self.bed.create_many(bodies)
        self._kill()
        self._wait(dict.fromkeys(self._lives, Seen.runs), PATIENCE_S)
        self._first = {name: first_uid(seen) for name, seen in self._seen().items()}
        for number in range(STEPS - 1):
            steps = {n: life[number] for n, (_, life) in self._lives.items() if life[number:]}
            self._go_through(steps)
        bed = self.bed
        bed.wait_for(lambda: not groups(bed), PATIENCE_S, "no PodGroup is left")
        assert (commands(bed), left_of_plugins(bed)) == ([], [])
        return {name: picture(seen) for name, seen in self._left().items()}

    def _go_through(self, steps: Mapping[str, Step]) -> None:
        """Let one thing happen to each, and wait for what comes of it."""
        self._happen(steps)
        self._kill()
        wanted = {name: step.comes_true for name, step in steps.items()}
        try:
            self._wait(wanted, OBEYED_S)
        except TimeoutError:
            # Whoever took an order may have died before it obeyed.
            assert commands(self.bed) == []
            seen = self._seen()
            lost = {
                name: step
                for name, step in steps.items()
                if step.is_order and seen[name].status == self._before[name].status
            }
            self._happen(lost)
            self._wait(wanted, PATIENCE_S)

    def _happen(self, steps: Mapping[str, Step]) -> None:
        self._before = self._seen()
        for name, step in steps.items():
            step.happens(self.bed, self._before[name])

    def _wait(self, wanted: Mapping[str, Callable[[Seen], bool]], timeout_s: float) -> None:
        def missing() -> list[str]:
            seen = self._seen()
            return [name for name, holds in wanted.items() if not holds(seen[name])]

        try:
            self.bed.wait_for(lambda: not missing(), timeout_s)
        except TimeoutError as error:
            seen = self._seen()
            states = [f"{name}: {seen[name]}" for name in missing()]
            raise TimeoutError("\n".join([str(error), *states])) from None

    def _seen(self) -> dict[str, Seen]:
        """Return all as they are seen now."""
        return self._named(self.bed.jobs.values(), self.bed.pods.values())

    def _left(self) -> dict[str, Seen]:
        """Ask the server for all; what is seen may be a moment behind."""
        jobs, pods = (
            self.bed.api.get(path.format(self.bed.namespace))["items"] for path in (JOBS, PODS)
        )
        return self._named(jobs, pods)

    def _named(self, jobs: Iterable[Object], pods: Iterable[Object]) -> dict[str, Seen]:
        found = {job["metadata"]["name"]: job for job in self._mine(jobs)}
        by_job = defaultdict(list)
        for pod in self._mine(pods):
            by_job[label(pod, "volcano.sh/job-name")].append(pod)
        return {
            name: Seen(found.get(name, {}), by_name(by_job[name]), self._first.get(name, ""))
            for name in self._lives
        }

    def _mine(self, objects: Iterable[Object]) -> Iterable[Object]:
        return (obj for obj in objects if obj["metadata"]["namespace"] == self.bed.namespace)


def body(name: str, event: str = "", action: str = "") -> Object:
    tasks = a_task("first"), a_task("second", SIZE - 1)
    policies = [{"event": event, "action": action}] if event else []
    job = a_job(name, *tasks, policies=policies, min_available=SIZE)
    job["spec"]["plugins"] = {"svc": []}
    return job


def by_name(pods: Iterable[Object]) -> list[Object]:
    return sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))


def first_uid(seen: Seen) -> str:
    return str(seen.pods[0]["metadata"]["uid"])


def picture(seen: Seen) -> Object:
    """Return what is left of a Job, but for what counts kills and seconds."""
    status = {key: value for key, value in seen.status.items() if key not in DIFFERS}
    status["state"] = seen.phase
    status["conditions"] = [condition["status"] for condition in status["conditions"]]
    pods = {pod["metadata"]["name"]: pod["status"].get("phase") for pod in seen.pods}
    return {"status": status, "pods": pods}


def groups(bed: Bed) -> list[Object]:
    found = bed.pod_groups.values()
    return [group for group in found if group["metadata"]["namespace"] == bed.namespace]


def left_of_plugins(bed: Bed) -> list[str]:
    found = (
        item for path in OF_PLUGINS for item in bed.api.get(path.format(bed.namespace))["items"]
    )
    return [item["metadata"]["name"] for item in found if label(item, "volcano.sh/job-name")]


def kill_in_turn(bed: Bed, rng: random.Random, shares: list[int]) -> None:
    """Kill the controllers at random moments, as often as this step has it, and start them."""
    for _ in range(shares.pop()):
        time.sleep(rng.uniform(0.0, 1.0))
        bed.kill("controllers")
        bed.restart("controllers")


def test_jobs_end_the_same_however_often_their_controllers_are_killed(
    bed: Bed, length: Length
) -> None:
    bed.nodes(20, cpu=64)
    want = Lives(bed, length.lives, lambda: None).live()
    bed.namespace = bed.new_namespace()
    shares = [length.kills // STEPS + (i < length.kills % STEPS) for i in range(STEPS)]
    got = Lives(bed, length.lives, partial(kill_in_turn, bed, random.Random(3), shares)).live()

    assert shares == [], "killed in every step"
    assert got == want
