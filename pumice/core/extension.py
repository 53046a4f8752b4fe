"""
Extension points: what plugins may register, and in which order their answers are asked for.

The points, their flags and the rules by which answers are combined are Volcano's. The functions
differ in two ways. They work on many things at once: a predicate answers for all nodes, a score
is an array, `allocatable` says how many of so many identical tasks may go. And an order is a sort
key, not a comparison; `functools.cmp_to_key` turns a comparison into one.

A plugin registers by name: `ssn.job_order[NAME] = key`. Its function takes part if the plugin's
flag is on; which tier it stands in is the configuration's business.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Generic, Literal, Protocol, TypeVar

from pumice.core.conf import PluginOption
from pumice.core.model.jobs import JobInfo, SubJob
from pumice.core.model.queues import QueueInfo
from pumice.core.model.tasks import Task, TaskClass
from pumice.core.plan import Reason
from pumice.core.resources import Bools, Floats, Ints

F = TypeVar("F")
T = TypeVar("T")


class SortKey(Protocol):
    """Anything that can be compared with its like; smaller comes first."""

    def __lt__(self, other: Any, /) -> bool: ...


class Vote(IntEnum):
    """An answer where plugins vote."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Code(IntEnum):
    """How final a refusal is; evictions cannot cure one that is unresolvable."""

    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """Nodes that are refused for one reason."""

    code: Code
    message: str
    nodes: Bools  # (N,)


@dataclass(frozen=True, slots=True, eq=False)
class PredicateResult:
    """The nodes that pass, and for the others the reasons: a node may be refused for several."""

    mask: Bools  # (N,)
    reasons: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class LivePredicate:
    """
    A predicate whose answer depends on where other tasks are, also on those placed just now.

    It is asked anew for each task of the classes that it applies to; such classes are placed one
    task at a time.
    """

    applies: Callable[[TaskClass], bool]
    check: Callable[[TaskClass], PredicateResult]


@dataclass(frozen=True, slots=True)
class Room:
    """
    A limit on how many more tasks of a class each node takes, apart from resources.

    `copies(cls, at)` answers for the nodes in the columns `at`, infinity where nothing limits;
    it may depend on what is on those nodes, and on nothing elsewhere.
    """

    code: Code
    message: str
    copies: Callable[[TaskClass, Ints], Floats]
    #: the same once what is on its way out is gone, and promises are kept; None where that is alike
    promised: Callable[[TaskClass, Ints], Floats] | None = None

    def later(self, cls: TaskClass, at: Ints) -> Floats:
        """Return how many copies there will be room for."""
        return (self.promised or self.copies)(cls, at)


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """
    A score of a node that depends on more of it than its resources.

    `score(cls, at, copies)` is asked for the nodes in the columns `at` and for several numbers of
    copies at once: what the last one of so many would score, with shape (n, T).
    """

    applies: Callable[[TaskClass], bool]
    score: Callable[[TaskClass, Ints, Ints | Floats], Floats]


@dataclass(frozen=True, slots=True)
class NodeOrder:
    """
    A score that depends on the node alone.

    `score(cls, at, alloc, used)` is asked for the nodes in the columns `at`, and for several
    numbers of copies at once: `alloc` has shape (R, n, 1), `used`, which already holds the
    copies, (R, n, T), and the answer (n, T), or something that broadcasts to it. `fills` says
    that the score of a node never falls as the node fills.
    """

    score: Callable[[TaskClass, Ints, Floats, Floats], Floats]
    fills: bool = False


@dataclass(frozen=True, slots=True)
class BatchNodeOrder:
    """
    A score that depends on the candidates as a whole, or on where other tasks are.

    `score(cls, at)` answers for the candidates in the columns `at`. Classes that it applies to
    are placed one task at a time, unless `differs` says that among such candidates, all nodes where
    none are given, every one scores the same, whatever is placed on them.
    """

    applies: Callable[[TaskClass], bool]
    score: Callable[[TaskClass, Ints], Floats]
    differs: Callable[[TaskClass, Ints | None], bool] = lambda cls, at: True


@dataclass(frozen=True, slots=True)
class Validity:
    """Why a job is not fit to be scheduled yet."""

    reason: str
    message: str


Victims = tuple[Sequence[Task], Vote]
"""Tasks that may be evicted, in order, and whether the plugin has an opinion at all."""

Evictable = Callable[[Task, Sequence[Task]], Victims]
"""
(who wants the room, candidates) -> victims.

Of who wants the room the answer may depend on its class, its priority and preemptability, its
job's priority, preemptability and queue, and on what the job holds: tasks that are alike in all
that are not tried one after the other where nothing has changed.
"""

UnifiedEvictable = Callable[[str, JobInfo, Sequence[Task]], Victims]
"""(action, job that wants the room, candidates) -> victims."""

Allocatable = Callable[[QueueInfo, TaskClass, int], int]
"""How many of so many identical tasks the queue may have, one after the other."""

Enqueueable = Callable[[JobInfo], tuple[Vote, Reason | None]]
"""Whether a group may be let into its queue; a rejection says why."""

Gradients = list[list[str]]
"""HyperNodes to try, those of one list as equals, the lists one after the other."""

Purpose = Literal["allocate", "evict"]
"""What hypernodes are tried for: to find room in them, or to make some."""

SubJobGradients = Callable[[JobInfo, SubJob | None, str, Purpose], Gradients]
"""(job, its sub-job or None where it is its own, hypernode to stay within, purpose)."""

HyperNodeOrder = Callable[[JobInfo, SubJob | None, Sequence[str]], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Event:
    """
    Tasks that were placed, or taken away again.

    They are alike (one class of one job); `tasks` are as placed, and `nodes` are their columns.
    """

    job: JobInfo
    cls: TaskClass
    tasks: Sequence[Task]
    nodes: Sequence[int]


@dataclass(frozen=True, slots=True)
class EventHandler:
    """What a plugin wants to know: placed or promised, and evicted or undone."""

    allocate: Callable[[Event], None]
    deallocate: Callable[[Event], None]


class Point(Generic[F]):
    """The functions of one extension point by plugin name."""

    __slots__ = ("_functions", "all", "authors", "flags", "tiers")

    def __init__(self, *flags: str) -> None:
        #: the plugin takes part if any of these is on; without flags it always does
        self.flags = flags
        self._functions: dict[str, F] = {}
        #: of the plugins that take part, by tier, without tiers that have none; and in one row
        self.tiers: tuple[tuple[F, ...], ...] = ()
        self.all: tuple[F, ...] = ()
        #: of each of these tiers its number, from 1, and the plugins that take part
        self.authors: tuple[tuple[int, tuple[str, ...]], ...] = ()

    def __setitem__(self, plugin: str, function: F) -> None:
        self._functions[plugin] = function

    def __iter__(self) -> Iterator[F]:
        return iter(self.all)

    def __bool__(self) -> bool:
        return bool(self.all)

    def change(self, plugin: str, change: Callable[[F], F]) -> None:
        """Put another function in the place of what a plugin has registered, if it has."""
        if plugin in self._functions:
            self._functions[plugin] = change(self._functions[plugin])

    def withdraw(self, plugin: str) -> None:
        """Forget what a plugin has registered."""
        self._functions.pop(plugin, None)

    def arrange(self, tiers: Iterable[Sequence[PluginOption]]) -> None:
        """Put the functions in the order in which they are asked."""
        rows = [(number, self._row(plugins)) for number, plugins in enumerate(tiers, start=1)]
        rows = [(number, row) for number, row in rows if row]
        self.authors = tuple(rows)
        self.tiers = tuple(tuple(self._functions[name] for name in row) for _, row in rows)
        self.all = tuple(function for tier in self.tiers for function in tier)

    def _row(self, plugins: Sequence[PluginOption]) -> tuple[str, ...]:
        return tuple(
            p.name
            for p in plugins
            if p.name in self._functions and (not self.flags or any(map(p.has, self.flags)))
        )


@dataclass(slots=True)
class Points:
    """All extension points, with the flags that switch a plugin's part in them."""

    #: what besides its class decides where a task goes, None where nothing does; functions that
    #: are asked for the class of such tasks find one of them in `cls.example`
    distinction: Point[Callable[[Task], Hashable]] = field(
        default_factory=lambda: Point("enablePredicate", "enableNodeOrder")
    )
    job_order: Point[Callable[[JobInfo], SortKey]] = field(
        default_factory=lambda: Point("enableJobOrder")
    )
    queue_order: Point[Callable[[QueueInfo], SortKey]] = field(
        default_factory=lambda: Point("enableQueueOrder")
    )
    #: (queue, queue of the one that wants the room): which queue's victims go first
    victim_queue_order: Point[Callable[[QueueInfo, QueueInfo], SortKey]] = field(
        default_factory=Point
    )
    task_order: Point[Callable[[Task], SortKey]] = field(
        default_factory=lambda: Point("enableTaskOrder")
    )
    sub_job_order: Point[Callable[[JobInfo, SubJob], SortKey]] = field(
        default_factory=lambda: Point("enabledSubJobOrder")
    )
    cluster_order: Point[Callable[[str], SortKey]] = field(
        default_factory=lambda: Point("enabledClusterOrder")
    )
    preemptable: Point[Evictable] = field(default_factory=lambda: Point("enablePreemptable"))
    reclaimable: Point[Evictable] = field(default_factory=lambda: Point("enableReclaimable"))
    #: those that their queues hold beyond their due: nobody else is reclaimed, whichever tier has
    #: the last word
    beyond_due: Point[Evictable] = field(default_factory=lambda: Point("enableReclaimable"))
    unified_evictable: Point[UnifiedEvictable] = field(default_factory=Point)
    overused: Point[Callable[[QueueInfo], bool]] = field(
        default_factory=lambda: Point("enabledOverused")
    )
    preemptive: Point[Callable[[QueueInfo, Sequence[Task]], bool]] = field(
        default_factory=lambda: Point("enablePreemptive")
    )
    allocatable: Point[Allocatable] = field(default_factory=lambda: Point("enabledAllocatable"))
    simulate_allocatable: Point[Allocatable] = field(
        default_factory=lambda: Point("enabledAllocatable")
    )
    simulate_add: Point[Callable[[Task, str], None]] = field(
        default_factory=lambda: Point("enablePreemptable", "enabledAllocatable")
    )
    simulate_remove: Point[Callable[[Task, str], None]] = field(
        default_factory=lambda: Point("enablePreemptable", "enabledAllocatable")
    )
    simulate_predicate: Point[Callable[[TaskClass], PredicateResult]] = field(
        default_factory=lambda: Point("enablePredicate")
    )
    job_ready: Point[Callable[[JobInfo], bool]] = field(
        default_factory=lambda: Point("enableJobReady")
    )
    sub_job_ready: Point[Callable[[JobInfo, SubJob], bool]] = field(
        default_factory=lambda: Point("enabledSubJobReady")
    )
    job_pipelined: Point[Callable[[JobInfo], Vote]] = field(
        default_factory=lambda: Point("enableJobPipelined")
    )
    sub_job_pipelined: Point[Callable[[JobInfo, SubJob], Vote]] = field(
        default_factory=lambda: Point("enabledSubJobPipelined")
    )
    job_enqueueable: Point[Enqueueable] = field(default_factory=lambda: Point("enableJobEnqueued"))
    job_enqueued: Point[Callable[[JobInfo], None]] = field(
        default_factory=lambda: Point("enableJobEnqueued")
    )
    #: (queue, class, number): tasks were let out of the gate of their queue, or not after all
    admitted: Point[Callable[[QueueInfo, TaskClass, int], None]] = field(
        default_factory=lambda: Point("enabledAllocatable")
    )
    #: a job had its turn in allocate and is not ready for want of room
    unplaced: Point[Callable[[JobInfo], None]] = field(
        default_factory=lambda: Point("enableReservedNodes")
    )
    job_starving: Point[Callable[[JobInfo], bool]] = field(
        default_factory=lambda: Point("enableJobStarving")
    )
    job_valid: Point[Callable[[JobInfo], Validity | None]] = field(default_factory=Point)
    target_job: Point[Callable[[Sequence[JobInfo]], JobInfo | None]] = field(
        default_factory=lambda: Point("enableTargetJob")
    )
    reserved_nodes: Point[Callable[[], None]] = field(
        default_factory=lambda: Point("enableReservedNodes")
    )
    victim_tasks: Point[Callable[[Sequence[Task]], Sequence[Task]]] = field(
        default_factory=lambda: Point("enabledVictim")
    )
    #: of tasks that should be somewhere else those that may go now
    victim_limits: Point[Callable[[Sequence[Task]], Sequence[Task]]] = field(
        default_factory=lambda: Point("enabledVictim")
    )
    #: a message refuses the class on all nodes
    pre_predicate: Point[Callable[[TaskClass], str | None]] = field(
        default_factory=lambda: Point("enablePredicate")
    )
    #: asked once per constraint signature, and distinction of tasks, and session: it must not
    #: depend on requests
    predicate: Point[Callable[[TaskClass], PredicateResult]] = field(
        default_factory=lambda: Point("enablePredicate")
    )
    live_predicate: Point[LivePredicate] = field(default_factory=lambda: Point("enablePredicate"))
    room: Point[Room] = field(default_factory=lambda: Point("enablePredicate"))
    #: picks among scored candidates; None leaves it to the score
    best_node: Point[Callable[[TaskClass, Ints, Floats], int | None]] = field(
        default_factory=lambda: Point("enableBestNode")
    )
    node_order: Point[NodeOrder] = field(default_factory=lambda: Point("enableNodeOrder"))
    copy_order: Point[CopyOrder] = field(default_factory=lambda: Point("enableNodeOrder"))
    batch_node_order: Point[BatchNodeOrder] = field(
        default_factory=lambda: Point("enableNodeOrder")
    )
    #: scores by node, floored, then reduced over all candidates
    node_map: Point[BatchNodeOrder] = field(default_factory=lambda: Point("enableNodeOrder"))
    #: (job, its sub-job or None where it is its own, hypernodes) -> their scores
    hyper_node_order: Point[HyperNodeOrder] = field(
        default_factory=lambda: Point("enabledHyperNodeOrder")
    )
    #: (job, hypernode to stay within, purpose)
    hyper_node_gradient_for_job: Point[Callable[[JobInfo, str, Purpose], Gradients]] = field(
        default_factory=lambda: Point("enabledHyperNodeGradient")
    )
    hyper_node_gradient_for_sub_job: Point[SubJobGradients] = field(
        default_factory=lambda: Point("enabledHyperNodeGradient")
    )

    def withdraw(self, plugin: str) -> None:
        """Forget what a plugin has registered, at every point."""
        for name in Points.__slots__:
            getattr(self, name).withdraw(plugin)

    def arrange(self, tiers: Sequence[Sequence[PluginOption]]) -> None:
        """Put the functions of every point in order."""
        for name in Points.__slots__:
            getattr(self, name).arrange(tiers)
