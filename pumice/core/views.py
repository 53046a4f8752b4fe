"""
Views: one class of tasks before all nodes.

A view knows where the next task of its class may go and how good each node is. It is made once
per class and session, and from then on brings itself up to date by the log of changed columns.
Verdicts that depend on constraints alone are shared by all classes with the same signature.

    candidates   nodes where the class fits what will be idle, and every predicate agrees
    idle         candidates where it also fits what is idle now: these always go first
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pumice.core.extension import Code, Points, PredicateResult, Refusal
from pumice.core.fitness import FitErrors
from pumice.core.ids import JobKey
from pumice.core.kernels import copies_that_fit, greedy
from pumice.core.model.signatures import Signature
from pumice.core.model.tasks import Task, TaskClass
from pumice.core.resources import CPU, EPSILON, MEMORY, Bools, Floats, Ints, pad
from pumice.core.workspace import Workspace

AVOIDED = "node(s) refused a planned pod a moment ago"
_NOWHERE: frozenset[str] = frozenset()
_NONE: Ints = np.zeros(0, np.int64)
_LOOK_AHEAD = 1024
"""The longest sequence of picks that is worked out before it is asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What the predicates say of a signature, for all nodes."""

    mask: Bools
    reasons: tuple[Refusal, ...]


def combine(results: Sequence[PredicateResult], n: int) -> Verdict:
    """Return the nodes that pass everything, and all reasons of the others."""
    mask = np.ones(n, bool)
    for result in results:
        mask &= result.mask
    return Verdict(mask, tuple(r for result in results for r in result.reasons))


class Views:
    """The views of one session."""

    def __init__(
        self,
        space: Workspace,
        points: Points,
        names: Sequence[str],
        avoided: Mapping[JobKey, frozenset[str]],
    ) -> None:
        self.space = space
        self.points = points
        self.names = names
        self._avoided = avoided
        #: the task that was asked for last; what scores nodes by where its kin are looks here
        self.subject: Task | None = None
        self._verdicts: dict[Signature | TaskClass, Verdict] = {}
        self._classes: dict[tuple[TaskClass, tuple[Hashable, ...]], TaskClass] = {}
        self._views: dict[tuple[TaskClass, frozenset[str]], ClassView] = {}

    def end(self) -> None:
        """Let go of everything."""
        vars(self).clear()

    def of_task(self, task: Task) -> ClassView:
        """Return the view of a task, which it shares with all that no plugin tells apart."""
        self.subject = task
        return self.of(self.distinct(task), task.job)

    def distinct(self, task: Task) -> TaskClass:
        """Return the task's class; one of its own where a plugin asks for more than the class."""
        if not self.points.distinction:
            return task.cls
        marks = tuple(mark(task) for mark in self.points.distinction)
        if not any(mark is not None for mark in marks):
            return task.cls
        found = self._classes.get((task.cls, marks))
        if found is None:
            found = self._classes[task.cls, marks] = replace(task.cls, example=task)
        return found

    def of(self, cls: TaskClass, job: JobKey | None) -> ClassView:
        """Return the view of a class, of which the job's nodes to avoid are left out."""
        avoided = self._avoided.get(job, _NOWHERE) if job is not None else _NOWHERE
        view = self._views.get((cls, avoided))
        if view is None:
            view = self._views[cls, avoided] = ClassView(cls, self, self._static(cls, avoided))
        return view

    def _static(self, cls: TaskClass, avoided: frozenset[str]) -> Verdict:
        verdict = self.verdict(cls)
        if not avoided:
            return verdict
        refused = _avoid(self.space, avoided)
        return Verdict(verdict.mask & refused.mask, verdict.reasons + refused.reasons)

    def verdict(self, cls: TaskClass) -> Verdict:
        """Return what the predicates say of the class's signature."""
        key = cls if cls.example else cls.signature
        found = self._verdicts.get(key)
        if found is None:
            results = [predicate(cls) for predicate in self.points.predicate]
            found = combine(results, len(self.space.nodes))
            self._verdicts[key] = found
        return found


def _avoid(space: Workspace, avoided: Collection[str]) -> PredicateResult:
    """Return the verdict on nodes that kube-scheduler refused for a planned pod just now."""
    refused = np.zeros(len(space.nodes), bool)
    refused[[space.nodes.index[name] for name in avoided if name in space.nodes.index]] = True
    return PredicateResult(~refused, (Refusal(Code.UNRESOLVABLE, AVOIDED, refused),))


class ClassView:
    """One class before all nodes."""

    def __init__(self, cls: TaskClass, views: Views, static: Verdict) -> None:
        self.cls = cls
        self._views = views
        self._nodes = views.space.nodes
        self._changed = views.space.changed
        self._req = pad(cls.req, self._nodes.rows)
        self._static = static
        points = views.points
        self._rooms = points.room.all
        self._orders = points.node_order.all
        self._copy_orders = [o for o in points.copy_order if o.applies(cls)]
        self._fills = not self._copy_orders and all(order.fills for order in self._orders)
        self._live = [p for p in points.live_predicate if p.applies(cls)]
        self._batch = [o for o in points.batch_node_order if o.applies(cls)]
        self._maps = [o for o in points.node_map if o.applies(cls)]
        self._alike = (
            cls.signature.node_only and not (self._live or self._maps) and not points.best_node
        )
        #: whether it depends on where other tasks are, on whatever nodes
        self.looks_around = bool(self._live)
        #: why no node may be asked at all
        self.refused = next((r for p in points.pre_predicate if (r := p(cls))), None)
        self._copies: Floats = np.zeros(len(self._nodes))
        self._first: Floats = np.full(len(self._nodes), -np.inf)
        self._seen = -1
        self._ahead: list[int] = []
        self._ahead_from = -1
        self._stride = 1
        #: how much had changed when it was found that no node takes a task
        self._full_at = -1
        self._errors: tuple[int, FitErrors] | None = None
        self._curable: Bools | None = None

    def is_full(self) -> bool:
        """
        Return whether it was found that no node takes a task, now or soon, and nothing has changed.

        So thousands of tasks that are alike are refused by one look at the nodes.
        """
        return self._full_at == len(self._changed)

    # Placing on what is idle. Where columns `within` are given no others are looked at.

    def groups(self, within: Ints | None = None) -> bool:
        """Return whether many tasks may be placed at once, as if one after the other."""
        return self._alike and not any(o.differs(self.cls, within) for o in self._batch)

    def picks(self, m: int, within: Ints | None = None) -> Sequence[int]:
        """
        Return the columns on which the next tasks go, at most `m`, in order.

        Fewer mean that no idle node is left after them. Where the class does not go in `groups`
        it must be asked for one at a time.
        """
        if m <= 0 or self.refused is not None:
            return ()
        if not self.groups(within):
            return self._pick_among(within)
        if m == 1 and within is None:
            return self._next()
        self._refresh()
        picks: list[int] = self._greedy(m, within).tolist()
        return picks

    def _next(self) -> Sequence[int]:
        """
        Return the next pick, from a sequence worked out ahead where that is still good.

        It is as long as nobody has placed anything but what it said. The further that went
        well, the further the next one looks ahead.
        """
        at = len(self._changed)
        if self._ahead and self._ahead_from == at:
            self._ahead_from = at + 1
            return (self._ahead.pop(),)
        self._stride = min(self._stride * 2, _LOOK_AHEAD) if self._ahead_from == at else 1
        self._refresh()
        if self._stride == 1:
            best = int(self._first.argmax()) if self._first.size else -1
            self._ahead = []
            self._ahead_from = at + 1
            return (best,) if best >= 0 and self._first[best] > -np.inf else ()
        self._ahead = self._greedy(self._stride)[::-1].tolist()
        self._ahead_from = at + 1
        return (self._ahead.pop(),) if self._ahead else ()

    def _greedy(self, m: int, within: Ints | None = None) -> Ints:
        if within is None:
            return greedy(self._first, self._copies, m, self._score, fills=self._fills)

        def score(at: Ints, copies: Ints) -> Floats:
            return self._score(within[at], copies)

        first, copies = self._first[within], self._copies[within]
        return within[greedy(first, copies, m, score, fills=self._fills)]

    def _pick_among(self, within: Ints | None) -> Sequence[int]:
        self._refresh()
        mask = only(self._first > -np.inf, within)
        for predicate in self._live:
            mask &= predicate.check(self.cls).mask
        return self._best(np.flatnonzero(mask), self._first)

    def _best(self, at: Ints, scores: Floats) -> Sequence[int]:
        """Return the best of the candidates `at`, where `scores` holds what nodes score alone."""
        if at.size <= 1:
            return [int(i) for i in at]
        total = self._with_others(scores[at], at)
        for choose in self._views.points.best_node:
            chosen = choose(self.cls, at, total)
            if chosen is not None:
                return (chosen,)
        return (int(at[total.argmax()]),)

    def scores(self, at: Ints) -> Floats:
        """Return the whole score of each of the columns `at` for one task."""
        return self._with_others(self._score(at, np.ones(1))[:, 0], at)

    def _with_others(self, total: Floats, at: Ints) -> Floats:
        """Add to what nodes score alone what they score in comparison with each other."""
        for order in self._batch:
            total = total + order.score(self.cls, at)
        for order in self._maps:
            total = total + np.floor(order.score(self.cls, at))
        return total

    # Placing on what will be idle.

    def promise(self, within: Ints | None = None) -> Sequence[int]:
        """
        Return the column of the best candidate, idle or not; none where there is none.

        It is for those who have asked for an idle node before, and found none.
        """
        found = self.best_candidate(within) if self.has_future() else ()
        if not found and within is None and not self._live:
            self._full_at = len(self._changed)
        return found

    def best_candidate(self, within: Ints | None = None) -> Sequence[int]:
        """
        Return the column of the best candidate, whether or not anything is on its way out.

        A node that is idle now goes before any other.
        """
        if self.refused is not None:
            return ()
        mask = only(self.candidates(), within)
        idle = mask & self._fits(self._nodes.idle)
        return self._best_of(idle if idle.any() else mask)

    def has_future(self) -> bool:
        """Return whether anything is on its way out at all."""
        return bool(self._nodes.releasing.any())

    def free_of_resources(self, within: Ints | None = None) -> Sequence[int]:
        """Return the best node by predicates alone, for a task that asks for nothing."""
        if self.refused is not None:
            return ()
        mask = only(self._static.mask & self._room_mask(), within)
        for predicate in self._live:
            mask &= predicate.check(self.cls).mask
        return self._best_of(mask)

    def candidates(self) -> Bools:
        """Return the nodes where a task fits what will be idle and every predicate agrees."""
        mask = self._fits(self._nodes.future_idle) & self._static.mask & self._room_mask()
        for predicate in self._live:
            mask &= predicate.check(self.cls).mask
        return mask

    def idle_candidates(self) -> Bools:
        """Return the candidates that have room for a task now."""
        mask = self.candidates() & self._fits(self._nodes.idle)
        everywhere = np.arange(len(self._nodes))
        for room in self._rooms:
            mask &= room.copies(self.cls, everywhere) >= 1
        return mask

    def allows(self, i: int, *, promised: bool) -> bool:
        """Return whether a task may go to column `i`: now, or once promises come true."""
        if not self.takes(i):
            return False
        if promised:
            return True
        idle, at = self._nodes.alloc[:, i] - self._nodes.used[:, i], np.array([i])
        fits = bool(self._fits(idle[:, None])[0])
        return fits and all(room.copies(self.cls, at)[0] >= 1 for room in self._rooms)

    def takes(self, i: int) -> bool:
        """Return whether a task may go to column `i` once promises come true."""
        if self.refused is not None or not self._static.mask[i]:
            return False
        at = np.array([i])
        return (
            bool(self._fits(self._nodes.future(i)[:, None])[0])
            and all(room.later(self.cls, at)[0] >= 1 for room in self._rooms)
            and all(predicate.check(self.cls).mask[i] for predicate in self._live)
        )

    def suits(self) -> Bools:
        """Return the nodes that the constraints of a task allow, whatever is on them."""
        return self._static.mask & (self.refused is None)

    def curable(self) -> Bools:
        """Return the nodes that evictions might open to a task: of no other is it worth a try."""
        if self._curable is None:
            self._curable = _curable(self._static.mask, self._static.reasons)
        mask = self._curable
        for predicate in self._live:
            result = predicate.check(self.cls)
            mask = mask & _curable(result.mask, result.reasons)
        return mask

    def _best_of(self, mask: Bools) -> Sequence[int]:
        at = np.flatnonzero(mask)
        if at.size <= 1:
            return [int(i) for i in at]
        scores = np.full(len(self._nodes), -np.inf)
        scores[at] = self._score(at, np.ones(1))[:, 0]
        return self._best(at, scores)

    # Why there is no node.

    def errors(
        self, *, resources: bool = True, within: Ints | None = None, hypernode: str = ""
    ) -> FitErrors:
        """Return why no node takes a task, as things stand; `hypernode` is the name of `within`."""
        at = len(self._changed)
        known = self._errors
        if known is not None and known[0] == at and resources and within is None:
            return known[1]
        if self.refused is not None:
            n = len(self._nodes) if within is None else within.size
            everywhere = only(np.ones(len(self._nodes), bool), within)
            found = FitErrors(n, {self.refused: n} if n else {}, "", hypernode, everywhere)
        else:
            found = self._explain(resources, within, hypernode)
        if resources and not self._live and within is None:
            self._errors = (at, found)
        return found

    def refusals(self) -> list[Refusal]:
        """
        Return why nodes refuse a task, as things stand.

        A node that lacks resources is refused for the first that is short and for nothing else.
        """
        return self._refusals(self._shortages())

    def _explain(self, resources: bool, within: Ints | None, hypernode: str) -> FitErrors:
        short = self._shortages() if resources else {}
        reasons: dict[str, int] = {}
        hopeless = np.zeros(len(self._nodes), bool)
        for refusal in self._refusals(short):
            refused = only(refusal.nodes, within)
            _count(reasons, refusal.message, refused)
            if refusal.code is not Code.UNSCHEDULABLE:
                hopeless |= refused
        room, names = self._nodes.future_idle, self._views.names
        lacking = {row: only(at, within) for row, at in short.items()}
        most = {
            names[row]: max(float(room[row, at].max()), 0.0)
            for row, at in lacking.items()
            if at.any()
        }
        n = len(self._nodes) if within is None else within.size
        return FitErrors(n, reasons, "", hypernode, hopeless, most)

    def _shortages(self) -> dict[int, Bools]:
        """Return by row the nodes where it is short and none before it is."""
        room = self._nodes.future_idle
        enough = np.ones(len(self._nodes), bool)
        short = {}
        for row in sorted({CPU, MEMORY, *self.cls.rows}):
            fits = room[row] + EPSILON > self._req[row]
            if not fits[enough].all():
                short[row] = enough & ~fits
                enough &= fits
        return short

    def _refusals(self, short: Mapping[int, Bools]) -> list[Refusal]:
        left = np.ones(len(self._nodes), bool)
        found = []
        for row, nodes in short.items():
            message = f"Insufficient {self._views.names[row]}"
            found.append(Refusal(Code.UNSCHEDULABLE, message, nodes))
            left &= ~nodes
        verdicts = [predicate.check(self.cls) for predicate in self._live]
        others = [*self._static.reasons, *(r for v in verdicts for r in v.reasons)]
        everywhere = np.arange(len(self._nodes))
        for room in self._rooms:
            full = room.later(self.cls, everywhere) < 1
            others.append(Refusal(room.code, room.message, full))
        return found + [Refusal(r.code, r.message, r.nodes & left) for r in others]

    # Keeping up with the table.

    def _refresh(self) -> None:
        """Work out anew the columns that were touched since the last time."""
        at = len(self._changed)
        if self._seen == at:
            return
        fresh = self._changed[self._seen :] if self._seen >= 0 else None
        if fresh is None or len(fresh) * 4 > len(self._nodes):
            columns = np.arange(len(self._nodes))
        else:
            columns = np.array(sorted(set(fresh)), np.int64)
        self._seen = at
        self._renew(columns)

    def _renew(self, at: Ints) -> None:
        nodes = self._nodes
        room = nodes.alloc[:, at] - nodes.used[:, at]
        # What will be idle can be less than what is idle, where much is promised.
        room = np.minimum(room, room + nodes.releasing[:, at] - nodes.pipelined[:, at])
        copies = copies_that_fit(room, self.cls.req, self.cls.rows)
        for limit in self._rooms:
            np.minimum(copies, limit.copies(self.cls, at), out=copies)
        copies[~self._static.mask[at]] = 0.0
        self._copies[at] = copies
        first = np.full(at.size, -np.inf)
        open_nodes = np.flatnonzero(copies >= 1)
        if open_nodes.size:
            first[open_nodes] = self._score(at[open_nodes], np.ones(1))[:, 0]
        self._first[at] = first

    def _score(self, at: Ints, copies: Ints | Floats) -> Floats:
        """Return what nodes score alone once they hold so many tasks more: (n, T)."""
        nodes = self._nodes
        alloc = nodes.alloc[:, at, None]
        held = nodes.used[:, at, None] + nodes.pipelined[:, at, None]
        used = held + self._req[:, None, None] * copies
        total = np.zeros((at.size, copies.size))
        for order in self._orders:
            total += order.score(self.cls, at, alloc, used)
        for copy_order in self._copy_orders:
            total += copy_order.score(self.cls, at, copies)
        return total

    def _fits(self, room: Floats) -> Bools:
        fits: Bools = copies_that_fit(room, self.cls.req, self.cls.rows) >= 1
        return fits

    def _room_mask(self) -> Bools:
        mask = np.ones(len(self._nodes), bool)
        everywhere = np.arange(len(self._nodes))
        for room in self._rooms:
            mask &= room.later(self.cls, everywhere) >= 1
        return mask


def only(mask: Bools, within: Ints | None) -> Bools:
    """Return the nodes of a mask that are among some columns; all of them where none are given."""
    if within is None:
        return mask
    inside = np.zeros(mask.size, bool)
    inside[within] = mask[within]
    return inside


def _curable(mask: Bools, reasons: Sequence[Refusal]) -> Bools:
    """Return the nodes that pass, or are refused for nothing but what evictions may cure."""
    passing = mask.copy()
    for refusal in reasons:
        if refusal.code is Code.UNSCHEDULABLE:
            passing |= refusal.nodes
    for refusal in reasons:
        if refusal.code is not Code.UNSCHEDULABLE:
            passing &= ~refusal.nodes
    return passing


def _count(reasons: dict[str, int], message: str, nodes: Bools) -> None:
    number = int(np.count_nonzero(nodes))
    if number:
        reasons[message] = reasons.get(message, 0) + number
