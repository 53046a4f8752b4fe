"""
Releasing and replacing: the only two ways in which the extender touches a pod before `bind`.

`steer` takes the waves of a gang and lets its pods go: pinned, nominated or merely ungated. At
most `WINDOW` pods are on their way at a time (Released or Arrived, those of waves to come
included, but not pods that nobody had held); a larger gang goes alone, and what one still needs of
which members wait in the barrier goes first and in any case.
A wave goes when all of the one before it have Arrived or are Bound. Waves that are to come after
pods which kube-scheduler may keep for long, as it binds their claims, wait outside of the window:
others may go in the meantime.

Gang goes after gang, since interleaving stretches the time in which each one holds room without
running. kube-scheduler takes what it has by age, whatever the order of release, so it is given
little at a time: the next gang goes when no more than `AHEAD` pods of those before it have not
Arrived. Where none Arrives for `AHEAD_S`, kube-scheduler is away and the window is filled; and a
pod that it may not want is waited for no longer than `AWAITED_S`.

`replan` takes back the plan of a pod that cannot run on its node: a pinned one is replaced, and so
is any other of our Job controller that has no claims; the rest are planned again as they are, since
kube-scheduler may have bound something for them already and goes on looking for a node itself.
`replace` gives a pod up: our Job controller is asked for a new one in its place; a pod of
another owner loses its plan and is planned again.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from extender.model import Model
from pumice.core import steering
from pumice.core.api.core import Pod
from pumice.core.ids import JobKey, PodUid
from pumice.core.ledger import Arm, State
from pumice.core.prebinding import has_claims
from pumice.core.readiness import job_ready
from pumice.core.room import lacking

WINDOW = 1000
"""Pods that may be Released or Arrived at a time."""
AHEAD = 64
AHEAD_S = 2.0
AWAITED_S = 30.0

Wave = Sequence[PodUid]


Failed = Callable[[Exception], None]
Unless = Callable[[], bool]


class PodWrites(Protocol):
    """Merge patches of one pod. The answer goes back into the cache; an error to `failed`."""

    def patch(self, pod: Pod, patch: steering.Patch, failed: Failed | None = None) -> None:
        """Patch the pod."""

    def patch_status(self, pod: Pod, patch: steering.Patch, unless: Unless) -> None:
        """Patch the pod's status, unless that is needless by the time it is sent."""


@dataclass(slots=True)
class Gang:
    """What is left to release of one decision."""

    job: JobKey
    waves: deque[Wave]
    out: Wave = ()
    """The wave that was released last; before the first, who must have come by then."""

    def size(self) -> int:
        """Return how many pods are left to release."""
        return sum(len(wave) for wave in self.waves)


@dataclass(slots=True)
class Releases:
    """Gangs that wait for others, for the window, and for their wave."""

    model: Model
    writes: PodWrites
    window: int = WINDOW
    ahead: int = AHEAD
    #: asks for a session: a pod lost its plan
    wake: Callable[[], None] = lambda: None
    #: gangs, or the rest of such, that come after others
    waiting: list[Gang] = field(default_factory=list)
    queue: deque[Gang] = field(default_factory=deque)
    underway: list[Gang] = field(default_factory=list)
    replaced: int = 0
    #: what was let go and when, as far as it is still waited for; the first one first
    _awaited: dict[PodUid, float] = field(default_factory=dict)
    #: when one of them came last, or the first of them was let go
    _moved: float = 0.0

    def steer(self, job: JobKey, waves: Sequence[Wave], after: Wave = ()) -> None:
        """Release planned pods, wave by wave, when the window has room and `after` have come."""
        gang = Gang(job, deque(waves), after)
        if after:
            self.waiting.append(gang)
        elif self._has_begun(gang):
            self.queue.appendleft(gang)
        else:
            self.queue.append(gang)
        self.pump()

    def replan(self, uid: PodUid, node: str) -> None:
        """Take back a pod's plan: it cannot run on `node`, which its job avoids for a while."""
        pod, entry = self.model.pending.get(uid), self.model.ledger.get(uid)
        if node and entry is not None and not lacking(self.model.cluster, uid, node):
            # Nothing that is known here keeps the pod off. Where room is short, that is known,
            # and so will be when there is room again.
            self.model.avoid(entry.job, node)
        if pod is None or entry is None or entry.leaving:
            return
        if entry.arm is not Arm.PIN and has_claims(pod):
            self.model.withdraw(uid)
        else:
            self.replace(uid)

    def replace(self, uid: PodUid) -> None:
        """Give a pod up."""
        pod, entry = self.model.pending.get(uid), self.model.ledger.get(uid)
        if pod is None or steering.view_of(pod).leaving or (entry is not None and entry.leaving):
            return
        if steering.is_replaceable(pod):
            self.replaced += 1
            self.model.ledger.leave(uid)
            self.writes.patch(pod, steering.out_of_sync_patch(), self._not_asked(uid))
        elif entry is not None:
            self.replaced += 1
            self.model.withdraw(uid)

    def pump(self) -> None:
        """Let go whatever may go now; called whenever a pod arrived, was bound or went."""
        for gang in list(self.underway):
            self._next_wave(gang)
        for gang in [gang for gang in self.waiting if self._has_turn(gang)]:
            self.waiting.remove(gang)
            self.queue.appendleft(gang)
        while self.queue and not self._is_far_ahead():
            first = self._whose_turn()
            if first is None:
                return
            self.queue.remove(first)
            self.underway.append(first)
            self._next_wave(first)

    def _whose_turn(self) -> Gang | None:
        """
        Return the gang that goes next; None while the window has no room for it.

        A gang too large for what is left of it waits for the others to be whole. The rest of one of
        these goes before it, or both would wait for ever.
        """
        first = self.queue[0]
        if not self._is_too_large(first) or self._has_begun(first):
            return first
        begun = self.model.ledger.arrived_jobs()
        return next((gang for gang in self.queue if gang.job in begun), None)

    def forget(self, job: JobKey) -> list[PodUid]:
        """Drop what is still to be released of a job; return those pods."""
        dropped = []
        for gang in [g for g in (*self.waiting, *self.queue, *self.underway) if g.job == job]:
            dropped += [uid for wave in gang.waves for uid in wave]
            gang.waves.clear()
        return dropped

    # --- inside -----------------------------------------------------------------------------

    def _next_wave(self, gang: Gang) -> None:
        while gang.waves and self._has_turn(gang):
            # Noted before the first is let go: an answer may come, and call this again, meanwhile.
            gang.out = gang.waves.popleft()
            for uid in gang.out:
                self._let_go(uid)
        if not gang.waves and gang in self.underway:
            self.underway.remove(gang)

    def _is_too_large(self, gang: Gang) -> bool:
        """Tell whether the window has no room for a gang."""
        busy = self.model.ledger.in_window() + sum(other.size() for other in self.underway)
        return bool(busy) and busy + gang.size() > self.window and self._has_any(gang)

    def _has_begun(self, gang: Gang) -> bool:
        """Tell whether members have come, which stay in the window until the gang is whole."""
        return any(entry.state is State.ARRIVED for entry in self.model.ledger.of_job(gang.job))

    def _has_turn(self, gang: Gang) -> bool:
        """Tell whether all have come after whom the next wave of a gang comes, if there is one."""
        return not gang.waves or all(self._is_through(uid, gang.job) for uid in gang.out)

    def _has_any(self, gang: Gang) -> bool:
        """Tell whether any pod of a gang that waits is still there, with its plan."""
        entries = (self.model.ledger.get(uid) for wave in gang.waves for uid in wave)
        return any(entry is not None and entry.planned for entry in entries)

    def _is_far_ahead(self) -> bool:
        """Tell whether kube-scheduler still works on much of what was let go."""
        now, awaited = self.model.now(), len(self._awaited)
        left = self.model.ledger.still_released(self._awaited)
        if len(left) < awaited or self._first_let_go() <= now - AWAITED_S:
            self._awaited = {
                uid: since
                for uid, since in self._awaited.items()
                if uid in left and now - since < AWAITED_S
            }
        if len(self._awaited) < awaited:
            self._moved = now
        return len(self._awaited) > self.ahead and now - self._moved < AHEAD_S

    def _first_let_go(self) -> float:
        return next(iter(self._awaited.values()), math.inf)

    def _is_through(self, uid: PodUid, job: JobKey) -> bool:
        entry = self.model.ledger.get(uid)
        if entry is None or (entry.state is State.HELD and not entry.node):
            # A pod that merely lost its plan is still to come, if its gang cannot do without it.
            info = self.model.cluster.jobs.get(job)
            return uid not in self.model.pending or info is None or job_ready(info)
        return not (entry.planned or entry.state is State.RELEASED)

    def _let_go(self, uid: PodUid) -> None:
        """Release one pod, if its plan still stands."""
        entry = self.model.ledger.get(uid)
        pod = self.model.pending.get(uid)
        if entry is None or pod is None or not entry.planned:
            return
        gone = entry.node not in self.model.cluster.nodes.index
        if gone or not self.model.reaches(entry.node, pod):
            # A volume may have been bound since, by another pod that shares it.
            self.model.unplan(uid)
            self.wake()
            return
        arm = self.model.arm_of(pod)
        self.model.ledger.release(uid, arm, self.model.now())
        if not self._awaited:
            self._moved = self.model.now()
        self._awaited[uid] = self.model.now()
        if arm is Arm.PIN:
            self._end_promise(pod)
            self.writes.patch(pod, steering.pin_patch(pod, entry.node), self._released(uid))
            return
        if arm is Arm.NOMINATE:
            self.nominate(uid)
        self.writes.patch(pod, steering.ungate_patch(pod), self._released(uid))

    def _end_promise(self, pod: Pod) -> None:
        """
        Take the nomination off a pod whose room was held while victims left.

        On a pinned pod a nomination means that kube-scheduler is about to bind it.
        """
        task = self.model.cluster.task(PodUid(pod.metadata.uid))
        if task is not None and task.nominated:
            self.writes.patch_status(pod, steering.nominate_patch(""), lambda: False)

    def nominate(self, uid: PodUid) -> None:
        """Send the nomination of a pod, unless it stands there already."""
        entry, pod = self.model.ledger.get(uid), self.model.pending.get(uid)
        if entry is None or pod is None:
            return
        node = entry.node

        def needless() -> bool:
            now = self.model.pending.get(uid)
            return now is None or now.status.nominated_node_name == node

        self.writes.patch_status(pod, steering.nominate_patch(node), needless)

    def _released(self, uid: PodUid) -> Failed:
        def failed(error: Exception) -> None:
            # The gate is still on, and there is no plan any more: the next session makes one.
            entry = self.model.ledger.get(uid)
            if entry is not None and entry.state is State.RELEASED:
                self.model.hold_again(uid)

        return failed

    def _not_asked(self, uid: PodUid) -> Failed:
        def failed(error: Exception) -> None:
            self.model.ledger.leave(uid, leaving=False)

        return failed
