"""
nodegroup: queues have groups of nodes that they must, or should, use or avoid.

A node belongs to the group that its label `volcano.sh/nodegroup-name` names. A queue's pods go to
groups that its `spec.affinity` requires or prefers, and to no other; those whose avoidance is
merely preferred are allowed as well. Nodes score by what the queue says of their group:

    required                                       100
    preferred                                       50, added
      with `enablePreferredOrder`, the i-th of n    50 * (n - i) / n, i from 0
    avoided by preference                           -1, whatever else

A node without the label, and a queue without rules, belong together only if `strict` is off. With
`hierarchy` a queue without rules has those of the nearest queue above it that has some. The
annotation `volcano.sh/nodegroup-resource-limits` of a queue says in JSON how much of each group
it may hold: `{"group": {"cpu": "8"}}`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np

from pumice.core import names
from pumice.core.api.core import ResourceList
from pumice.core.api.scheduling import NodeGroupRules, QueueAffinity
from pumice.core.conf import Arguments
from pumice.core.extension import (
    Code,
    Event,
    EventHandler,
    LivePredicate,
    NodeOrder,
    PredicateResult,
    Refusal,
)
from pumice.core.model.columns import Column
from pumice.core.model.queues import QueueInfo
from pumice.core.model.tasks import ALLOCATED_STATUSES, Task, TaskClass
from pumice.core.resources import EPSILON, Floats, Ints, ResourceSpace, pad, plus
from pumice.core.session import Session

NAME = "nodegroup"
INVALID = "node group resource limit annotation invalid"
NO_LABEL = "node group label not found"
NO_RULES = "node group affinity not specified"
NOT_WANTED = "node does not satisfy the node group affinity"
EXCEEDED = "node group resource limit exceeded"
_NONE = NodeGroupRules()
_ANYWHERE = QueueAffinity()


@dataclass(frozen=True)
class Rules:
    """What a queue says of groups."""

    affinity: QueueAffinity
    ordered: bool = False

    @cached_property
    def near(self) -> NodeGroupRules:
        """Return the groups to use."""
        return self.affinity.node_group_affinity or _NONE

    @cached_property
    def far(self) -> NodeGroupRules:
        """Return the groups to avoid."""
        return self.affinity.node_group_anti_affinity or _NONE

    def __bool__(self) -> bool:
        sides = (self.near.required, self.near.preferred, self.far.required, self.far.preferred)
        return any(sides)

    def allow(self, group: str) -> bool:
        """Return whether pods of the queue may go to a group."""
        if group in (self.far.preferred or ()):
            return True
        wanted = group in (self.near.required or ()) or group in (self.near.preferred or ())
        return wanted and group not in (self.far.required or ())

    def score(self, group: str) -> float:
        """Return what a node of the group scores."""
        if group in (self.far.preferred or ()):
            return -1.0
        score = 100.0 if group in (self.near.required or ()) else 0.0
        preferred = self.near.preferred or []
        if group in preferred:
            n = len(preferred)
            score += 50.0 * (n - preferred.index(group)) / n if self.ordered else 50.0
        return score


class NodeGroup:
    """The plugin."""

    name = NAME

    def __init__(self, args: Arguments) -> None:
        self.strict = args.boolean("strict", True)
        self.ordered = args.boolean("enablePreferredOrder", False)
        self.hierarchy = False
        #: queue -> group -> the most that it may hold there; None where that cannot be read
        self.limits: dict[str, dict[str, Floats] | None] = {}
        #: (queue, group) -> what it holds there
        self.held: dict[tuple[str, str], Floats] = {}

    def on_session_open(self, ssn: Session) -> None:
        """Register what queues say of groups, and how much of each they hold."""
        self._read_limits(ssn)
        column = ssn.nodes.columns.label(names.NODE_GROUP)
        scores: dict[str, Floats] = {}

        def queue_of(cls: TaskClass) -> QueueInfo | None:
            job = ssn.job(cls.example.job) if cls.example else None
            return ssn.queues[job.queue] if job else None

        def distinction(task: Task) -> Hashable:
            job = ssn.job(task.job)
            return job.queue if job else None

        def predicate(cls: TaskClass) -> PredicateResult:
            queue = queue_of(cls)
            if queue is None:
                return PredicateResult(column.codes == column.codes)
            return self._allowed(self._rules(ssn.queues, queue), column, queue.name)

        def order(cls: TaskClass, at: Ints, alloc: Floats, used: Floats) -> Floats:
            queue = queue_of(cls)
            if queue is None:
                return np.zeros((at.size, 1))
            if queue.name not in scores:
                rules = self._rules(ssn.queues, queue)
                values = [rules.score(group) for group in column.values]
                scores[queue.name] = np.array([*values, 0.0])[column.codes]
            return scores[queue.name][at, None]

        def is_limited(cls: TaskClass) -> bool:
            queue = queue_of(cls)
            return queue is not None and bool(self.limits.get(queue.name))

        def within_limits(cls: TaskClass) -> PredicateResult:
            queue = queue_of(cls)
            full = [queue is not None and self._is_full(queue, g, cls) for g in column.values]
            refused = np.array([*full, False])[column.codes]
            return PredicateResult(~refused, (Refusal(Code.UNRESOLVABLE, EXCEEDED, refused),))

        ssn.points.distinction[NAME] = distinction
        ssn.points.predicate[NAME] = predicate
        ssn.points.node_order[NAME] = NodeOrder(order, fills=True)
        if self.limits:
            ssn.points.live_predicate[NAME] = LivePredicate(is_limited, within_limits)
            self._count(ssn, column)

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""

    def _rules(self, queues: Mapping[str, QueueInfo], queue: QueueInfo) -> Rules:
        """Return the rules of a queue; in a tree, of the nearest one above that has some."""
        seen: set[str] = set()
        found: QueueInfo | None = queue
        while found is not None and found.name not in seen:
            rules = Rules(found.queue.spec.affinity or _ANYWHERE, self.ordered)
            if rules or not self.hierarchy:
                return rules
            seen.add(found.name)
            found = queues.get(found.parent)
        return Rules(_ANYWHERE)

    def _allowed(self, rules: Rules, column: Column, queue: str) -> PredicateResult:
        labelled = column.present
        everywhere = labelled | ~labelled
        if self.limits.get(queue, {}) is None:
            return PredicateResult(~everywhere, (Refusal(Code.UNRESOLVABLE, INVALID, everywhere),))
        reasons = []
        if self.strict or rules:
            reasons.append((NO_LABEL, ~labelled))
        if rules:
            unwanted = np.array([*(not rules.allow(g) for g in column.values), False])
            reasons.append((NOT_WANTED, unwanted[column.codes]))
        else:
            reasons.append((NO_RULES, labelled))
        mask = everywhere
        for _, nodes in reasons:
            mask = mask & ~nodes
        refusals = tuple(Refusal(Code.UNRESOLVABLE, text, nodes) for text, nodes in reasons)
        return PredicateResult(mask, refusals)

    # Limits.

    def _read_limits(self, ssn: Session) -> None:
        for queue in ssn.queues.values():
            text = (queue.queue.metadata.annotations or {}).get(names.NODE_GROUP_LIMITS)
            if text:
                self.limits[queue.name] = _limits(text, ssn.names)

    def _count(self, ssn: Session, column: Column) -> None:
        """Add up what the limited queues hold of each group, and follow the session."""

        def add(queue: str, node: int, amount: Floats) -> None:
            code = int(column.codes[node])
            if queue in self.limits and code >= 0:
                key = (queue, column.values[code])
                self.held[key] = plus(self.held.get(key, np.zeros(0)), amount)

        for job in ssn.space.jobs.values():
            if job.queue in self.limits:
                for task in job.tasks.values():
                    node = ssn.nodes.index.get(task.node)
                    if task.status & ALLOCATED_STATUSES and node is not None:
                        add(job.queue, node, task.cls.req)

        def follow(event: Event, sign: int) -> None:
            for node in event.nodes:
                add(event.job.queue, node, event.cls.req * sign)

        ssn.listen(EventHandler(lambda e: follow(e, 1), lambda e: follow(e, -1)))

    def _is_full(self, queue: QueueInfo, group: str, cls: TaskClass) -> bool:
        limit = (self.limits.get(queue.name) or {}).get(group)
        if limit is None:
            return False
        size = limit.size
        wanted = pad(plus(self.held.get((queue.name, group), np.zeros(0)), cls.req), size)
        return bool((wanted[:size] - limit >= EPSILON).any())


def _limits(text: str, rows: tuple[str, ...]) -> dict[str, Floats] | None:
    """Read the annotation; None where it is malformed."""
    space = ResourceSpace(rows)
    try:
        groups = msgspec.json.decode(text, type=dict[str, ResourceList])
        return {group: space.limits(amounts)[: len(rows)] for group, amounts in groups.items()}
    except (msgspec.DecodeError, ValueError):
        return None
