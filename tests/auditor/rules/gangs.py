"""
A: a gang starts whole or not at all.

Pods and PodGroups are replayed in the order of their resource versions. A gang is *partial*
while something of it is bound or succeeded, yet less than its minimum: in all, of a role, or in
sub-groups. Pending members that ask for nothing count towards the minimum.

```
                      a member bound                    the minimum reached
   nothing started ─────────────────────► partial ─────────────────────────► whole
          ▲                                │   ▲                               │
          └──── the last one gone ─────────┘   └── deleted, failed, raised ────┘
                                                       = excused
```
A stretch of being partial may last `limit_s`. It ends early, excused, when a member is deleted
or fails by somebody else's doing or the minimum is raised; the excuse holds until the gang is
whole or empty again. A waiting member may be deleted while the others are being bound, so that
excuse, and a raised minimum, also serve a stretch that begins just after.

Our own components are somebody else only towards members that had started (they end and restart
jobs): a member that they replace before it is bound is no excuse, and nothing that the extender
removes is. Time between `pause` and `resume` counts for nobody, and `killed` starts the clock
again.

A binding is dated by the audit log where it is there, else by the watch.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tests.auditor.facts import Gang, Mark, Pod, Sighting, Violation
from tests.auditor.history import History, Settings
from tests.auditor.rules.evictions import removes_pod

RECENT_S = 2.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """A gang was partial from `start` to `end`; `shortfall` says what was missing last."""

    gang: str
    shortfall: str
    started: int
    minimum: int
    start: float
    end: float


@dataclass(slots=True)
class Watched:
    """A gang during the replay."""

    gang: Gang | None = None
    members: dict[str, Pod] = field(default_factory=dict)
    open: Stretch | None = None
    excused: bool = False
    excuse_at: float = float("-inf")


def judge(history: History, settings: Settings) -> list[Violation]:
    """Return one violation for each stretch that a gang stayed partial too long."""
    pauses = list(history.pauses())
    violations = []
    for stretch in stretches(history, settings):
        seconds, since = _longest_count(stretch, history.marks, pauses)
        limit = _limit(stretch, history.marks, settings)
        if seconds > limit:
            violations.append(_violation(stretch, seconds, since, limit))
    return violations


def stretches(history: History, settings: Settings) -> list[Stretch]:
    """Return every stretch in which some gang was partial without an excuse."""
    return Replay(history, settings).run()


class Replay:
    """Goes through the sightings once and keeps each gang's state."""

    def __init__(self, history: History, settings: Settings) -> None:
        self.history = history
        self.settings = settings
        self.bound_at = {uid: request.done for uid, request in history.bindings().items()}
        self.removals = _removals(history)
        self.gangs: dict[str, Watched] = {}
        self.group_of: dict[str, str] = {}
        self.done: list[Stretch] = []

    def run(self) -> list[Stretch]:
        """Replay everything; what is still open ends with the history."""
        history = self.history
        sightings: list[Sighting[Pod] | Sighting[Gang]] = [*history.pods, *history.gangs]
        for seen in sorted(sightings, key=lambda s: s.rv):
            match seen.object:
                case Gang() as gang:
                    self._gang(gang, seen.at, gone=seen.gone)
                case Pod() as pod:
                    self._pod(pod, seen.at, gone=seen.gone)
        for watched in self.gangs.values():
            self._close(watched, history.ended)
        return self.done

    def _gang(self, gang: Gang, at: float, *, gone: bool) -> None:
        watched = self.gangs.setdefault(gang.key, Watched())
        if watched.gang is not None and _raised(watched.gang, gang):
            self._excuse(watched, at, lingers=True)
        watched.gang = None if gone else gang
        self._look(watched, at)

    def _pod(self, pod: Pod, at: float, *, gone: bool) -> None:
        key = self.group_of.get(pod.uid) or f"{pod.namespace}/{pod.group}"
        if not pod.group or pod.scheduler not in self.settings.schedulers:
            return
        self.group_of[pod.uid] = key
        watched = self.gangs.setdefault(key, Watched())
        before = watched.members.pop(pod.uid, None)
        if not gone:
            watched.members[pod.uid] = pod
        if before is not None and self._is_excuse(before, pod, gone=gone):
            self._excuse(watched, at, lingers=not before.node)
        newly_bound = pod.node and not (before and before.node)
        self._look(watched, min(self.bound_at.get(pod.uid, at), at) if newly_bound else at)

    def _is_excuse(self, before: Pod, now: Pod, *, gone: bool) -> bool:
        """Whether the member was deleted or failed by somebody else's doing just now."""
        if before.phase != "Failed" and now.phase == "Failed":
            return True
        if before.deleting or not (gone or now.deleting):
            return False
        remover = self.removals.get(before.uid)
        if remover == self.settings.extender_user:
            return False
        had_started = bool(before.node) or before.finished
        return had_started or remover is None or not self.settings.is_own(remover)

    def _excuse(self, watched: Watched, at: float, *, lingers: bool) -> None:
        """Let the gang be partial from now until it is whole or empty."""
        self._close(watched, at)
        watched.excused = True
        if lingers:
            watched.excuse_at = at

    def _look(self, watched: Watched, at: float) -> None:
        """Open or close the gang's stretch after a change."""
        gang, shortfall = watched.gang, _shortfall(watched)
        if gang is None or not shortfall:
            self._close(watched, at)
            watched.excused = False
            return
        watched.excused |= at - watched.excuse_at <= RECENT_S
        if not watched.excused:
            start = watched.open.start if watched.open else at
            started = sum(pod.counts for pod in watched.members.values())
            watched.open = Stretch(gang.key, shortfall, started, gang.minimum, start, at)

    def _close(self, watched: Watched, at: float) -> None:
        if watched.open is not None and at > watched.open.start:
            self.done.append(replace(watched.open, end=at))
        watched.open = None


def _shortfall(watched: Watched) -> str:
    """Say what a started gang lacks; empty when it is whole or nothing of it has started."""
    gang, pods = watched.gang, watched.members.values()
    if gang is None or not any(pod.counts for pod in pods):
        return ""
    there = [pod for pod in pods if pod.counts or pod.waits_for_nothing]
    if len(there) < gang.minimum:
        return f"{len(there)} of its minimum of {gang.minimum}"
    return _short_role(gang, there) or _short_sub_group(gang, there)


def _short_role(gang: Gang, there: Iterable[Pod]) -> str:
    """Minima by role count only while their sum is within the gang's minimum, as in Volcano."""
    if sum(gang.roles.values()) > gang.minimum:
        return ""
    started = Counter(pod.role for pod in there)
    for role, least in sorted(gang.roles.items()):
        if started[role] < least:
            return f"{started[role]} of the {least} that role {role} needs"
    return ""


def _short_sub_group(gang: Gang, there: Iterable[Pod]) -> str:
    """A pod belongs to the first policy that is for it."""
    parts: dict[str, Counter[tuple[str, ...]]] = {p.name: Counter() for p in gang.sub_groups}
    for pod in there:
        for policy in gang.sub_groups:
            if (part := policy.part_of(pod.labels)) is not None:
                parts[policy.name][part] += 1
                break
    for policy in gang.sub_groups:
        full = sum(size >= policy.size for size in parts[policy.name].values())
        if full < policy.least:
            return f"{full} of the {policy.least} sub-groups that {policy.name} needs"
    return ""


def _raised(before: Gang, now: Gang) -> bool:
    if before.uid != now.uid:
        return False
    higher_role = any(n > before.roles.get(role, 0) for role, n in now.roles.items())
    return now.minimum > before.minimum or higher_role or now.sub_groups != before.sub_groups


def _removals(history: History) -> Mapping[str, str]:
    """Return who removed each pod first; of a pod removed with its namespace nobody is known."""
    users: dict[str, str] = {}
    for request in sorted(history.requests, key=lambda r: r.done):
        if removes_pod(request) and request.succeeded and request.verb != "deletecollection":
            users.setdefault(history.uid_of(request), request.user)
    return users


def _longest_count(
    stretch: Stretch, marks: list[Mark], pauses: list[tuple[float, float]]
) -> tuple[float, float]:
    """Return the longest time between kills within the stretch, pauses left out, and its start."""
    kills = [m.at for m in marks if m.kind == "killed" and stretch.start < m.at < stretch.end]
    edges = [stretch.start, *kills, stretch.end]
    return max(
        (end - start - sum(_overlap(start, end, pause) for pause in pauses), start)
        for start, end in itertools.pairwise(edges)
    )


def _overlap(start: float, end: float, other: tuple[float, float]) -> float:
    return max(0.0, min(end, other[1]) - max(start, other[0]))


def _limit(stretch: Stretch, marks: list[Mark], settings: Settings) -> float:
    """Return the most lenient limit that was in force during the stretch."""
    at_start, during = settings.limit_s, [0.0]
    for mark in marks:
        if mark.kind == "limit" and mark.at <= stretch.start:
            at_start = mark.seconds
        elif mark.kind == "limit" and mark.at < stretch.end:
            during.append(mark.seconds)
    return max(at_start, *during)


def _violation(stretch: Stretch, seconds: float, since: float, limit: float) -> Violation:
    return Violation(
        "A",
        stretch.gang,
        f"gang {stretch.gang} showed {stretch.shortfall} for {seconds:.1f} s, longer than the "
        f"{limit:g} s allowed",
        (since, stretch.end),
        {
            "started": stretch.started,
            "minimum": stretch.minimum,
            "seconds": round(seconds, 3),
            "limit": limit,
        },
    )
