"""
Figures of a run: who wrote what until the pods were bound, and when each gang was bound.

A write is a create, update, patch, delete, binding or eviction that one of our components or
kube-scheduler sends; Events and Leases are counted apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.auditor.facts import Pod, Request
from tests.auditor.history import History, Settings
from tests.auditor.rules.room import excesses

APART = frozenset({"events", "leases"})


@dataclass(frozen=True, slots=True)
class Binding:
    """A pod of ours that was bound: where, by whom, when the API server had done it."""

    pod: str
    uid: str
    gang: str
    node: str
    user: str
    at: float


@dataclass(frozen=True, slots=True)
class GangTimes:
    """When a gang's first pod was made, its first and its last pod bound, and how many."""

    created: float
    first_bound: float
    last_bound: float
    bound: int
    minimum: int

    @property
    def spread_s(self) -> float:
        """From the first binding to the last."""
        return self.last_bound - self.first_bound


@dataclass(frozen=True, slots=True)
class Writes:
    """
    Writes by "user verb resource".

    `until_bound` counts those from the first creation of a pod to the last binding.
    """

    until_bound: dict[str, int] = field(default_factory=dict)
    all: dict[str, int] = field(default_factory=dict)
    apart: dict[str, int] = field(default_factory=dict)
    on_pods_until_bound: int = 0


@dataclass(frozen=True, slots=True)
class Statistics:
    """
    All figures; `writes_per_pod` is None while nothing was bound.

    `over_commitments` counts bindings, by anyone, that overfilled a node, once for each resource;
    `error_answers` is what the extender said last, None when it said nothing.
    """

    pods_created: int = 0
    pods_bound: int = 0
    refused_bindings: int = 0
    over_commitments: int = 0
    error_answers: int | None = None
    writes_per_pod: float | None = None
    writes: Writes = field(default_factory=Writes)
    bindings: list[Binding] = field(default_factory=list)
    gangs: dict[str, GangTimes] = field(default_factory=dict)


def statistics(history: History, settings: Settings) -> Statistics:
    """Return the figures of a run."""
    pods = {u: p for u, p in history.pods_by_uid().items() if p.scheduler in settings.schedulers}
    bindings = _bindings(history, pods)
    writes = _writes(history, settings, pods, bindings)
    ours_refused = (r for r in history.requests if r.binds and not r.succeeded)
    return Statistics(
        pods_created=len(pods),
        pods_bound=len(bindings),
        refused_bindings=sum(history.uid_of(r) in pods for r in ours_refused),
        over_commitments=sum(1 for _ in excesses(history, settings)),
        error_answers=history.error_answers,
        writes_per_pod=sum(writes.until_bound.values()) / len(bindings) if bindings else None,
        writes=writes,
        bindings=bindings,
        gangs=_gangs(history, pods, bindings),
    )


def _bindings(history: History, pods: dict[str, Pod]) -> list[Binding]:
    return [
        Binding(pods[uid].key, uid, _gang_of(pods[uid]), r.node, r.user, r.done)
        for uid, r in history.bindings().items()
        if uid in pods
    ]


def _gang_of(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.group}" if pod.group else ""


def _writes(
    history: History, settings: Settings, pods: dict[str, Pod], bindings: list[Binding]
) -> Writes:
    counted = [
        r for r in history.requests if settings.is_own(r.user) or r.user in settings.scheduler_users
    ]
    ordinary = [r for r in counted if r.resource not in APART]
    creations = (r.at for r in history.requests if (r.verb, r.what) == ("create", "pods"))
    first = min(creations, default=0.0)
    last = max((binding.at for binding in bindings), default=0.0)
    bound_at = {binding.uid: binding.at for binding in bindings}
    on_pods = (r for r in ordinary if r.resource in ("pods", "bindings"))
    return Writes(
        until_bound=_table(r for r in ordinary if first <= r.at <= last),
        all=_table(ordinary),
        apart=_table(r for r in counted if r.resource in APART),
        on_pods_until_bound=sum(r.at <= bound_at.get(history.uid_of(r), 0.0) for r in on_pods),
    )


def _table(requests: Iterable[Request]) -> dict[str, int]:
    counts = Counter(f"{r.user} {r.verb} {r.what}" for r in requests)
    return dict(sorted(counts.items()))


def _gangs(history: History, pods: dict[str, Pod], bindings: list[Binding]) -> dict[str, GangTimes]:
    minima = {seen.object.key: seen.object.minimum for seen in history.gangs}
    created: dict[str, float] = {}
    for seen in history.pods:
        if seen.object.uid in pods:
            created.setdefault(_gang_of(seen.object), seen.at)
    times: dict[str, list[float]] = defaultdict(list)
    for binding in bindings:
        if binding.gang:
            times[binding.gang].append(binding.at)
    return {
        gang: GangTimes(created.get(gang, 0.0), min(at), max(at), len(at), minima.get(gang, 0))
        for gang, at in sorted(times.items())
    }
