"""Rows of eviction tables: a world, who goes in one session, and where the others are promised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pumice.core.api.core import Affinity, Pod, PodSpec
from pumice.core.api.scheduling import PodGroup, PodGroupPhase
from pumice.core.catalog import action_named
from pumice.core.conf import Configuration
from pumice.core.model.tasks import Status
from pumice.core.names import GROUP_NAME, PREEMPTABLE
from pumice.core.plan import Plan
from tests.builders import a_cluster, a_group, a_pod, a_session
from tests.unit.oracles.cases import World


@dataclass(frozen=True)
class Case:
    """What is there; who is evicted; of the groups that the row is about, the promised nodes."""

    world: World
    evicted: Sequence[str] = ()
    promised: Mapping[str, Iterable[str]] = field(default_factory=dict)


def evicted(plan: Plan) -> list[str]:
    """Return who is to go, by name."""
    return sorted(victim.uid for decision in plan.evictions for victim in decision.victims)


def check(case: Case, conf: Configuration) -> None:
    """Run one session, and compare who goes and who is promised room."""
    cluster = a_cluster(*case.world)
    assert not cluster.faults
    ssn = a_session(conf, cluster)
    for name in conf.actions:
        build = action_named(name)
        assert build is not None
        build().execute(ssn)
    assert evicted(ssn.close()) == sorted(case.evicted)
    got = {
        job.name: {t.node for t in job.tasks.values() if t.status is Status.PIPELINED}
        for job in ssn.active
    }
    assert {name: got[name] for name in case.promised} == {
        name: set(nodes) for name, nodes in case.promised.items()
    }


def a_job(
    name: str,
    pods: Sequence[Pod],
    *,
    gang: int = 1,
    priority: str = "",
    queue: str = "default",
    roles: int | None = None,
    phase: PodGroupPhase = "Inqueue",
) -> list[PodGroup | Pod]:
    """Return a group of these pods; `roles` is the minimum of pods without a role."""
    group = a_group(
        name,
        least=gang,
        queue=queue,
        priority=priority,
        phase=phase,
        roles=None if roles is None else {"": roles},
    )
    for pod in pods:
        pod.metadata.annotations = {**(pod.metadata.annotations or {}), GROUP_NAME: name}
    return [group, *pods]


def runs(
    name: str,
    asks: str = "1 1G",
    *,
    on: str = "n",
    stays: bool = False,
    priority: int | None = None,
    apart: Affinity | None = None,
) -> Pod:
    """Return a pod that runs; one that `stays` may not be evicted."""
    labels = {"app": "apart"} if apart else {}
    notes = {PREEMPTABLE: "false" if stays else "true"}
    spec = PodSpec(affinity=apart)
    return a_pod(
        name, asks, node=on, annotations=notes, labels=labels, priority=priority, spec=spec
    )


def waits(
    name: str, asks: str = "1 1G", *, policy: str | None = None, apart: Affinity | None = None
) -> Pod:
    """Return a pod that waits."""
    labels = {"app": "apart"} if apart else {}
    return a_pod(name, asks, labels=labels, spec=PodSpec(preemption_policy=policy, affinity=apart))
