"""
D: what the extender removes, a session decided to remove.

Attempts count whether or not the API server let them pass.
"""

from __future__ import annotations

from tests.auditor.facts import Request, Violation
from tests.auditor.history import History, Settings


def judge(history: History, settings: Settings) -> list[Violation]:
    """Return one violation for each removal by the extender of a pod that nobody decided."""
    return [
        _violation(request, settings)
        for request in history.requests
        if request.user == settings.extender_user
        and removes_pod(request)
        and not request.dry_run
        and (request.verb == "deletecollection" or history.uid_of(request) not in history.decided)
    ]


def removes_pod(request: Request) -> bool:
    """Whether it is an eviction or a delete of pods."""
    if request.resource != "pods":
        return False
    evicts = request.verb == "create" and request.subresource == "eviction"
    return evicts or (request.verb in ("delete", "deletecollection") and not request.subresource)


def _violation(request: Request, settings: Settings) -> Violation:
    deed = "evict" if request.subresource else request.verb
    return Violation(
        "D",
        request.target,
        f"{settings.extender_user} asked to {deed} pod {request.target} (answer {request.code}), "
        "which no session decided",
        (request.at,),
        {"code": request.code},
    )
