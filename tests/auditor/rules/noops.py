"""
F: no write of ours leaves its object as it was.

The API server answers a patch or update that changes nothing with the object's old
resourceVersion. That version existed before the request came when

* the watch or an earlier answer, about any object, showed a version at least as high: versions
  of one etcd only grow; or
* another write of the same object was answered with it: a version is made by one write. Where
  the two overlap and the other is not ours, it stays open which of them did nothing.

A component whose answer was lost may write again what it has written: a repetition of one's own
write is excused when that one ended in a pause (a cut connection, say) or just before. An API
server that is killed takes the last lines of its log with it: a version that no line accounts
for, and that came up in a pause or just before, may be written again soon after.

Writes whose answers the audit policy leaves out cannot be judged: for the objects that we place
by, that is an objection; other writes are passed over. An object that vanishes with its last
finalizer is answered with its old version, too, though much changed. Leases are written to say
"still here".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.auditor.facts import Request, Violation
from tests.auditor.history import History, Settings

LOST_S = 1.0
REPEATED_S = 15.0
PLACED_BY = frozenset({"pods", "podgroups", "jobs", "queues"})


def judge(history: History, settings: Settings) -> list[Violation]:
    """Return one violation for each write of ours that changed nothing, or could not be judged."""
    ours = [r for r in history.requests if settings.is_own(r.user) and is_change(r)]
    return [*_without_answer(ours), *_noops(history, ours, settings)]


def is_change(request: Request) -> bool:
    """Whether the rule is about this request."""
    return (
        request.verb in ("patch", "update")
        and request.succeeded
        and not request.dry_run
        and not request.last_finalizer
        and request.resource != "leases"
    )


def _noops(history: History, ours: list[Request], settings: Settings) -> Iterator[Violation]:
    tide = history.tide()
    makers: dict[tuple[str, str, str, int], list[Request]] = defaultdict(list)
    for request in history.requests:
        if request.rv is not None and request.verb in ("create", "patch", "update"):
            makers[_version_of(request)].append(request)
    pauses = list(history.pauses())
    first_seen = {rv: at for at, rv in sorted(history.versions, reverse=True)}
    for request in ours:
        if request.rv is None:
            continue
        twins = [r for r in makers[_version_of(request)] if r is not request]
        earlier = [r for r in twins if r.done <= request.done and settings.is_own(r.user)]
        is_noop = request.rv <= tide.before(request.at) or bool(earlier)
        if not is_noop or _answer_was_lost(request, earlier, pauses):
            continue
        if twins or not _line_was_lost(request, first_seen.get(request.rv), pauses):
            yield _violation(request)


def _answer_was_lost(
    request: Request, earlier: list[Request], pauses: list[tuple[float, float]]
) -> bool:
    """Whether it repeats a write of its own user that ended when connections were being cut."""
    return any(
        r.user == request.user and start - LOST_S <= r.done <= end
        for r in earlier
        for start, end in pauses
    )


def _line_was_lost(
    request: Request, first_seen: float | None, pauses: list[tuple[float, float]]
) -> bool:
    """Whether it may repeat a write that a server did right before it was killed."""
    return any(
        start <= request.at <= end + REPEATED_S
        and (first_seen is None or first_seen >= start - LOST_S)
        for start, end in pauses
    )


def _version_of(request: Request) -> tuple[str, str, str, int]:
    return request.group, request.resource, request.target, request.rv or 0


def _violation(request: Request) -> Violation:
    return Violation(
        "F",
        f"{request.resource} {request.target}",
        f"{request.verb} of {request.what} {request.target} by {request.user} changed nothing: "
        f"it was answered with resourceVersion {request.rv}, which the object had before",
        (request.at, request.done),
        {"resourceVersion": request.rv or 0},
    )


def _without_answer(ours: list[Request]) -> Iterator[Violation]:
    """Complain when the audit policy keeps the answers back: then this rule would judge nothing."""
    blind = [r for r in ours if r.rv is None and r.resource in PLACED_BY]
    if blind:
        yield Violation(
            "F",
            "audit log",
            f"{len(blind)} writes of ours stand in the audit log without their answer, the first "
            f"a {blind[0].verb} of {blind[0].what} {blind[0].target}: "
            "the audit policy needs level RequestResponse",
            numbers={"writes": len(blind)},
        )
