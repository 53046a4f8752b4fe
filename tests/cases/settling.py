"""When a cluster has come to rest: no binding and no phase has changed for a while."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from pumice.local.api import Object
from pumice.local.watching import Seen
from tests.cases import podfacts

Pulse = tuple[str, ...]
LOOK_S = 0.5
"""How long to wait before a check that does not hold is looked at again."""


def pulse(body: Object) -> Pulse:
    """Return what of an object is looked at: which it is, its phase, its node."""
    status = body.get("status", {})
    state = status.get("state", "")
    phase = state.get("phase", "") if isinstance(state, dict) else state
    node = podfacts.node(body) if "spec" in body else ""
    return (body["metadata"]["uid"], status.get("phase", ""), phase, node)


class Pulses:
    """Follows the histories of pods, Jobs, PodGroups and queues."""

    def __init__(self, *histories: Sequence[Seen]) -> None:
        self._histories = histories
        self._read = [0] * len(histories)
        self._known: dict[str, Pulse] = {}
        self._changed = 0.0

    def last_change(self) -> float:
        """Return when something last changed, in monotonic seconds."""
        for index, history in enumerate(self._histories):
            fresh = history[self._read[index] :]
            self._read[index] += len(fresh)
            for seen in fresh:
                self._take(seen)
        return self._changed

    def _take(self, seen: Seen) -> None:
        uid, now = seen.object["metadata"]["uid"], pulse(seen.object)
        if seen.kind == "DELETED":
            self._known.pop(uid, None)
            self._changed = seen.at
        elif self._known.get(uid) != now:
            self._known[uid] = now
            self._changed = seen.at


def settle(
    last_change: Callable[[], float],
    holds: Callable[[], bool],
    wait: Callable[[float], None],
    *,
    quiet_s: float,
    timeout_s: float,
    clock: Callable[[], float] = monotonic,
) -> None:
    """Wait until all has been quiet for so long and the check holds, or until the timeout."""
    began = now = clock()
    while now < began + timeout_s:
        still_s = quiet_s - (now - max(began, last_change()))
        if still_s <= 0 and holds():
            return
        wait(min(max(still_s, LOOK_S), began + timeout_s - now))
        now = clock()
