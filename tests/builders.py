"""Test worlds in one line each: keyword builders of API objects, and clusters made of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from pumice.core import names
from pumice.core.api.core import (
    Container,
    Node,
    NodeStatus,
    Pod,
    PodSpec,
    PodStatus,
    PriorityClass,
    ResourceRequirements,
    SchedulingGate,
)
from pumice.core.api.meta import ObjectMeta, OwnerReference, Quantity
from pumice.core.api.scheduling import (
    Guarantee,
    NetworkTopology,
    PodGroup,
    PodGroupCondition,
    PodGroupPhase,
    PodGroupSpec,
    PodGroupStatus,
    Queue,
    QueueSpec,
    QueueState,
    QueueStatus,
    SubGroupPolicy,
)
from pumice.core.api.topology import HyperNode
from pumice.core.cluster import Cluster
from pumice.core.conf import FLAGS, Arguments, Configuration, PluginOption
from pumice.core.cycle import run_session
from pumice.core.ids import PodUid
from pumice.core.outside import Ask, nobody
from pumice.core.plan import Plan
from pumice.core.session import Session

Amounts = Mapping[str, Quantity]
_serial = itertools.count()


def amounts(text: str) -> dict[str, Quantity]:
    """Return `"2 4Gi"` as cpu and memory; further words are `name=amount`."""
    plain = [word for word in text.split() if "=" not in word]
    named = dict(word.split("=", 1) for word in text.split() if "=" in word)
    return {**dict(zip(("cpu", "memory"), plain, strict=False)), **named}


def nodes(**sizes: str) -> list[Node]:
    """Return nodes by name, as `n1="2 4Gi"`; each takes 110 pods unless it says otherwise."""
    return [a_node(name, size) for name, size in sizes.items()]


def a_node(name: str, size: str = "4 16Gi", *, labels: Mapping[str, str] | None = None) -> Node:
    return Node(
        metadata=ObjectMeta(name=name, labels={"kubernetes.io/hostname": name, **(labels or {})}),
        status=NodeStatus(allocatable={"pods": "110", **amounts(size)}),
    )


def a_pod(
    name: str,
    asks: str = "1",
    *,
    job: str = "",
    node: str = "",
    phase: str = "",
    role: str = "",
    priority: int | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    gates: Sequence[str] = (),
    created: int = 0,
    deleting: bool = False,
    scheduler: str = names.DEFAULT_SCHEDULER,
    ours: bool = False,
    namespace: str = "ns",
    spec: PodSpec | None = None,
    nominated: str = "",
) -> Pod:
    """Return a pod; one with a node runs unless another phase is given."""
    notes = {**({names.GROUP_NAME: job} if job else {}), **(annotations or {})}
    if role:
        notes[names.TASK_SPEC] = role
    owner = OwnerReference(
        api_version=names.BATCH_API, kind="Job", name=job, uid=f"job-{job}", controller=True
    )
    spec = spec or PodSpec()
    spec.node_name = node
    spec.scheduler_name = scheduler
    spec.priority = priority
    spec.containers = spec.containers or [
        Container(name="main", resources=ResourceRequirements(requests=dict(amounts(asks))))
    ]
    spec.scheduling_gates = [SchedulingGate(name=gate) for gate in gates] or None
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=name,
            labels=dict(labels or {}),
            annotations=notes,
            creation_timestamp=_time(created),
            deletion_timestamp=_time(1) if deleting else None,
            owner_references=[owner] if ours else None,
        ),
        spec=spec,
        status=PodStatus(
            phase=phase or ("Running" if node else "Pending"), nominated_node_name=nominated
        ),
    )


def _time(seconds: int) -> str:
    return f"2026-01-01T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"


def a_group(
    name: str,
    *,
    least: int = 1,
    queue: str = "default",
    phase: PodGroupPhase = "Inqueue",
    roles: Mapping[str, int] | None = None,
    resources: str | None = None,
    priority: str = "",
    policies: Sequence[SubGroupPolicy] = (),
    topology: NetworkTopology | None = None,
    created: int = 0,
    conditions: Sequence[PodGroupCondition] = (),
    namespace: str = "ns",
) -> PodGroup:
    return PodGroup(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"group-{name}",
            creation_timestamp=_time(created),
        ),
        spec=PodGroupSpec(
            min_member=least,
            min_task_member=dict(roles) if roles else None,
            queue=queue,
            priority_class_name=priority,
            min_resources=None if resources is None else dict(amounts(resources)),
            network_topology=topology,
            sub_group_policy=list(policies) or None,
        ),
        status=PodGroupStatus(phase=phase, conditions=list(conditions) or None),
    )


def a_job(
    name: str,
    n: int = 1,
    asks: str = "1",
    *,
    gang: int | None = None,
    queue: str = "default",
    phase: PodGroupPhase = "Inqueue",
    resources: str | None = None,
    priority: str = "",
    created: int | None = None,
    on: Sequence[str] = (),
    role: str = "",
    topology: NetworkTopology | None = None,
) -> list[PodGroup | Pod]:
    """Return a group and its `n` pods `<name>-0`...; those with a node in `on` run there."""
    age = next(_serial) % 3600 if created is None else created
    group = a_group(
        name,
        least=n if gang is None else gang,
        queue=queue,
        phase=phase,
        resources=resources,
        priority=priority,
        topology=topology,
        created=age,
    )
    places = [*on, *[""] * (n - len(on))]
    pods = [
        a_pod(f"{name}-{i}", asks, job=name, node=node, role=role, created=age)
        for i, node in enumerate(places)
    ]
    return [group, *pods]


def a_queue(
    name: str,
    *,
    weight: int = 1,
    priority: int = 0,
    capability: str | None = None,
    guarantee: str | None = None,
    deserved: str | None = None,
    state: QueueState = "Open",
    parent: str = "",
    reclaimable: bool | None = None,
) -> Queue:
    kept = None if guarantee is None else Guarantee(resource=dict(amounts(guarantee)))
    return Queue(
        metadata=ObjectMeta(name=name, uid=f"queue-{name}"),
        spec=QueueSpec(
            weight=weight,
            priority=priority,
            capability=None if capability is None else dict(amounts(capability)),
            guarantee=kept,
            deserved=None if deserved is None else dict(amounts(deserved)),
            parent=parent,
            reclaimable=reclaimable,
        ),
        status=QueueStatus(state=state),
    )


def a_priority_class(name: str, value: int, *, default: bool = False) -> PriorityClass:
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, global_default=default)


def a_hypernode(name: str, tier: int, *members: str, tier_name: str = "") -> HyperNode:
    """Return a HyperNode; a member is a node, or a HyperNode where it begins with `@`."""
    listed = [
        {
            "type": "HyperNode" if member.startswith("@") else "Node",
            "selector": {"exactMatch": {"name": member.removeprefix("@")}},
        }
        for member in members
    ]
    spec = {"tier": tier, "tierName": tier_name, "members": listed or None}
    return msgspec.convert({"metadata": {"name": name, "uid": name}, "spec": spec}, HyperNode)


def hypernodes(**members: str) -> list[HyperNode]:
    """Return HyperNodes by name, as `s0="1 n1 n2", s1="2 @s0"`: the tier, then the members."""
    words = {name: text.split() for name, text in members.items()}
    return [a_hypernode(name, int(tier), *rest) for name, (tier, *rest) in words.items()]


def within(tier: int | str, mode: Literal["hard", "soft"] = "hard") -> NetworkTopology:
    """Return a bound by the number of a tier or by its name."""
    if isinstance(tier, str):
        return NetworkTopology(mode, highest_tier_name=tier)
    return NetworkTopology(mode, highest_tier_allowed=tier)


SOFT = NetworkTopology("soft")

Thing = Node | Pod | PodGroup | Queue | PriorityClass | HyperNode


def a_cluster(
    *things: Thing | Iterable[Thing], assumed: Mapping[str, str] | None = None
) -> Cluster:
    """Return a cluster that has seen these objects, and a queue `default` unless one is given."""
    cluster = Cluster()
    flat = [*_flatten(things)]
    if not any(isinstance(thing, Queue) for thing in flat):
        flat.append(a_queue("default"))
    for thing in flat:
        show(cluster, thing)
    for uid, node in (assumed or {}).items():
        cluster.assume(PodUid(uid), node)
    return cluster


def show(cluster: Cluster, thing: Thing) -> None:
    """Let the cluster see an object."""
    match thing:
        case Node():
            cluster.set_node(thing)
        case Pod():
            cluster.set_pod(thing)
        case PodGroup():
            cluster.set_pod_group(thing)
        case Queue():
            cluster.set_queue(thing)
        case PriorityClass():
            cluster.set_priority_class(thing)
        case HyperNode():
            cluster.set_hypernode(thing)


def _flatten(things: Iterable[Thing | Iterable[Thing]]) -> Iterable[Thing]:
    for thing in things:
        if isinstance(thing, Thing):
            yield thing
        else:
            yield from thing


ALL_FLAGS = frozenset(FLAGS)
DEFAULT_FLAGS = frozenset(flag for flag, on in FLAGS.items() if on)


def a_plugin(name: str, *flags: str, **arguments: object) -> PluginOption:
    """Return a plugin with exactly these flags, or the default ones if none are named."""
    args = {key.replace("__", "."): value for key, value in arguments.items()}
    return PluginOption(name, frozenset(flags) or DEFAULT_FLAGS, Arguments(args))


def a_conf(actions: str, *tiers: Sequence[PluginOption | str]) -> Configuration:
    """Return a configuration; a plugin given by its name alone has the default flags."""
    return Configuration(
        tuple(actions.split()),
        tuple(
            tuple(p if isinstance(p, PluginOption) else a_plugin(p) for p in tier) for tier in tiers
        ),
    )


def a_session(
    conf: Configuration, cluster: Cluster, *, now: float = 0.0, ask: Ask = nobody
) -> Session:
    """Return an open session."""
    ssn = Session(cluster.snapshot(), conf, now, "session-1", ask=ask)
    ssn.open()
    return ssn


def a_plan(conf: Configuration, *things: Thing | Iterable[Thing]) -> Plan:
    """Return what a session over these objects decides."""
    return run_session(a_cluster(*things).snapshot(), conf, 0.0, "session-1")


def placements(plan: Plan) -> dict[str, str]:
    """Return what was decided as pod -> node."""
    return {p.uid: p.node for a in plan.allocations for p in a.placements}


def phases(plan: Plan) -> dict[str, str]:
    """Return the phases of the groups that were looked at, by name."""
    return {group.job.split("/")[1]: group.phase for group in plan.groups}


def waits(plan: Plan) -> dict[str, str]:
    """Return the messages of Unschedulable conditions that this session wrote, by group."""
    return {
        group.job.split("/")[1]: condition.message
        for group in plan.groups
        for condition in group.conditions
        if condition.type == "Unschedulable" and group.unschedulable
    }
