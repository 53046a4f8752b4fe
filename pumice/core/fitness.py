"""
Why tasks found no node, counted and in words.

The texts are Volcano's: `0/3 nodes are unavailable: 1 node(s) pod number exceeded, 2 node(s)
resource fit failed.` Reasons are counted by node, never listed by node: the text is read by
tenants, who need not know the nodes' names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pumice.core.resources import Bools


@dataclass(frozen=True, slots=True, eq=False)
class FitErrors:
    """Why a task fits no node: how many nodes were refused, and for what."""

    nodes: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    #: replaces the leading words
    error: str = ""
    #: the hypernode that was tried, when not all nodes were
    hypernode: str = ""
    #: nodes that no eviction would open (N,)
    unresolvable: Bools | None = None
    #: of each resource that is short, the most that any one node has left, in units
    most: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        text = self.error or f"0/{self.nodes} nodes are unavailable"
        if self.reasons:
            entries = sorted(f"{count} {reason}" for reason, count in self.reasons.items())
            text = f"{text}: {', '.join(entries)}."
        return f"In hyperNode {self.hypernode}: {text}" if self.hypernode else text


@dataclass(frozen=True, slots=True)
class Limit:
    """Why a queue may not have more; `by_capacity` where a larger cluster would let it."""

    message: str
    by_capacity: bool = False
    #: who says so, and the numbers compared, by name
    plugin: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cramped:
    """A HyperNode that could not hold a gang."""

    #: how many of the tasks found a node in it
    found: int = 0
    #: the resource that it lacks as a whole, where there was no need to look at its nodes; what
    #: the tasks ask for of that and what is free, in units
    short: str = ""
    asked: float = 0.0
    free: float = 0.0


@dataclass(slots=True)
class Confinement:
    """The HyperNodes in which a gang, or a sub-group of it, was to be placed as a whole."""

    #: the highest tier that it may span, as it names it
    tier: str
    #: the sub-job; empty for a job that is its own
    part: str
    #: how many tasks had to find a node together
    wanted: int
    #: HyperNode -> why it could not hold them
    tried: dict[str, Cramped] = field(default_factory=dict)


@dataclass(slots=True)
class Trouble:
    """What kept a job's tasks from being placed in this session."""

    #: why the job as a whole was not tried, or not let in
    message: str = ""
    #: the numbers of that in words
    detail: str = ""
    #: who says so
    plugin: str = ""
    #: whether the queue, and not a lack of room, holds the job or single tasks
    by_queue: bool = False
    #: the reason of the validity check, where the job failed it
    invalid: str = ""
    #: task uid -> its errors; tasks of one class share the object
    tasks: dict[str, FitErrors] = field(default_factory=dict)
    #: tasks that the queue would not have
    over_limit: dict[str, Limit] = field(default_factory=dict)
    #: what the queue had against the job as a whole, where that is what the message says
    limit: Limit | None = None
    #: numbers compared, by name
    numbers: dict[str, float] = field(default_factory=dict)
    #: what was tried for a job that is bound to HyperNodes
    confined: Confinement | None = None
    #: queues whose room was not taken for the job, since they could take it back
    rivals: tuple[str, ...] = ()
