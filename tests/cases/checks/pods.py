"""Checks of pods at one moment: how many, on which nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

from pumice.local.api import Object
from tests.auditor.requests import quantity
from tests.cases import podfacts
from tests.cases.checks.check import Check, Count
from tests.cases.moment import Moment
from tests.cases.record import Record
from tests.cases.selection import Selection, bound_of


class PodCount(Count, frozen=True, kw_only=True):
    """A check of how many of the selected pods have a quality."""

    select: Selection

    @property
    def subject(self) -> str:
        return str(self.select)

    @property
    def selections(self) -> tuple[Selection, ...]:
        return (self.select,)

    def counted(self, moment: Moment, has: Callable[[Object], bool]) -> str:
        """Return what is wrong with the number of pods for which this holds."""
        return self.compared(sum(map(has, self.select.of(moment))))


class BoundCount(PodCount, frozen=True, kw_only=True, tag="boundCount"):
    """Pods that have a node and have not failed."""

    def fault(self, record: Record, moment: Moment) -> str:
        return self.counted(moment, podfacts.is_bound)


class BoundAliveCount(PodCount, frozen=True, kw_only=True, tag="boundAliveCount"):
    """Pods that have a node and have not ended."""

    def fault(self, record: Record, moment: Moment) -> str:
        return self.counted(moment, podfacts.occupies)


class AliveCount(PodCount, frozen=True, kw_only=True, tag="aliveCount"):
    """Pods, with a node or without, that have not ended and are not about to go."""

    def fault(self, record: Record, moment: Moment) -> str:
        return self.counted(
            moment, lambda pod: not podfacts.is_finished(pod) and not podfacts.is_terminating(pod)
        )


class BoundTotal(Count, frozen=True, kw_only=True, tag="boundTotal"):
    """Bound pods of several selections in all."""

    selects: list[Selection]

    @property
    def subject(self) -> str:
        return " + ".join(map(str, self.selects))

    @property
    def selections(self) -> tuple[Selection, ...]:
        return tuple(self.selects)

    def fault(self, record: Record, moment: Moment) -> str:
        return self.compared(sum(len(_bound(select, moment)) for select in self.selects))


class OnNodes(Check, frozen=True, kw_only=True, tag="onNodes"):
    """The bound pods are on these nodes only, and there is one."""

    select: Selection
    nodes: list[str]

    @property
    def subject(self) -> str:
        return str(self.select)

    @property
    def selections(self) -> tuple[Selection, ...]:
        return (self.select,)

    def fault(self, record: Record, moment: Moment) -> str:
        got = {podfacts.node(pod) for pod in _bound(self.select, moment)}
        if not got:
            return "no pod is bound"
        if got <= set(self.nodes):
            return ""
        return f"on {', '.join(sorted(got))}, expected {', '.join(self.nodes)} only"


class DistinctNodes(Check, frozen=True, kw_only=True, tag="distinctNodes"):
    """No two of the bound pods share a node."""

    select: Selection

    @property
    def subject(self) -> str:
        return str(self.select)

    @property
    def selections(self) -> tuple[Selection, ...]:
        return (self.select,)

    def fault(self, record: Record, moment: Moment) -> str:
        used = Counter(podfacts.node(pod) for pod in _bound(self.select, moment))
        shared = sorted(node for node, pods in used.items() if pods > 1)
        return f"several pods on {', '.join(shared)}" if shared else ""


class NodeRequestedAtMost(Check, frozen=True, kw_only=True, tag="nodeRequestedAtMost"):
    """The unfinished pods of a node ask for no more of a resource than this."""

    node: str
    resource: str
    max: str | int | float

    @property
    def subject(self) -> str:
        return f"{self.node} {self.resource}"

    def fault(self, record: Record, moment: Moment) -> str:
        pods = [p for p in moment.pods.values() if podfacts.node(p) == self.node]
        asked = sum(
            (podfacts.request(p, self.resource) for p in pods if podfacts.occupies(p)), Fraction(0)
        )
        return (
            f"{float(asked):g}, expected {self.max} at most" if asked > quantity(self.max) else ""
        )


class ExactlyOneFullyBound(Check, frozen=True, kw_only=True, tag="exactlyOneFullyBound"):
    """One Job has so many bound pods, and each other one so many."""

    jobs: list[str]
    winner_bound: int
    loser_bound: int

    @property
    def subject(self) -> str:
        return ", ".join(self.jobs)

    def fault(self, record: Record, moment: Moment) -> str:
        got = [len(bound_of(job, moment)) for job in self.jobs]
        expected = [self.winner_bound] + [self.loser_bound] * (len(self.jobs) - 1)
        if sorted(got) == sorted(expected):
            return ""
        return f"bound pods {got}, expected {self.winner_bound} once, else {self.loser_bound}"


class BoundCountOf(Count, frozen=True, kw_only=True, tag="boundCountOf"):
    """Bound pods of the Job that was ahead, or of each other one."""

    jobs: list[str]
    which: Literal["winner", "loser"]

    @property
    def subject(self) -> str:
        return f"{self.which} of {', '.join(self.jobs)}"

    def fault(self, record: Record, moment: Moment) -> str:
        winner = record.winner(self.jobs, moment)
        faults = [
            self.compared(len(bound_of(job, moment)))
            for job in self.jobs
            if (job == winner) == (self.which == "winner")
        ]
        return "; ".join(filter(None, faults))


def _bound(selection: Selection, moment: Moment) -> list[Object]:
    return [pod for pod in selection.of(moment) if podfacts.is_bound(pod)]
