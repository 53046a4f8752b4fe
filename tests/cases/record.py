"""
What was seen of a case while it ran: all that its checks may look at.

Times are monotonic seconds. Pod histories hold each event of a watch in the order of its arrival;
a removal is the first request that removed a pod, whoever sent it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pumice.local.api import Object
from pumice.local.watching import Seen, key_of
from tests.cases import podfacts
from tests.cases.moment import Moment
from tests.cases.selection import Selection, leader

END = "end"
"""The name of the moment after the last step."""


class Window(NamedTuple):
    """A stretch of time."""

    begin: float
    end: float

    def holds(self, at: float) -> bool:
        """Whether a point of time is within it."""
        return self.begin <= at <= self.end


class Answer(NamedTuple):
    """How the API server answered a request; a message comes with a refusal."""

    status: int
    message: str = ""

    @property
    def accepted(self) -> bool:
        """Whether it did as it was asked."""
        return self.status < 300


class Removal(NamedTuple):
    """A request that removed a pod; `platform` where the scheduler or its extender sent it."""

    at: float
    uid: str
    platform: bool


class Revival(NamedTuple):
    """A component that had ended by itself came back."""

    at: float
    component: str


@dataclass(slots=True)
class Record:
    """Histories, moments and windows by name, answers by step."""

    pods: Sequence[Seen] = ()
    jobs: Sequence[Seen] = ()
    groups: Sequence[Seen] = ()
    moments: dict[str, Moment] = field(default_factory=dict)
    windows: dict[str, Window] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    winners: dict[frozenset[str], str] = field(default_factory=dict)
    removals: dict[str, Removal] = field(default_factory=dict)
    revivals: list[Revival] = field(default_factory=list)

    def ever(self, moment: Moment) -> Moment:
        """Return a moment with the Jobs and PodGroups that are gone as well."""
        jobs, groups = _last(self.jobs), _last(self.groups)
        return replace(moment, jobs={**jobs, **moment.jobs}, groups={**groups, **moment.groups})

    def winner(self, jobs: Sequence[str], moment: Moment) -> str:
        """Return the Job that a step took for the winner, else the one ahead at the moment."""
        return self.winners.get(frozenset(jobs)) or leader(jobs, moment)

    def evictions(self, selection: Selection, moment: Moment, during: Window) -> list[Object]:
        """Return the bound, unfinished pods that the platform removed in the time given."""
        last = {
            seen.object["metadata"]["uid"]: seen.object
            for seen in self.pods
            if seen.kind != "DELETED" and not podfacts.is_terminating(seen.object)
        }
        scene = self.ever(moment)
        removed = (
            last[removal.uid]
            for removal in self.removals.values()
            if removal.platform and during.holds(removal.at) and removal.uid in last
        )
        return [pod for pod in removed if podfacts.occupies(pod) and selection.picks(pod, scene)]

    def created(self, selection: Selection, moment: Moment, during: Window) -> list[Object]:
        """Return the pods that appeared in the time given."""
        scene = self.ever(moment)
        # A pod gets the name of its PodGroup only after its creation.
        last = {seen.object["metadata"]["uid"]: seen.object for seen in self.pods}
        new = [uid for uid, seen in first_sightings(self.pods).items() if during.holds(seen.at)]
        return [last[uid] for uid in new if selection.picks(last[uid], scene)]


def first_sightings(history: Iterable[Seen]) -> dict[str, Seen]:
    """Return the first event of each object, by uid."""
    found: dict[str, Seen] = {}
    for seen in history:
        found.setdefault(seen.object["metadata"]["uid"], seen)
    return found


def _last(history: Iterable[Seen]) -> Mapping[str, Object]:
    return {key_of(seen.object): seen.object for seen in history}
