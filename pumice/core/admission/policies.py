"""Lifecycle policies of a Job or of one of its tasks: one reaction for each event or exit code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pumice.core.admission.errors import FieldError, invalid
from pumice.core.api.batch import LifecyclePolicy
from pumice.core.api.job_rules import ACTIONS, EVENTS

ANY_EVENT = "*"


def check(policies: Sequence[LifecyclePolicy] | None, field: str, name: str) -> list[FieldError]:
    """
    Return what is wrong with the policies at `field`; texts call the list `name`.

    Unlike in Volcano, an action is checked for exit codes too: whatever triggers it, an internal
    action is not the user's to order.
    """
    found: list[FieldError] = []
    events: set[str] = set()
    codes: set[int] = set()
    for index, policy in enumerate(policies or ()):
        at = f"{field}[{index}]"
        own = _events(policy)
        code = policy.exit_code
        found += _form(policy, own, at, name)
        found += [
            FieldError(f"{at}.event", f"duplicate event {event}  across different policy")
            for event in own
            if event in events
        ]
        if code is not None and code in codes:
            found.append(FieldError(f"{at}.exitCode", f"duplicate exitCode {code}"))
        events.update(own)
        codes.update(() if code is None else (code,))
    if ANY_EVENT in events and len(events) > 1:
        text = "if there's * here, no other policy should be here"
        found.append(FieldError(field, text))
    return found


def _events(policy: LifecyclePolicy) -> list[str]:
    """Return the events, each once: twice in one policy is no mistake."""
    given = [*(policy.events or ()), *((policy.event,) if policy.event else ())]
    return list(dict.fromkeys(given))


def _form(
    policy: LifecyclePolicy, events: Sequence[str], at: str, name: str
) -> Iterator[FieldError]:
    """Yield what is wrong with one policy by itself."""
    if events and policy.exit_code is not None:
        yield FieldError(at, "must not specify event and exitCode simultaneously")
    if not events and policy.exit_code is None:
        yield FieldError(at, "either event and exitCode should be specified")
    if policy.exit_code == 0:
        yield FieldError(f"{at}.exitCode", "0 is not a valid error code")
    for event in events:
        if event not in EVENTS:
            why = f"invalid policy event, valid events are {', '.join(EVENTS)}"
            yield FieldError(f"{at}.event", invalid(name, event, why))
    if policy.action not in ACTIONS:
        why = f"invalid policy action, valid actions are {', '.join(ACTIONS)}"
        yield FieldError(f"{at}.action", invalid(name, policy.action, why))
