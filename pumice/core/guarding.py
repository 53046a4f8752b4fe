"""
Guarding a session against plugins that raise.

Third-party plugins are code that nobody here has read. What one of them raises is caught where the
session asks it, reported, and answered for it:

    preferences   (orders, scores, which node is best)                 count as none
    permissions   (may it go there, may the queue have it, may it go)  are refused
    news          (placed, let in, taken away again)                   is lost

So an error never lets anything through that the plugin might have forbidden, and it concerns only
what the plugin was asked about: other jobs, other nodes, other queues go on. An answer that is of
no use, of the wrong type or shape, counts as an error.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import total_ordering
from typing import Any, Final

import numpy as np

from pumice.core.extension import (
    BatchNodeOrder,
    Code,
    CopyOrder,
    EventHandler,
    LivePredicate,
    NodeOrder,
    Points,
    PredicateResult,
    Refusal,
    Room,
    Validity,
    Vote,
)
from pumice.core.plan import Reason
from pumice.core.resources import Floats

Function = Callable[..., Any]
Report = Callable[[str, Exception], None]
"""(extension point, what was raised)."""

FAILED: Final = "PluginFailed"
_ORDERS: Final = (
    "job_order",
    "queue_order",
    "victim_queue_order",
    "task_order",
    "sub_job_order",
    "cluster_order",
)
_NEWS: Final = (
    "job_enqueued",
    "admitted",
    "unplaced",
    "simulate_add",
    "simulate_remove",
    "reserved_nodes",
)
_REFUSALS: Final[dict[str, object]] = {
    "overused": True,
    "preemptive": False,
    "job_ready": False,
    "sub_job_ready": False,
    "job_starving": False,
    "allocatable": 0,
    "simulate_allocatable": 0,
    "job_pipelined": Vote.REJECT,
    "sub_job_pipelined": Vote.REJECT,
    "preemptable": ((), Vote.REJECT),
    "reclaimable": ((), Vote.REJECT),
    "beyond_due": ((), Vote.REJECT),
    "unified_evictable": ((), Vote.REJECT),
    "victim_tasks": (),
}


def describe(error: Exception) -> str:
    """Return what was raised, and where, in a line."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{where}"


@total_ordering
@dataclass(slots=True, eq=False)
class GuardedKey:
    """A sort key that a plugin made, or failed to make: those come last, as equals."""

    key: Any
    failed: bool
    report: Callable[[Exception], None]

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GuardedKey):
            return NotImplemented
        return self._compare(other, lambda: bool(self.key == other.key), if_failed=True)

    def __lt__(self, other: GuardedKey) -> bool:
        if self.failed is not other.failed:
            return other.failed
        return self._compare(other, lambda: bool(self.key < other.key), if_failed=False)

    def _compare(self, other: GuardedKey, compare: Callable[[], bool], *, if_failed: bool) -> bool:
        if self.failed or other.failed:
            return if_failed and self.failed is other.failed
        try:
            return compare()
        except Exception as error:
            self.report(error)
            return if_failed


@dataclass(frozen=True, slots=True)
class Guard:
    """Stands between a session and one plugin."""

    plugin: str
    #: nodes of the session
    nodes: int
    report: Report

    def points(self, points: Points) -> None:
        """Put the guard before every function that the plugin has registered."""
        for name in Points.__slots__:
            point = getattr(points, name)
            point.change(self.plugin, lambda function, name=name: self._guarded(name, function))

    def handler(self, handler: EventHandler) -> EventHandler:
        """Return a handler that loses the news of which the plugin's own fails."""
        allocate = self._asked("allocate", handler.allocate, lambda *_: None)
        deallocate = self._asked("deallocate", handler.deallocate, lambda *_: None)
        return EventHandler(allocate, deallocate)

    def _guarded(self, name: str, function: Any) -> Any:
        match function:
            case LivePredicate():
                return replace(
                    function,
                    applies=self._asked(name, function.applies, lambda cls: True, bool),
                    check=self._asked(name, function.check, self._no_node, self._on_nodes),
                )
            case Room():
                promised = function.promised and self._limit(name, function.promised)
                return replace(
                    function, copies=self._limit(name, function.copies), promised=promised
                )
            case NodeOrder():
                return replace(function, score=self._score(name, function.score))
            case CopyOrder():
                applies = self._asked(name, function.applies, lambda cls: False, bool)
                return CopyOrder(applies, self._score(name, function.score))
            case BatchNodeOrder():
                applies = self._asked(name, function.applies, lambda cls: False, bool)
                return BatchNodeOrder(applies, self._score(name, function.score))
            case _:
                return self._plain(name, function)

    def _plain(self, name: str, function: Function) -> Function:
        if name in _ORDERS:
            return self._key(name, function)
        if name in _REFUSALS:
            refusal = _REFUSALS[name]
            return self._asked(name, function, lambda *_: refusal, _like(refusal))
        if name in _NEWS:
            return self._asked(name, function, lambda *_: None)
        answers: dict[str, tuple[Function, Function]] = {
            "distinction": (lambda task: None, _same),
            "predicate": (self._no_node, self._on_nodes),
            "simulate_predicate": (self._no_node, self._on_nodes),
            "pre_predicate": (lambda cls: self._text(), _same),
            "job_enqueueable": (lambda job: (Vote.REJECT, self._reason()), _pair),
            "job_valid": (lambda job: Validity(FAILED, self._text()), _same),
            "hyper_node_order": (lambda *args: [0.0] * len(args[-1]), list),
            "hyper_node_gradient_for_job": (lambda job, within, _: [[within]], list),
            "hyper_node_gradient_for_sub_job": (lambda job, sub, within, _: [[within]], list),
        }
        return self._asked(name, function, *answers.get(name, (lambda *_: None, _same)))

    def _asked(
        self, name: str, function: Function, instead: Function, check: Function | None = None
    ) -> Function:
        """Return the function, with another answer where it fails, or its answer is of no use."""

        def guarded(*args: Any) -> Any:
            try:
                answer = function(*args)
                return check(answer) if check else answer
            except Exception as error:
                self.report(name, error)
                return instead(*args)

        return guarded

    def _key(self, name: str, function: Function) -> Function:
        def report(error: Exception) -> None:
            self.report(name, error)

        def key(*args: Any) -> GuardedKey:
            try:
                return GuardedKey(function(*args), False, report)
            except Exception as error:
                report(error)
                return GuardedKey(None, True, report)

        return key

    def _limit(self, name: str, function: Function) -> Function:
        return self._asked(name, function, lambda cls, at: np.zeros(at.size))

    def _score(self, name: str, function: Function) -> Function:
        def score(cls: Any, at: Any, *rest: Any) -> Floats:
            shape = (at.size, rest[-1].shape[-1]) if rest else (at.size,)
            try:
                scores = np.asarray(function(cls, at, *rest), float)
                np.broadcast_to(scores, shape)
                if not np.isfinite(scores).all():
                    raise ValueError("a score is no number")
            except Exception as error:
                self.report(name, error)
                return np.zeros(shape)
            return scores

        return score

    def _on_nodes(self, answer: Any) -> PredicateResult:
        if not isinstance(answer, PredicateResult):
            raise TypeError(f"{type(answer).__name__} is no PredicateResult")
        if answer.mask.shape != (self.nodes,):
            raise ValueError(f"a mask of shape {answer.mask.shape} for {self.nodes} nodes")
        return answer

    def _no_node(self, *_: Any) -> PredicateResult:
        nobody = np.zeros(self.nodes, bool)
        return PredicateResult(nobody, (Refusal(Code.ERROR, self._text(), ~nobody),))

    def _reason(self) -> Reason:
        return Reason("enqueue", self.plugin, self._text())

    def _text(self) -> str:
        return f"plugin {self.plugin} failed"


def _same(answer: Any) -> Any:
    return answer


def _pair(answer: Any) -> Any:
    vote, reason = answer
    return Vote(vote), reason


def _like(refusal: object) -> Function:
    """Return what makes sure that an answer is of the kind of a refusal."""
    match refusal:
        case Vote():
            return Vote
        case bool():
            return bool
        case int():
            return int
        case (_, Vote()):
            return lambda answer: (list(answer[0]), Vote(answer[1]))
        case _:
            return list
