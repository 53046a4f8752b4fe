"""
What the API server refuses about a Command: an order that nobody would carry out.

Volcano takes any text as an action and does something with it. A Command names no task and no
pod, so the actions that restart one have nothing to act on.
"""

from __future__ import annotations

from collections.abc import Mapping

from pumice.core import names
from pumice.core.api import cel
from pumice.core.api.bus import Command
from pumice.core.api.schema import Rules

ORDERS: Mapping[tuple[str, str], tuple[str, ...]] = {
    (names.BATCH_API, "Job"): (
        "AbortJob",
        "RestartJob",
        "TerminateJob",
        "CompleteJob",
        "ResumeJob",
        "SyncJob",
    ),
    (names.SCHEDULING_API, "Queue"): ("OpenQueue", "CloseQueue", "SyncQueue"),
}
"""API version and kind of a target -> the actions that it takes."""

NO_TARGET = "a command must have a target"
NO_TAKER = f"target must be one of {', '.join(f'{kind} of {api}' for api, kind in ORDERS)}"


def no_order(kind: str) -> str:
    """Return what is wrong with an action that a kind does not take."""
    taken = next(actions for (_, known), actions in ORDERS.items() if known == kind)
    return f"invalid action, a {kind} takes {', '.join(taken)}"


def _is(api: str, kind: str) -> str:
    return f"(self.target.apiVersion == '{api}' && self.target.kind == '{kind}')"


_COMMAND = [
    cel.rule("has(self.target)", NO_TARGET),
    cel.rule(f"!has(self.target) || {' || '.join(_is(*target) for target in ORDERS)}", NO_TAKER),
    *(
        cel.rule(
            f"!has(self.target) || !{_is(api, kind)}"
            f" || {cel.text('self.action')} in {cel.words(actions)}",
            no_order(kind),
        )
        for (api, kind), actions in ORDERS.items()
    ),
]

COMMAND_RULES: Rules = {Command: _COMMAND}
"""The rules by the struct that they are about."""
