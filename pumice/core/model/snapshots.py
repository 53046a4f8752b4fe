"""A snapshot: the state that one session works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pumice.core.api.core import PriorityClass
from pumice.core.api.topology import HyperNode
from pumice.core.devices.table import NodeCards
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.hypernodes import HyperTree
from pumice.core.model.inputs import Inputs
from pumice.core.model.jobs import JobInfo
from pumice.core.model.nodes import NodeTable
from pumice.core.model.population import Headcount
from pumice.core.model.queues import QueueInfo
from pumice.core.model.tasks import Task
from pumice.core.names import DEFAULT_QUEUE
from pumice.core.resources import Floats


@dataclass(frozen=True, slots=True)
class QueueSums:
    """What the jobs of a queue amount to; vectors may be shorter than the space."""

    #: jobs of the queue, finished ones included
    jobs: int
    #: requests of tasks in allocated statuses
    allocated: Floats
    #: the same, those of waiting tasks, and those of tasks on their way out: who is evicted comes
    #: back, and what queues deserve must not swing while it is away
    request: Floats
    #: minima of admitted jobs that are not allocated yet
    inqueue: Floats
    #: minima of admitted jobs whether or not allocated, remainders of running ones
    admitted: Floats
    #: what jobs hold beyond their minima
    elastic: Floats


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything a session may read. The node table is its own; the rest must not be changed."""

    #: resource names by row
    names: tuple[str, ...]
    nodes: NodeTable
    jobs: Mapping[JobKey, JobInfo]
    queues: Mapping[str, QueueInfo]
    usage: Mapping[str, QueueSums]
    #: jobs that have tasks waiting or a status that does not show what is; all others are settled
    active: frozenset[JobKey]
    population: Headcount
    #: the HyperNodes over the columns of `nodes`
    tree: HyperTree
    #: job -> nodes that refused a pod planned for it a while ago: none of it goes there again
    avoided: Mapping[JobKey, frozenset[str]] = field(default_factory=dict)
    #: pods that could not be evicted a while ago: they are not tried again
    spared: frozenset[PodUid] = frozenset()
    default_queue: str = DEFAULT_QUEUE
    scheduler_names: frozenset[str] = frozenset()
    priority_classes: tuple[PriorityClass, ...] = ()
    #: what `tree` was made of
    hypernodes: tuple[HyperNode, ...] = ()
    #: keys of labels that selectors mention: pods are told apart by no others
    label_keys: frozenset[str] = frozenset()
    #: what some plugins read besides
    inputs: Inputs = field(default_factory=Inputs)
    #: objects that were left out, and why
    faults: Mapping[str, str] = field(default_factory=dict)
    #: the pods that mount claims, those of other schedulers and those on nodes among them
    mounting: Mapping[PodUid, Task] = field(default_factory=dict)
    #: node -> its cards and who holds them, where there are any; not to be changed
    devices: Mapping[str, NodeCards] = field(default_factory=dict)
