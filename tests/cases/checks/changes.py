"""Checks of what happened over time: removals, creations, peaks, delays, restarts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import inf
from typing import Literal

from pumice.local.watching import Seen
from tests.auditor.requests import quantity
from tests.cases import podfacts
from tests.cases.checks.check import Check
from tests.cases.checks.pods import PodCount
from tests.cases.moment import Moment
from tests.cases.record import Record, Window, first_sightings
from tests.cases.selection import Selection, key_of


class EvictedCount(PodCount, frozen=True, kw_only=True, tag="evictedCount"):
    """Bound, unfinished pods that the platform removed, up to the moment or in a window."""

    window: str | None = None

    def fault(self, record: Record, moment: Moment) -> str:
        during = record.windows[self.window] if self.window else Window(-inf, moment.at)
        return self.compared(len(record.evictions(self.select, moment, during)))


class EvictedDuring(PodCount, frozen=True, kw_only=True, tag="evictedDuring"):
    """Bound, unfinished pods that the platform removed in a window."""

    window: str

    def fault(self, record: Record, moment: Moment) -> str:
        during = record.windows[self.window]
        return self.compared(len(record.evictions(self.select, moment, during)))


class CreatedDuring(PodCount, frozen=True, kw_only=True, tag="createdDuring"):
    """Pods that appeared in a window."""

    window: str

    def fault(self, record: Record, moment: Moment) -> str:
        during = record.windows[self.window]
        return self.compared(len(record.created(self.select, moment, during)))


class NeverAbove(Check, frozen=True, kw_only=True, tag="neverAbove"):
    """What the bound, unfinished pods ask for stays below a limit throughout a window."""

    select: Selection
    resource: str
    max: str | int | float
    window: str

    @property
    def subject(self) -> str:
        return f"{self.resource} of {self.select}"

    @property
    def selections(self) -> tuple[Selection, ...]:
        return (self.select,)

    def fault(self, record: Record, moment: Moment) -> str:
        scene = record.ever(moment)
        picked = (seen for seen in record.pods if self.select.picks(seen.object, scene))
        peak = max(_levels(picked, self.resource, record.windows[self.window]))
        return f"{float(peak):g}, expected {self.max} at most" if peak > quantity(self.max) else ""


class MaxBindDelaySeconds(Check, frozen=True, kw_only=True, tag="maxBindDelaySeconds"):
    """The longest time from the creation of the Job, or else of the pod, until it is bound."""

    select: Selection
    max: float

    @property
    def subject(self) -> str:
        return str(self.select)

    @property
    def selections(self) -> tuple[Selection, ...]:
        return (self.select,)

    def fault(self, record: Record, moment: Moment) -> str:
        pods = self.select.of(moment)
        if not pods:
            return "there is no such pod"
        unbound = [key_of(pod) for pod in pods if not podfacts.node(pod)]
        if unbound:
            return f"not bound: {', '.join(unbound)}"
        bound = first_sightings(seen for seen in record.pods if podfacts.node(seen.object))
        born = {uid: seen.at for uid, seen in first_sightings(record.pods).items()}
        submitted = {key_of(s.object): s.at for s in first_sightings(record.jobs).values()}
        delays = (
            bound[uid].at - submitted.get(podfacts.job(pod), born[uid])
            for pod in pods
            if (uid := pod["metadata"]["uid"]) in bound
        )
        longest = max(delays, default=0.0)
        return f"{longest:.1f} s, expected {self.max:g} s at most" if longest > self.max else ""


class RestartCount(Check, frozen=True, kw_only=True, tag="restartCount"):
    """How often a component came back without a step having told it to."""

    component: Literal["extender", "scheduler"]
    since: str
    equals: int

    @property
    def subject(self) -> str:
        return self.component

    def fault(self, record: Record, moment: Moment) -> str:
        during = Window(record.moments[self.since].at, moment.at)
        got = sum(
            during.holds(revival.at) and revival.component == self.component
            for revival in record.revivals
        )
        return "" if got == self.equals else f"{got}, expected {self.equals}"


def _levels(history: Iterable[Seen], resource: str, window: Window) -> Iterator[Fraction]:
    """Yield what the pods ask for in all, at the window's begin and after each change in it."""
    held: dict[str, Fraction] = {}
    begun = False
    for at, kind, pod in history:
        if at > window.end:
            break
        if at >= window.begin and not begun:
            yield sum(held.values(), Fraction(0))
            begun = True
        uid = pod["metadata"]["uid"]
        if kind != "DELETED" and podfacts.occupies(pod):
            held[uid] = podfacts.request(pod, resource)
        else:
            held.pop(uid, None)
        if begun:
            yield sum(held.values(), Fraction(0))
    if not begun:
        yield sum(held.values(), Fraction(0))
