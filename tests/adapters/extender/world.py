"""A small world for the extender: nodes, a gang, and a clock that tests turn by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from extender.answers import NO_ROOM
from extender.applying import apply_allocations
from extender.barrier import Barrier
from extender.model import LAG_S, Model
from extender.releases import Failed, Releases, Unless
from pumice.core.api.core import Node, Pod
from pumice.core.api.scheduling import PodGroup, Queue
from pumice.core.ids import JobKey, PodUid
from pumice.core.ledger import Entry
from pumice.core.plan import Allocate, Placement, Plan, Reason
from pumice.core.steering import Patch

GANG = JobKey("ns/gang")
HELD = [{"name": "pumice.dev/held"}]
VOLCANO_JOB = {
    "kind": "Job",
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "name": "gang",
    "uid": "j",
    "controller": True,
}


def a_node(name: str, cpu: int = 4, **labels: str) -> Node:
    allocatable = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    body = {
        "metadata": {"name": name, "uid": name, "labels": labels},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }
    return msgspec.convert(body, Node)


def a_pod(
    name: str,
    *,
    cpu: str = "1",
    gates: list[dict[str, str]] | None = HELD,
    node: str = "",
    owner: dict[str, Any] | None = VOLCANO_JOB,
    scheduler: str = "volcano",
    group: str = "gang",
    uid: str = "",
    labels: dict[str, str] | None = None,
    spec: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
) -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu} if cpu else {}}}
    body = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": uid or name,
            "resourceVersion": "1",
            "labels": labels or {},
            "annotations": {"scheduling.k8s.io/group-name": group},
            "ownerReferences": [owner] if owner else [],
        },
        "spec": {
            "schedulerName": scheduler,
            "containers": [container],
            "schedulingGates": gates,
            "nodeName": node,
            **(spec or {}),
        },
        "status": status or {},
    }
    return msgspec.convert(body, Pod)


def a_group(minimum: int, name: str = "gang") -> PodGroup:
    body = {
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"minMember": minimum, "queue": "default"},
        "status": {"phase": "Inqueue"},
    }
    return msgspec.convert(body, PodGroup)


@dataclass
class Sent:
    """Patches that were sent; each shows in the cache at once, unless it is held back."""

    model: Model | None = None
    patches: list[tuple[str, Patch]] = field(default_factory=list)
    failures: list[Failed | None] = field(default_factory=list)
    hold_back: bool = False

    def patch(self, pod: Pod, patch: Patch, failed: Failed | None = None) -> None:
        self.patches.append((pod.metadata.name, patch))
        self.failures.append(failed)
        if not self.hold_back:
            self.show(pod, patch)

    def patch_status(self, pod: Pod, patch: Patch, unless: Unless) -> None:
        if not unless():
            self.patch(pod, patch)

    def show(self, pod: Pod, patch: Patch) -> None:
        assert self.model is not None
        stored = self.model.pending.get(PodUid(pod.metadata.uid), pod)
        self.model.set_pod(msgspec.convert(merged(msgspec.to_builtins(stored), patch), Pod))

    def names(self) -> list[str]:
        return [name for name, _ in self.patches]


def merged(target: Any, patch: Any) -> Any:
    """Return what RFC 7386 makes of a merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


@dataclass
class World:
    """The extender's parts without its sockets."""

    model: Model
    sent: Sent
    releases: Releases
    barrier: Barrier
    posted: list[tuple[str, str]] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    time: float = 100.0
    woken: int = 0

    @classmethod
    def make(
        cls,
        *nodes: Node,
        minimum: int = 2,
        pods: tuple[Pod, ...] = (),
        window: int = 1000,
        barrier: bool = True,
    ) -> World:
        model = Model(now=lambda: world.time)
        sent = Sent(model)
        releases = Releases(model, sent, window)

        async def post(entry: Entry, node: str) -> str:
            world.posted.append((entry.name, node))
            return ""

        def refused(uid: PodUid, text: str) -> None:
            world.refused.append((uid, text))
            entry = model.ledger.get(uid)
            if text == NO_ROOM:
                releases.replan(uid, entry.node if entry else "")
            else:
                releases.replace(uid)

        def wake() -> None:
            world.woken += 1

        gate = Barrier(model, post, refused, wake, lambda task: True, enabled=barrier)
        model.watchers.append(gate.look)
        model.listeners += [gate.evaluate, lambda _: releases.pump()]
        world = cls(model, sent, releases, gate)
        model.cluster.set_queue(msgspec.convert({"metadata": {"name": "default"}}, Queue))
        model.cluster.set_pod_group(a_group(minimum))
        for node in nodes:
            model.set_node(node)
        for pod in pods:
            model.set_pod(pod)
        world.time += LAG_S
        return world

    def apply(self, plan: dict[str, str], job: JobKey = GANG) -> tuple[int, int]:
        """Apply a plan of pod -> node; return how many placements held and how many did not."""
        placements = tuple(Placement(PodUid(pod), node) for pod, node in plan.items())
        reason = Reason("allocate", "gang", "")
        decision = Allocate(job, job.split("/")[1], placements, reason)
        applied = apply_allocations(Plan("s1", 0.0, (decision,)), self.model, self.releases)
        return applied.placed, applied.dropped

    def states(self) -> dict[str, tuple[str, str]]:
        return {e.name: (e.state.value, e.node) for e in self.model.ledger}

    def show_bound(self, name: str, node: str) -> None:
        self.model.set_pod(a_pod(name, gates=None, node=node, status={"phase": "Running"}))
