"""
Class views: where the next task of one class may go, and how good each node is for it.

A view brings itself up to date by the log of changed columns.

    candidates   nodes where the class fits what will be idle, and every predicate agrees
    idle         candidates where it also fits what is idle now: these always go first
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.core.extension import Points, PredicateResult, Refusal
from pumice.core.fitness import FitErrors
from pumice.core.kernels import copies_that_fit, greedy, only
from pumice.core.model.tasks import TaskClass
from pumice.core.refusals import Refusals, curable_nodes
from pumice.core.resources import Bools, Floats, Ints, pad
from pumice.core.workspace import Workspace

_LOOK_AHEAD = 1024
"""The longest sequence of picks that is worked out before it is asked for."""


class ClassView:
    """One class before all nodes."""

    def __init__(
        self,
        cls: TaskClass,
        space: Workspace,
        points: Points,
        static: PredicateResult,
        *,
        names: Sequence[str],
    ) -> None:
        self.cls = cls
        self._nodes = space.nodes
        self._changed = space.changed
        self._req = pad(cls.req, self._nodes.rows)
        #: what all predicates say that depend on constraints alone
        self._static = static
        self._rooms = points.room.all
        self._orders = points.node_order.all
        self._copy_orders = [o for o in points.copy_order if o.applies(cls)]
        self._fills = not self._copy_orders and all(order.fills for order in self._orders)
        self._live = [p for p in points.live_predicate if p.applies(cls)]
        self._batch = [o for o in points.batch_node_order if o.applies(cls)]
        self._maps = [o for o in points.node_map if o.applies(cls)]
        self._choosers = points.best_node
        self._alike = (
            cls.signature.node_only and not (self._live or self._maps) and not self._choosers
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
        self._refusals = Refusals(
            cls, self._req, self._nodes, names, static, self._live, self._rooms
        )

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
        for choose in self._choosers:
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
            self._curable = curable_nodes(self._static)
        mask = self._curable
        for predicate in self._live:
            mask = mask & curable_nodes(predicate.check(self.cls))
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
            found = self._refusals.counted(resources=resources, within=within, hypernode=hypernode)
        if resources and not self._live and within is None:
            self._errors = (at, found)
        return found

    def refusals(self) -> list[Refusal]:
        """
        Return why nodes refuse a task, as things stand.

        A node that lacks resources is refused for the first that is short and for nothing else.
        """
        return self._refusals.listed()

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
