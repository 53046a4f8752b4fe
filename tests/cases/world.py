"""
The cluster that a case runs on, and what is seen of it.

Everything that a case touches is reached from here: the API, what the watches have seen so far,
the components and the kubelets. Whoever waits does it by `wait` or `tick`, which keep the
components alive meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from time import monotonic

from pumice.core import names
from pumice.local.api import Object
from pumice.local.cluster import Cluster
from pumice.local.errors import ApiError
from pumice.local.watching import Watched, key_of
from tests.cases.components import Components
from tests.cases.errors import StepError
from tests.cases.kinds import RECORDED, Kinds
from tests.cases.kubelet import Kubelet
from tests.cases.moment import Moment, is_group
from tests.cases.record import Record
from tests.cases.removals import Removals
from tests.cases.settling import Pulses

COLLECTIONS = {
    "pods": "/api/v1/pods",
    "jobs": f"/apis/{names.BATCH_API}/jobs",
    "groups": f"/apis/{names.SCHEDULING_API}/podgroups",
    "queues": f"/apis/{names.SCHEDULING_API}/queues",
    "nodes": "/api/v1/nodes",
}
"""The parts of a moment."""
TICK_S = 0.5


class World:
    """A running cluster; a context manager that watches while it is entered."""

    def __init__(self, cluster: Cluster, listed: Mapping[str, Object]) -> None:
        self.cluster = cluster
        self.api = cluster.plane.api
        self.changed = threading.Condition()
        self._watched = {
            part: Watched(self.api, path, changed=self.changed, keep_history=True)
            for part, path in COLLECTIONS.items()
        }
        history = {part: watched.history for part, watched in self._watched.items()}
        self.record = Record(history["pods"], history["jobs"], history["groups"])
        self.kinds = Kinds(self.api, listed)
        self.components = Components(cluster, self.record.revivals)
        self.kubelet = Kubelet(cluster.plane.api_as("kubelet"), self.changed, self.seen)
        self.pulses = Pulses(*(history[part] for part in ("pods", "jobs", "groups", "queues")))
        self._removals = Removals(cluster.plane.audit_log, self.record)

    def __enter__(self) -> World:
        for watched in self._watched.values():
            watched.start()
        self.kubelet.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kubelet.stop()
        for watched in self._watched.values():
            watched.stop()

    def seen(self) -> Moment:
        """Return what the watches show; it may be some milliseconds old."""
        return Moment(monotonic(), **{part: dict(w.items()) for part, w in self._watched.items()})

    def moment(self, refs: Iterable[str] = ()) -> Moment:
        """Return all there is now, with the further objects that are referred to."""
        parts = {
            part: {key_of(item): item for item in self.api.get(path)["items"]}
            for part, path in COLLECTIONS.items()
        }
        others = {ref: self.get(ref) for ref in refs if self._is_other(ref)}
        with self.changed:
            self._removals.read()
        return Moment(monotonic(), **parts, others=others)

    def get(self, ref: str) -> Object | None:
        """Return the object that is referred to by kind and name, as it is now."""
        return self.get_path(self.kinds.path(ref))

    def get_path(self, path: str) -> Object | None:
        """Return what is at a path, None where nothing is."""
        try:
            found: Object = self.api.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return None
        return found

    def wait(self, check: Callable[[], object], timeout_s: float) -> bool:
        """Wait until the check holds; return whether it did in time."""
        deadline = monotonic() + timeout_s
        while not check():
            if monotonic() > deadline:
                return False
            self.tick()
        return True

    def must(self, check: Callable[[], object], timeout_s: float, what: str) -> None:
        """Wait until the check holds; raise StepError where it does not in time."""
        if not self.wait(check, timeout_s):
            raise StepError(f"not within {timeout_s:g} s: {what}")

    def tick(self, seconds: float = TICK_S) -> None:
        """Let time pass, less where something changes meanwhile."""
        self.components.revive()
        with self.changed:
            self.changed.wait(seconds)

    def _is_other(self, ref: str) -> bool:
        return not is_group(ref) and self.kinds.named(ref).everywhere not in RECORDED
