"""A cluster that lives by its sessions: pods start, are evicted, leave, and are made anew."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pumice.core.api.core import Pod, PodSpec, PodStatus
from pumice.core.cluster import Cluster
from pumice.core.conf import Configuration
from pumice.core.cycle import run_session
from pumice.core.ids import JobKey, PodUid
from pumice.core.plan import Plan
from tests.builders import Thing, a_cluster, show

replace = msgspec.structs.replace


class Life:
    """A cluster, and who plays API server, controllers and kubelets in it."""

    def __init__(self, conf: Configuration, *things: Thing | Iterable[Thing]) -> None:
        self.conf = conf
        self.cluster: Cluster = a_cluster(*things)
        #: pods on their way out
        self.leaving: list[PodUid] = []
        #: everybody who was ever evicted, with the node
        self.evicted: list[tuple[str, str]] = []
        #: job -> node to be avoided; pods that could not be evicted
        self.avoided: dict[str, str] = {}
        self.spared: set[str] = set()
        self._sessions = 0

    def session(self) -> Plan:
        """Decide, and do what was decided; whoever is evicted stays until `let_go`."""
        self._sessions += 1
        avoided = {JobKey(f"ns/{job}"): frozenset([node]) for job, node in self.avoided.items()}
        snapshot = self.cluster.snapshot(avoided, frozenset(map(PodUid, self.spared)))
        plan = run_session(snapshot, self.conf, 0.0, f"s{self._sessions}")
        for allocation in plan.allocations:
            for placement in allocation.placements:
                self._start(placement.uid, placement.node)
        for eviction in plan.evictions:
            for claim in eviction.claims:
                pod = self._pod(claim.uid)
                status = replace(pod.status, nominated_node_name=claim.node)
                self.cluster.set_pod(replace(pod, status=status))
            for victim in eviction.victims:
                self._send_off(victim.uid)
        assert self.cluster.check() == []
        return plan

    def let_go(self) -> None:
        """Let who was evicted be gone, and another wait in its place."""
        for uid in self.leaving:
            old = self._pod(uid)
            self.cluster.remove_pod(uid)
            meta = replace(old.metadata, uid=f"{uid}'", name=f"{uid}'", deletion_timestamp=None)
            spec: PodSpec = replace(old.spec, node_name="")
            self.cluster.set_pod(Pod(metadata=meta, spec=spec, status=PodStatus(phase="Pending")))
        self.leaving.clear()

    def settle(self, rounds: int = 8) -> int:
        """Go on until nothing more is decided; return how many rounds it took."""
        for number in range(rounds):
            plan = self.session()
            if not (plan.allocations or plan.evictions):
                return number
            self.let_go()
        raise AssertionError(f"still at it after {rounds} rounds: {self.evicted}")

    def finish(self, uid: str) -> None:
        """Let a pod succeed."""
        pod = self._pod(PodUid(uid))
        self.cluster.set_pod(replace(pod, status=replace(pod.status, phase="Succeeded")))

    def add(self, *things: Thing | Iterable[Thing]) -> None:
        """Let more things come."""
        for thing in things:
            for one in [thing] if isinstance(thing, Thing) else thing:
                show(self.cluster, one)

    def where(self, job: str) -> dict[str, str]:
        """Return the pods of a job that have a node, and are not on their way off it."""
        return {
            pod.metadata.name: pod.spec.node_name
            for pod in self.cluster.pods.values()
            if pod.metadata.name.startswith(f"{job}-")
            and pod.spec.node_name
            and pod.status.phase == "Running"
            and not pod.metadata.deletion_timestamp
        }

    def gone(self, job: str) -> list[str]:
        """Return the pods of a job that were evicted."""
        return [name for name, _ in self.evicted if name.startswith(f"{job}-")]

    def _pod(self, uid: PodUid) -> Pod:
        return self.cluster.pods[uid]

    def _start(self, uid: PodUid, node: str) -> None:
        pod = self._pod(uid)
        spec = replace(pod.spec, node_name=node, scheduling_gates=None)
        self.cluster.set_pod(replace(pod, spec=spec, status=PodStatus(phase="Running")))

    def _send_off(self, uid: PodUid) -> None:
        pod = self._pod(uid)
        self.leaving.append(uid)
        self.evicted.append((uid, pod.spec.node_name))
        meta = replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:01Z")
        self.cluster.set_pod(replace(pod, metadata=meta))
