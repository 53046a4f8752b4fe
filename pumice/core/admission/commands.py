"""A Command: an action that its target takes. The API server refuses the same by itself."""

from __future__ import annotations

from pumice.core.admission.errors import FieldError
from pumice.core.api.bus import Command
from pumice.core.api.command_rules import NO_TAKER, NO_TARGET, ORDERS, no_order


def check(command: Command) -> list[FieldError]:
    """Return what is wrong with a new Command."""
    target = command.target
    if target is None:
        return [FieldError("target", NO_TARGET)]
    taken = ORDERS.get((target.api_version, target.kind))
    if taken is None:
        return [FieldError("target", NO_TAKER)]
    if command.action not in taken:
        return [FieldError("action", no_order(target.kind))]
    return []
