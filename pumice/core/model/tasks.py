"""
Tasks: one for each pod that matters to placement.

A task is an immutable value; when its status changes, a new one takes its place. Tasks that every
predicate and every score treats alike share a `TaskClass`, so masks and scores are computed once
for all of them.

        Pending ──► Allocated ──► Binding ──► Bound ──► Running ──► Succeeded, Failed
           └─────► Pipelined                    └──────────┴─────► Releasing

Allocated and Pipelined exist only within a session. Binding is a pod whose node is decided but
not yet seen on it: for the session it holds its room as a bound one does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final
from weakref import WeakValueDictionary

import msgspec
import numpy as np

from pumice.core import names
from pumice.core.api.core import ContainerStatus, Pod
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.claims import Mount, mounts
from pumice.core.model.signatures import Signature, traits
from pumice.core.requests import pod_requests
from pumice.core.resources import Floats, ResourceSpace, is_empty
from pumice.core.selectors import parse_int64
from pumice.core.timestamps import moment


class Status(IntEnum):
    """Where a task is in its life; the values are bits, so that sets of them are masks."""

    PENDING = 1
    ALLOCATED = 2
    PIPELINED = 4
    BINDING = 8
    BOUND = 16
    RUNNING = 32
    RELEASING = 64
    SUCCEEDED = 128
    FAILED = 256
    UNKNOWN = 512

    @property
    def title(self) -> str:
        """Return the name as it stands in messages."""
        return self.name.capitalize()


ALLOCATED_STATUSES: Final = Status.BOUND | Status.BINDING | Status.RUNNING | Status.ALLOCATED
PREEMPTABLE_STATUSES: Final = Status.BOUND | Status.RUNNING
SCHEDULED_STATUSES: Final = Status.RUNNING | Status.BOUND | Status.FAILED | Status.SUCCEEDED
COMPLETED_STATUSES: Final = Status.FAILED | Status.SUCCEEDED
READY_STATUSES: Final = ALLOCATED_STATUSES | Status.SUCCEEDED
VALID_STATUSES: Final = READY_STATUSES | Status.PIPELINED | Status.PENDING

_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class TaskClass:
    """The tasks that every predicate and score treats alike. Interned: compare by identity."""

    key: tuple[int, bytes]
    #: one row for each resource that was known when the class was made; never changed
    req: Floats
    #: the rows that are asked for
    rows: tuple[int, ...]
    signature: Signature
    best_effort: bool
    #: within a session, one of the tasks, where plugins tell them apart by more than their class
    example: Task | None = None

    def __repr__(self) -> str:
        return f"TaskClass({self.req.tolist()}, {self.signature!r})"

    def asks_like(self, other: TaskClass) -> bool:
        """Return whether both classes ask for the same amounts, whatever else they ask for."""
        return self is other or self.key[1] == other.key[1]


class TaskClasses:
    """The classes in use. A class lives as long as some task, or some session, refers to it."""

    __slots__ = ("_classes",)

    def __init__(self) -> None:
        self._classes: WeakValueDictionary[tuple[int, bytes], TaskClass] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._classes)

    def of(self, req: Floats, signature: Signature) -> TaskClass:
        """Return the class of tasks that ask for `req` under the constraints of `signature`."""
        rows = tuple(np.flatnonzero(req).tolist())
        # Trailing zeros are cut so that a class does not depend on when the space grew.
        req = req[: rows[-1] + 1] if rows else req[:0]
        key = (id(signature), req.tobytes())
        found = self._classes.get(key)
        if found is None:
            found = TaskClass(key, req, rows, signature, is_empty(req))
            self._classes[key] = found
        return found


@dataclass(frozen=True, slots=True)
class Task:
    """One pod. `node` is set in every status that occupies one."""

    uid: PodUid
    namespace: str
    name: str
    #: the group that the pod names, whether or not it exists; None for pods of other schedulers
    job: JobKey | None
    role: str
    cls: TaskClass
    priority: int
    preemptable: bool
    created: float
    status: Status
    node: str
    #: scheduling gates other than our own, which no rule sees
    gates: tuple[str, ...]
    nominated: str
    labels: Mapping[str, str]
    #: the pod belongs to one of our Jobs
    ours: bool
    #: see `pumice.core.model.jobs`
    sub_job: str
    #: name of the pod's priority class; some are never evicted
    priority_class: str = ""
    #: the pod's preemptionPolicy is Never: nothing is evicted for it
    polite: bool = False
    #: the claims that the pod mounts
    claims: tuple[Mount, ...] = ()
    #: as it was last seen, for what few plugins ask
    pod: Pod = field(default_factory=Pod, compare=False, repr=False)

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def occupies(self) -> bool:
        """Return whether the task is charged to its node."""
        return bool(self.node) and not self.status & COMPLETED_STATUSES

    def charges_like(self, other: Task) -> bool:
        """Return whether both are charged to one node, and nobody there can tell them apart."""
        return (
            self.occupies
            and other.occupies
            and self.node == other.node
            and (self.status is Status.RELEASING) is (other.status is Status.RELEASING)
            and self.cls.asks_like(other.cls)
            and self.cls.signature.presence is other.cls.signature.presence
        )

    def at(self, status: Status, node: str) -> Task:
        """Return the task in another status and place."""
        return Task(
            self.uid,
            self.namespace,
            self.name,
            self.job,
            self.role,
            self.cls,
            self.priority,
            self.preemptable,
            self.created,
            status,
            node,
            self.gates,
            self.nominated,
            self.labels,
            self.ours,
            self.sub_job,
            self.priority_class,
            self.polite,
            self.claims,
            self.pod,
        )


def task_order(task: Task) -> tuple[float, float, str]:
    """
    Return the sort key among tasks that no plugin tells apart.

    Names with at least three parts go by the number at their end; then the older one and at
    last the smaller uid is first, as in Volcano.
    """
    parts = task.name.rsplit("-", 2)
    index = float(parts[2]) if len(parts) == 3 and parts[2].isdecimal() else float("inf")
    return (index, task.created, task.uid)


@dataclass(frozen=True, slots=True)
class TaskSource:
    """Makes tasks of pods; holds what is needed besides the pod."""

    space: ResourceSpace
    classes: TaskClasses
    schedulers: frozenset[str]
    #: the classes in use by the wording of their pods: most pods say what another one says
    _read: WeakValueDictionary[bytes, TaskClass] = field(default_factory=WeakValueDictionary)

    def task(self, pod: Pod, label_keys: Collection[str]) -> Task:
        """
        Return the task of a pod; raise QuantityError or SelectorError for a malformed one.

        `label_keys` are those that selectors mention, the pod's own selectors among them.
        """
        meta, spec = pod.metadata, pod.spec
        annotations, labels = meta.annotations or {}, meta.labels or {}
        owner = meta.controller
        return Task(
            uid=PodUid(meta.uid),
            namespace=meta.namespace,
            name=meta.name,
            job=self._job(pod),
            role=annotations.get(names.TASK_SPEC) or labels.get(names.TASK_SPEC, ""),
            cls=self._class(pod, label_keys),
            priority=_priority(pod),
            preemptable=is_preemptable(annotations, labels, default=True),
            created=moment(meta.creation_timestamp),
            status=_status(pod),
            node=spec.node_name,
            gates=tuple(g.name for g in spec.scheduling_gates or () if g.name != names.GATE_HELD),
            nominated=pod.status.nominated_node_name,
            labels=labels,
            ours=owner is not None and owner.kind == "Job" and owner.api_version == names.BATCH_API,
            sub_job="",
            priority_class=spec.priority_class_name,
            polite=spec.preemption_policy == "Never",
            claims=mounts(pod),
            pod=pod,
        )

    def _class(self, pod: Pod, label_keys: Collection[str]) -> TaskClass:
        wording = _wording(pod, label_keys)
        found = self._read.get(wording)
        if found is None:
            req = self.space.of(pod_requests(pod))
            found = self.classes.of(req, Signature.of(pod, label_keys))
            self._read[wording] = found
        return found

    def _job(self, pod: Pod) -> JobKey | None:
        if pod.spec.scheduler_name not in self.schedulers:
            return None
        group = (pod.metadata.annotations or {}).get(names.GROUP_NAME)
        return JobKey(f"{pod.metadata.namespace}/{group}") if group else None


def is_preemptable(
    annotations: Mapping[str, str], labels: Mapping[str, str], *, default: bool
) -> bool:
    """Return what an object says about its eviction; what is neither true nor false is false."""
    text = annotations.get(names.PREEMPTABLE, labels.get(names.PREEMPTABLE))
    return default if text is None else text in ("1", "t", "T", "TRUE", "true", "True")


def _wording(pod: Pod, label_keys: Collection[str]) -> bytes:
    """
    Return the text of all that decides a pod's class.

    Pods that say the same in other words, or in another order, may be of one class as well.
    """
    spec, status = pod.spec, pod.status
    affinity = spec.affinity
    asked: tuple[object, ...] = (
        pod.metadata.namespace,
        {k: v for k, v in (pod.metadata.labels or {}).items() if k in label_keys},
        (spec.containers, spec.init_containers, spec.resources, spec.overhead),
        affinity and (affinity.pod_affinity, affinity.pod_anti_affinity),
        # Of the status a resize alone; the rest changes too often, and asks for nothing.
        [c for c in status.conditions or () if c.type == "PodResizePending"],
        _held(status.container_statuses),
        _held(status.init_container_statuses),
    )
    if not spec.node_name:
        asked += (traits(pod),)
        elsewhere = affinity and affinity.node_affinity
        constraints = spec.topology_spread_constraints
        asked += (spec.node_selector, elsewhere, spec.tolerations, constraints)
    return _ENCODER.encode(asked)


def _held(statuses: Iterable[ContainerStatus] | None) -> list[tuple[object, ...]]:
    return [(c.name, c.allocated_resources, c.resources) for c in statuses or ()]


def _priority(pod: Pod) -> int:
    """Return the annotation's number, else the pod's, else 1."""
    number = parse_int64((pod.metadata.annotations or {}).get(names.TASK_PRIORITY, ""))
    if number is not None:
        return number
    return 1 if pod.spec.priority is None else pod.spec.priority


def _status(pod: Pod) -> Status:
    match pod.status.phase:
        case "Succeeded":
            return Status.SUCCEEDED
        case "Failed":
            return Status.FAILED
        case "Running":
            placed = Status.RUNNING
        case "" | "Pending":
            placed = Status.BOUND if pod.spec.node_name else Status.PENDING
        case _:
            return Status.UNKNOWN
    return Status.RELEASING if pod.metadata.deletion_timestamp else placed
