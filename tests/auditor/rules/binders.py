"""
C: only the extender binds pods of ours.

A pod that is created with a node name was bound by nobody, and a binding that the API server
refused bound nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.auditor.facts import Violation
from tests.auditor.history import History, Settings


def judge(history: History, settings: Settings) -> list[Violation]:
    """Return one violation for each foreign binding of a pod of ours."""
    return list(_foreign_bindings(history, settings))


def _foreign_bindings(history: History, settings: Settings) -> Iterator[Violation]:
    pods = history.pods_by_uid()
    for uid, request in history.bindings().items():
        pod = pods.get(uid)
        if pod is None or pod.scheduler not in settings.schedulers:
            continue
        if request.user != settings.extender_user:
            yield Violation(
                "C",
                pod.key,
                f"pod {pod.key} (schedulerName {pod.scheduler}) was bound to node {request.node} "
                f"by {request.user}, not by {settings.extender_user}",
                (request.at, request.done),
            )
