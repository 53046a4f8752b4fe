"""
All that was seen during a run, in the order of its arrival, and the few questions asked of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.auditor.facts import Dump, Gang, Mark, Node, Object, Pod, Request, Sighting


@dataclass(frozen=True, slots=True)
class Settings:
    """Who is who in the cluster under audit, and how strict to be."""

    extender_user: str
    own_users: frozenset[str] = frozenset()
    scheduler_users: frozenset[str] = frozenset()
    schedulers: frozenset[str] = frozenset({"volcano"})
    rules: str = "ABCDEF"
    limit_s: float = 5.0
    quiet_s: float = 2.0
    patience_s: float = 2.0
    shared_nodes: bool = False

    def is_own(self, user: str) -> bool:
        """Whether the user is one of our components."""
        return user == self.extender_user or user in self.own_users


@dataclass(slots=True)
class Tide:
    """How high resource versions are known to have been, over time."""

    times: list[float] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, seen: Iterator[tuple[float, int]]) -> Tide:
        """Return the running maximum of (time, resourceVersion) pairs in any order."""
        tide, highest = cls(), 0
        for at, rv in sorted(seen):
            if rv > highest:
                highest = rv
                tide.times.append(at)
                tide.marks.append(rv)
        return tide

    def before(self, at: float) -> int:
        """Return the highest version known strictly before this moment."""
        index = bisect_left(self.times, at)
        return self.marks[index - 1] if index else 0


@dataclass(slots=True)
class History:
    """Facts in; sightings that change nothing a rule looks at leave only their version."""

    started: float = 0.0
    ended: float = 0.0
    pods: list[Sighting[Pod]] = field(default_factory=list)
    nodes: list[Sighting[Node]] = field(default_factory=list)
    gangs: list[Sighting[Gang]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    dumps: list[Dump] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    decided: set[str] = field(default_factory=set)
    error_answers: int | None = None
    versions: list[tuple[float, int]] = field(default_factory=list)
    latest: dict[str, Pod | Node | Gang] = field(default_factory=dict)
    names: dict[str, list[tuple[float, str]]] = field(default_factory=dict)

    def saw(self, sightings: list[Sighting[Object]], seen: Sighting[Object]) -> bool:
        """Take in a sighting for one of the three lists; return whether it told something new."""
        self.versions.append((seen.at, seen.rv))
        uid = seen.object.uid
        if not seen.gone and self.latest.get(uid) == seen.object:
            return False
        if seen.gone:
            self.latest.pop(uid, None)
        else:
            self.latest[uid] = seen.object
        sightings.append(seen)
        return True

    def saw_pod(self, seen: Sighting[Pod]) -> bool:
        """Take in a pod."""
        holders = self.names.setdefault(seen.object.key, [])
        if not holders or holders[-1][1] != seen.object.uid:
            holders.append((seen.at, seen.object.uid))
        return self.saw(self.pods, seen)

    def saw_node(self, seen: Sighting[Node]) -> bool:
        """Take in a node."""
        return self.saw(self.nodes, seen)

    def saw_gang(self, seen: Sighting[Gang]) -> bool:
        """Take in a PodGroup."""
        return self.saw(self.gangs, seen)

    def tide(self) -> Tide:
        """Return what the watch and the answers of the API server say of the version over time."""
        answers = ((r.done, r.rv) for r in self.requests if r.rv is not None)
        return Tide.of(iter([*self.versions, *answers]))

    def pods_by_uid(self) -> dict[str, Pod]:
        """Return each pod ever seen, as it was last."""
        return {seen.object.uid: seen.object for seen in self.pods}

    def uid_of(self, request: Request) -> str:
        """
        Return the uid of the pod that a request is about, empty when unknown.

        A request that names no uid is about the pod that bore the name last before its end, or
        first after it.
        """
        if request.uid:
            return request.uid
        holders = self.names.get(request.target, [])
        before = [uid for at, uid in holders if at <= request.done]
        candidates = before[-1:] or [uid for _, uid in holders[:1]]
        return candidates[0] if candidates else ""

    def pauses(self) -> Iterator[tuple[float, float]]:
        """Yield the times that count for nobody."""
        since: float | None = None
        for mark in self.marks:
            if mark.kind == "pause" and since is None:
                since = mark.at
            elif mark.kind == "resume" and since is not None:
                yield since, mark.at
                since = None
        if since is not None:
            yield since, self.ended

    def bindings(self) -> dict[str, Request]:
        """Return the binding that succeeded, by pod uid."""
        found = (r for r in self.requests if r.binds and r.succeeded and not r.dry_run)
        return {self.uid_of(request): request for request in found}
