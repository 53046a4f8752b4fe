"""
The ledger: which pod was given to which node, and how far that has got.

            gate on            pin/nominate + gate off       bind call open         2xx
  (none) ───────────► Held ──────────────────────► Released ──────────► Arrived ──────────► Bound
                       ▲                             │   ▲                 │                  │
                       │  gone (deleted) ◄───────────┴───┼─ Error, lost ───┘          gone ◄──┘
                       └── new pod (new uid) ◄── nack ───┘

An entry is made when a pod of ours is first seen and dropped when the pod is gone or finished.
A Held pod may carry a plan (`node`) that waits for its turn in the release window; from then on
its room on the node is taken. Nothing but the watch returns room: a Released or Arrived pod
holds its node until it is seen bound elsewhere or gone.

Everything in here can be rebuilt from the pods alone: a bound pod is Bound, a gated one Held,
an ungated one with a pin or a nomination Released. Time comes in as `now`, in seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from enum import Enum

from pumice.core.devices.notes import Choice
from pumice.core.ids import JobKey, PodUid


class State(Enum):
    """How far a pod has got."""

    HELD = "Held"
    RELEASED = "Released"
    ARRIVED = "Arrived"
    BOUND = "Bound"


class Arm(Enum):
    """The way in which a pod was, or is to be, released."""

    PIN = "pin"
    NOMINATE = "nominate"
    UNGATE = "ungate"


Verdict = tuple[str, str]
"""Reason and message of a PodScheduled condition that is False; ("", "") when there is none."""

NO_VERDICT: Verdict = ("", "")
GATED = "SchedulingGated"
"""The reason of a pod that had a gate, until kube-scheduler has looked at it."""
NO_HINTS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PodView:
    """What the ledger reads of a pod."""

    uid: PodUid
    namespace: str
    name: str
    job: JobKey | None
    held: bool
    """A gate is on it, ours or another: kube-scheduler does not look at it."""
    node: str = ""
    """The node it is bound to."""
    pin: str = ""
    """The one node that its required affinity names."""
    nominated: str = ""
    verdict: Verdict = NO_VERDICT
    gone: bool = False
    """It is finished, or being deleted before it was bound."""
    leaving: bool = False
    """Its controller was asked to put another in its place."""


@dataclass(slots=True)
class Entry:
    """One pod. Only the ledger changes it."""

    uid: PodUid
    namespace: str
    name: str
    job: JobKey | None
    state: State
    since: float
    #: where it is bound, or planned to go; empty for a Held pod without a plan
    node: str = ""
    arm: Arm | None = None
    #: the cards of the node that it is to get; they are written down with its binding
    cards: Choice | None = None
    #: PodScheduled as it stood at release, and as it stands now
    verdict_at_release: Verdict = NO_VERDICT
    verdict: Verdict = NO_VERDICT
    #: when `verdict` first differed from the one at release; None while it does not
    refused_since: float | None = None
    #: the API server still shows a gate: kube-scheduler has not seen the pod
    gated: bool = False
    #: the nominations that are ours: any other is kube-scheduler's
    hints: frozenset[str] = NO_HINTS
    #: the node that kube-scheduler has for it and where its claims are being bound: progress
    expected: str = ""
    #: another pod is to take its place: it is neither bound nor asked for again
    leaving: bool = False
    #: kube-scheduler had it before it was planned: it takes no place in the release window
    loose: bool = False
    #: it was found on its way with a refusal on it, which kube-scheduler would not write again
    stale: bool = False

    @property
    def planned(self) -> bool:
        """Tell whether a Held pod has a node waiting for it."""
        return self.state is State.HELD and bool(self.node)

    @property
    def doubtful(self) -> bool:
        """
        Tell whether kube-scheduler has no node for an unpinned pod that is on its way.

        It looked at them all. Its words may stand there from before the last plan, which it need
        not have looked at yet: so this is told by how long it lasts.
        """
        if self.state is not State.RELEASED or self.arm is Arm.PIN or self.expected or self.gated:
            return False
        return self.refused_since is not None or (self.loose and self.verdict != NO_VERDICT)


class LedgerError(Exception):
    """A transition that the state machine does not have: a bug in the caller."""


@dataclass(slots=True)
class Ledger:
    """Pod uid -> entry, and the entries of each job."""

    _entries: dict[PodUid, Entry] = field(default_factory=dict)
    _by_job: dict[JobKey, dict[PodUid, Entry]] = field(default_factory=dict)
    _released: set[PodUid] = field(default_factory=set)
    _arrived: set[PodUid] = field(default_factory=set)
    #: those of both that are loose
    _loose: set[PodUid] = field(default_factory=set)
    #: how many of a job's are Arrived or Bound
    _come: Counter[JobKey] = field(default_factory=Counter)
    #: when a pod Arrived last
    last_arrival: float = 0.0

    # --- reading -------------------------------------------------------------------------

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, uid: PodUid) -> Entry | None:
        """Return the entry of a pod, if it has one."""
        return self._entries.get(uid)

    def of_job(self, job: JobKey) -> Iterable[Entry]:
        """Return the entries of a job, in the order in which its pods were first seen."""
        return self._by_job.get(job, {}).values()

    def come(self, job: JobKey) -> int:
        """Return how many pods of a job are Arrived or Bound."""
        return self._come[job]

    def in_flight(self) -> int:
        """Return how many pods are Released or Arrived."""
        return len(self._released) + len(self._arrived)

    def in_window(self) -> int:
        """Return how many of them we have let go: what the release window counts."""
        return self.in_flight() - len(self._loose)

    def in_flight_entries(self) -> list[Entry]:
        """Return the entries that are Released or Arrived."""
        return [self._entries[uid] for uid in (*self._released, *self._arrived)]

    def arrived_jobs(self) -> set[JobKey | None]:
        """Return the jobs of which pods have Arrived and are not Bound."""
        return {self._entries[uid].job for uid in self._arrived}

    def still_released(self, uids: Iterable[PodUid]) -> Set[PodUid]:
        """Return those of the pods that are Released and have not Arrived."""
        return self._released.intersection(uids)

    # --- the world: passive transitions ---------------------------------------------------

    def observe(self, pod: PodView, now: float) -> Entry | None:
        """
        Take note of a pod as the API server shows it; return its entry, None when it has none.

        An ungated pod that is neither pinned nor nominated, and that was not released by us,
        gets no entry: it is to be planned, and until then `bind` refuses it.
        """
        entry = self._entries.get(pod.uid)
        if pod.gone:
            self.drop(pod.uid)
            return None
        if entry is None:
            entry = self._first_seen(pod, now)
            if entry is None:
                return None
            self._insert(entry)
        elif entry.job != pod.job:
            self._move(entry, pod.job)
        if pod.node:
            self._to(entry, State.BOUND, now)
            entry.node = pod.node
        elif entry.state is State.HELD and not pod.held and not self._let_go(entry, pod, now):
            return None
        self._judge(entry, pod, now)
        return entry

    def _first_seen(self, pod: PodView, now: float) -> Entry | None:
        def entry(state: State, node: str = "", arm: Arm | None = None) -> Entry:
            place = (state, now, node, arm)
            return Entry(
                pod.uid, pod.namespace, pod.name, pod.job, *place, verdict_at_release=pod.verdict
            )

        if pod.node:
            return entry(State.BOUND, pod.node)
        if pod.held:
            return entry(State.HELD)
        if pod.pin:
            found = entry(State.RELEASED, pod.pin, Arm.PIN)
            found.stale = pod.verdict[0] not in ("", GATED)
            return found
        if pod.nominated:
            found = entry(State.RELEASED, pod.nominated, Arm.NOMINATE)
            found.hints = _hints(pod.nominated)
            return found
        return None

    def _let_go(self, entry: Entry, pod: PodView, now: float) -> bool:
        """Handle a Held pod whose gate somebody else took off; return whether it has a plan."""
        if pod.pin:
            entry.node, entry.arm = pod.pin, Arm.PIN
            entry.hints = NO_HINTS
        elif pod.nominated:
            entry.node, entry.arm = pod.nominated, Arm.NOMINATE
            entry.hints = _hints(pod.nominated)
        else:
            self.drop(entry.uid)
            return False
        entry.verdict_at_release = pod.verdict
        self._to(entry, State.RELEASED, now)
        return True

    def _judge(self, entry: Entry, pod: PodView, now: float) -> None:
        """
        Follow PodScheduled: a verdict other than the one at release starts the clock.

        Another reason starts it anew; other words for the same do not.
        """
        before, entry.verdict = entry.verdict, pod.verdict
        entry.leaving = entry.leaving or pod.leaving
        if entry.state is State.HELD:
            entry.hints = _hints(pod.nominated)
        entry.expected = "" if pod.nominated in entry.hints else pod.nominated
        if pod.held:
            # Nobody has tried to place it yet, so this is what we say of it ourselves.
            entry.verdict_at_release = pod.verdict
        elif entry.gated and entry.state is State.RELEASED:
            entry.since = now
        entry.gated = pod.held
        refused = (
            entry.state is State.RELEASED
            and pod.verdict not in (NO_VERDICT, entry.verdict_at_release)
            and not entry.expected
        )
        if not refused:
            entry.refused_since = None
        elif entry.refused_since is None or pod.verdict[0] != before[0]:
            entry.refused_since = now

    def drop(self, uid: PodUid) -> Entry | None:
        """Forget a pod that is gone, finished or has no plan; return its last entry."""
        entry = self._entries.pop(uid, None)
        if entry is None:
            return None
        self._released.discard(uid)
        self._arrived.discard(uid)
        self._loose.discard(uid)
        self._leave(entry)
        return entry

    # --- us: active transitions -----------------------------------------------------------

    def plan(self, uid: PodUid, node: str, cards: Choice | None = None) -> None:
        """Give a Held pod a node, and cards there; it waits for its turn to be released."""
        entry = self._expect(uid, State.HELD)
        entry.node, entry.cards = node, cards

    def unplan(self, uid: PodUid) -> None:
        """Take the plan back from a pod that is still Held."""
        entry = self._expect(uid, State.HELD)
        entry.node, entry.cards = "", None

    def equip(self, uid: PodUid, cards: Choice) -> None:
        """Give a pod that is on its way other cards, or those that it lacks."""
        self._expect(uid, State.RELEASED, State.ARRIVED).cards = cards

    def adopt(
        self, pod: PodView, node: str, arm: Arm, now: float, cards: Choice | None = None
    ) -> Entry:
        """Enter an ungated pod that had no plan, now that it has one."""
        if pod.uid in self._entries:
            raise LedgerError(f"{pod.namespace}/{pod.name} has an entry already")
        entry = Entry(
            pod.uid,
            pod.namespace,
            pod.name,
            pod.job,
            State.RELEASED,
            now,
            node,
            arm,
            cards,
            pod.verdict,
            pod.verdict,
            leaving=pod.leaving,
            loose=True,
            hints=_hints(node, pod.nominated),
        )
        self._insert(entry)
        return entry

    def release(self, uid: PodUid, arm: Arm, now: float) -> Entry:
        """Note that the patch which lets a planned pod go is on its way."""
        entry = self._expect(uid, State.HELD)
        if not entry.node:
            raise LedgerError(f"{entry.namespace}/{entry.name} is released without a plan")
        entry.arm = arm
        if arm is Arm.PIN:
            # Whatever stood there is taken off.
            entry.hints = NO_HINTS
        elif arm is Arm.NOMINATE:
            entry.hints |= {entry.node}
        entry.verdict_at_release = entry.verdict
        self._to(entry, State.RELEASED, now)
        return entry

    def hold_again(self, uid: PodUid, now: float) -> None:
        """Note that the patch did not go through: the pod still has its gate, and no plan."""
        entry = self._expect(uid, State.RELEASED)
        entry.node, entry.arm, entry.cards = "", None, None
        self._to(entry, State.HELD, now)

    def move(self, uid: PodUid, node: str) -> None:
        """Note that kube-scheduler has another node for a pod than the one that was planned."""
        self._expect(uid, State.RELEASED, State.ARRIVED).node = node

    def arrive(self, uid: PodUid, node: str, now: float) -> Entry:
        """Note that kube-scheduler placed the pod on `node` and has called `bind` for it."""
        entry = self._expect(uid, State.RELEASED, State.ARRIVED)
        entry.node = node
        self._to(entry, State.ARRIVED, now)
        entry.refused_since = None
        self.last_arrival = now
        return entry

    def lose(self, uid: PodUid, now: float) -> None:
        """Note that the open `bind` call was lost or answered with an error."""
        entry = self._entries.get(uid)
        if entry is not None and entry.state is State.ARRIVED:
            entry.verdict_at_release = entry.verdict
            self._to(entry, State.RELEASED, now)

    def leave(self, uid: PodUid, leaving: bool = True) -> None:
        """Note that another pod is to take this one's place, or that nobody could be asked."""
        entry = self._entries.get(uid)
        if entry is not None:
            entry.leaving = leaving

    def bound(self, uid: PodUid, now: float) -> None:
        """Note that the API server accepted the binding."""
        entry = self._entries.get(uid)
        if entry is not None:
            self._to(entry, State.BOUND, now)

    # --- inside ---------------------------------------------------------------------------

    def _expect(self, uid: PodUid, *states: State) -> Entry:
        entry = self._entries.get(uid)
        if entry is None:
            raise LedgerError(f"pod {uid} has no entry")
        if entry.state not in states:
            wanted = " or ".join(s.value for s in states)
            raise LedgerError(
                f"{entry.namespace}/{entry.name} is {entry.state.value}, not {wanted}"
            )
        return entry

    def _to(self, entry: Entry, state: State, now: float) -> None:
        if entry.state is not state:
            self._tally(entry, -1)
            entry.state, entry.since = state, now
            self._tally(entry, 1)
        self._count(entry)

    def _count(self, entry: Entry) -> None:
        uid = entry.uid
        for state, pods in ((State.RELEASED, self._released), (State.ARRIVED, self._arrived)):
            if entry.state is state:
                pods.add(uid)
            else:
                pods.discard(uid)
        if entry.loose and entry.state in (State.RELEASED, State.ARRIVED):
            self._loose.add(uid)
        else:
            self._loose.discard(uid)

    def _insert(self, entry: Entry) -> None:
        self._entries[entry.uid] = entry
        self._count(entry)
        self._join(entry)

    def _move(self, entry: Entry, job: JobKey | None) -> None:
        self._leave(entry)
        entry.job = job
        self._join(entry)

    def _join(self, entry: Entry) -> None:
        if entry.job is not None:
            self._by_job.setdefault(entry.job, {})[entry.uid] = entry
            self._tally(entry, 1)

    def _leave(self, entry: Entry) -> None:
        if entry.job is None:
            return
        self._tally(entry, -1)
        members = self._by_job.get(entry.job, {})
        members.pop(entry.uid, None)
        if not members:
            self._by_job.pop(entry.job, None)
            self._come.pop(entry.job, None)

    def _tally(self, entry: Entry, n: int) -> None:
        if entry.job is not None and entry.state in (State.ARRIVED, State.BOUND):
            self._come[entry.job] += n


def _hints(*nodes: str) -> frozenset[str]:
    """Return the nodes that are named; most pods have none, and share that."""
    return frozenset(node for node in nodes if node) if any(nodes) else NO_HINTS
