"""
A Job's desk: what is in progress for it, and when there is something to do again.

    inbox      requests, in order                      write_by  when counters that wait are written
    again      orders that failed                      look_at   when names in use are looked at
    delayed    orders that wait for their timeout      refused   pods that wait before the next try

Mere syncs of one Job rest a while after each other; orders and delayed actions do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pumice.core.jobs import delays
from pumice.core.jobs import types as t
from pumice.kube.retry import wait_s

QUIET_S: Final = 0.4
"""How long a write of mere counters waits for more of them."""
AT_ONCE: Final = 3
"""As many times in a row a pod that a kubelet refuses is made again at once."""
TURNED_AWAY_S: Final = (1.0, 60.0)
"""Shortest and longest wait after that."""


@dataclass(slots=True)
class Desk:
    """What is in progress for one Job, none of which must outlive the process."""

    #: requests that wait, in order, each once
    inbox: dict[t.Request, None] = field(default_factory=dict)
    #: a sync is wanted
    unsynced: bool = False
    #: orders that failed, in order; tried again before anything new once they have rested
    again: dict[t.Decision, None] = field(default_factory=dict)
    delayed: delays.Waiting = field(default_factory=dict)
    #: before this (monotonic) nothing is tried again, and no mere sync is made
    rest_until: float = 0.0
    #: when counters are written at the latest (monotonic); 0 where none wait
    write_by: float = 0.0
    #: when to look again whether a pod's name is free (monotonic); 0 where all are
    look_at: float = 0.0
    #: pods that the API server refused, and when they are tried again (monotonic)
    refused: frozenset[str] = frozenset()
    refused_until: float = 0.0
    #: pods that kubelets refused -> how often in a row, under the same name
    turned_away: dict[str, int] = field(default_factory=dict)
    #: lengths of the series of refusals, of failures that do not count, of names taken
    refusals: int = 0
    outages: int = 0
    blocked: int = 0
    #: warnings of the last pass and of this one; a repetition tells nothing new
    warned: set[t.RecordEvent] = field(default_factory=set)
    warnings: set[t.RecordEvent] = field(default_factory=set)

    def wants_sync(self, now: float) -> bool:
        """Tell whether a sync is wanted, or due."""
        return self.unsynced or any(0 < time <= now for time in self._times)

    def held(self, now: float) -> frozenset[str]:
        """Return the names of the pods that are not to be made yet."""
        return self.refused if now < self.refused_until else frozenset()

    def turn_away(self, pod: str, now: float) -> float:
        """Count a refusal by a kubelet; return for how long no pod is made under that name."""
        times = self.turned_away[pod] = self.turned_away.get(pod, 0) + 1
        if times <= AT_ONCE:
            return 0.0
        wait = wait_s(times - AT_ONCE - 1, base_s=TURNED_AWAY_S[0], cap_s=TURNED_AWAY_S[1])
        self.refused = self.held(now) | {pod}
        self.refused_until = max(self.refused_until, now + wait)
        return wait

    def is_done(self, decision: t.Decision) -> None:
        """Take an order for done, and with it those that it makes pointless."""
        if decision.action in delays.JOB_LEVEL:
            self.again.clear()
        self.again.pop(decision, None)
        self.delayed = delays.settled(self.delayed, decision)

    def next_due(self) -> float | None:
        """Return when there is something to do again, if nothing happens before."""
        times = [delayed.due for delayed in self.delayed.values()]
        syncs = [time for time in self._times if time]
        if self.unsynced or self.again:
            syncs.append(self.rest_until)
        if syncs:
            times.append(max(min(syncs), self.rest_until))
        return min(times, default=None)

    @property
    def _times(self) -> tuple[float, ...]:
        """When there is a reason for a sync, if nothing happens before; 0 for none."""
        return self.write_by, self.look_at, self.refused_until


def timely(desk: Desk, effects: Sequence[t.Effect], now: float) -> Sequence[t.Effect]:
    """Leave out a write of counters alone until its time has come."""
    writes = [e for e in effects if isinstance(e, t.PatchStatus)]
    if writes and not any(e.urgent for e in writes):
        if not desk.write_by:
            desk.write_by = now + QUIET_S
        if now < desk.write_by:
            return [e for e in effects if not isinstance(e, t.PatchStatus)]
    desk.write_by = 0.0
    return effects
