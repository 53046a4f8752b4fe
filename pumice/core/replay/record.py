"""
The record of a session, as JSON.

It holds API objects as they were seen, and besides only what does not follow from them: where a
pod was counted that did not show that itself, and the order of whatever is worked through in order.
The configuration is in it without the section `metrics`, which no session reads and which may hold
a password. Numbers keep every digit, so the tables made of a record are the tables of then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec
import yaml

from pumice.core.api.core import Pod, PriorityClass
from pumice.core.api.scheduling import PodGroup, Queue
from pumice.core.api.topology import HyperNode
from pumice.core.cluster import Cluster
from pumice.core.conf import Configuration
from pumice.core.devices.cards import Offer
from pumice.core.devices.notes import Choice
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.inputs import Inputs
from pumice.core.model.nodes import NodeInfo
from pumice.core.model.snapshots import Snapshot
from pumice.core.model.tasks import Status, Task
from pumice.core.plan import Plan
from pumice.core.replay.answers import Exchange

FORMAT = "pumice.dev/session/v1"


class RecordError(ValueError):
    """The text is no record of a session; says why."""


class SeenNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node, what it offers, in units by row, and its cards."""

    info: NodeInfo
    offers: list[float]
    cards: tuple[Offer, ...] = ()


class SeenPod(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod, and how it was counted."""

    pod: Pod
    status: int
    node: str = ""
    nominated: str = ""
    #: what it holds
    cards: Choice | None = None


class Seen(msgspec.Struct, frozen=True):
    """A snapshot."""

    resources: list[str]
    nodes: list[SeenNode]
    queues: list[Queue]
    priority_classes: list[PriorityClass]
    hypernodes: list[HyperNode]
    groups: list[PodGroup]
    pods: list[SeenPod]
    #: the pods on each node, in order
    residents: dict[str, list[str]]
    #: queues with jobs, in order
    used: list[str]
    active: list[str]
    avoided: dict[str, list[str]]
    spared: list[str]
    label_keys: list[str]
    scheduler_names: list[str]
    default_queue: str
    inputs: Inputs
    faults: dict[str, str]


class Record(msgspec.Struct, frozen=True):
    """All that a session was made of, and what it decided."""

    format: str
    session: str
    now: float
    configuration: str
    seen: Seen
    answers: list[Exchange]
    #: the plan as JSON, byte for byte
    decisions: msgspec.Raw


def record(
    snapshot: Snapshot, conf: Configuration, answers: Sequence[Exchange], plan: Plan
) -> bytes:
    """Return the record of a session."""
    made = Record(
        FORMAT,
        plan.session,
        plan.now,
        _without_metrics(conf.text),
        _seen(snapshot),
        list(answers),
        msgspec.Raw(encode_plan(plan)),
    )
    return msgspec.json.encode(made, enc_hook=str)


def read(text: bytes) -> Record:
    """Return the record that a text holds; raise RecordError where it holds none."""
    try:
        found = msgspec.json.decode(text, type=Record)
    except msgspec.DecodeError as error:
        raise RecordError(f"no record of a session: {error}") from error
    if found.format != FORMAT:
        raise RecordError(f"a record of the form {found.format!r}, not {FORMAT}")
    return found


def encode_plan(plan: Plan) -> bytes:
    """Return a plan as text. Why no node took a pod stands in its note in words alone."""
    groups = tuple(
        msgspec.structs.replace(
            group, pods={uid: replace(note, errors=None) for uid, note in group.pods.items()}
        )
        for group in plan.groups
    )
    deserved = {queue: [float(due) for due in dues] for queue, dues in plan.deserved.items()}
    return msgspec.json.encode(replace(plan, groups=groups, deserved=deserved))


def _without_metrics(text: str) -> str:
    tree = yaml.safe_load(text) or {}
    if "metrics" not in tree:
        return text
    kept = {key: value for key, value in tree.items() if key != "metrics"}
    return str(yaml.safe_dump(kept, sort_keys=False))


def _seen(snapshot: Snapshot) -> Seen:
    table, devices = snapshot.nodes, snapshot.devices
    held = {uid: h.choice for entry in devices.values() for uid, h in entry.holders.items()}
    return Seen(
        resources=list(snapshot.names),
        nodes=[
            SeenNode(
                info,
                table.alloc[:, i].tolist(),
                devices[info.name].offers if info.name in devices else (),
            )
            for i, info in enumerate(table.infos)
        ],
        queues=[info.queue for info in snapshot.queues.values()],
        priority_classes=list(snapshot.priority_classes),
        hypernodes=list(snapshot.hypernodes),
        groups=[job.group for job in snapshot.jobs.values()],
        pods=[
            SeenPod(task.pod, int(task.status), task.node, task.nominated, held.get(task.uid))
            for task in _tasks(snapshot)
        ],
        residents={node: list(tasks) for node, tasks in table.residents.items()},
        used=list(snapshot.usage),
        active=sorted(snapshot.active),
        avoided={job: sorted(nodes) for job, nodes in snapshot.avoided.items()},
        spared=sorted(snapshot.spared),
        label_keys=sorted(snapshot.label_keys),
        scheduler_names=sorted(snapshot.scheduler_names),
        default_queue=snapshot.default_queue,
        inputs=snapshot.inputs,
        faults=dict(snapshot.faults),
    )


def _tasks(snapshot: Snapshot) -> Iterable[Task]:
    """Return every task once, those of jobs first."""
    found = {task.uid: task for job in snapshot.jobs.values() for task in job.tasks.values()}
    for residents in snapshot.nodes.residents.values():
        for uid, task in residents.items():
            found.setdefault(uid, task)
    return found.values()


def snapshot_of(seen: Seen) -> Snapshot:
    """Return the snapshot of a record."""
    cluster = Cluster(
        frozenset(seen.scheduler_names), seen.default_queue, seen.resources, seen.label_keys
    )
    for node in seen.nodes:
        cluster.recall_node(node.info, node.offers, node.cards)
    for queue in seen.queues:
        cluster.set_queue(queue)
    for priority_class in seen.priority_classes:
        cluster.set_priority_class(priority_class)
    for hypernode in seen.hypernodes:
        cluster.set_hypernode(hypernode)
    for group in seen.groups:
        cluster.set_pod_group(group)
    for seen_pod in seen.pods:
        cluster.recall_pod(
            seen_pod.pod,
            Status(seen_pod.status),
            seen_pod.node,
            seen_pod.nominated,
            seen_pod.cards,
        )
    cluster.inputs = seen.inputs
    made = cluster.snapshot(
        {JobKey(job): frozenset(nodes) for job, nodes in seen.avoided.items()},
        frozenset(PodUid(uid) for uid in seen.spared),
    )
    residents = made.nodes.residents
    for name, uids in seen.residents.items():
        residents[name] = {PodUid(uid): residents[name][PodUid(uid)] for uid in uids}
    return replace(
        made,
        usage={queue: made.usage[queue] for queue in seen.used},
        active=frozenset(JobKey(job) for job in seen.active),
        faults=seen.faults,
    )
