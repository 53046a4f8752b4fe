"""The ledger: what the pods alone say, what we did, and that both end in the same place."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pumice.core.ids import JobKey, PodUid
from pumice.core.ledger import Arm, Ledger, LedgerError, PodView, State
from tests.effort import examples

JOB, OTHER_JOB = JobKey("ns/job"), JobKey("ns/other")


def a_view(
    uid: str = "p",
    *,
    held: bool = False,
    node: str = "",
    pin: str = "",
    nominated: str = "",
    verdict: tuple[str, str] = ("", ""),
    gone: bool = False,
    leaving: bool = False,
) -> PodView:
    return PodView(PodUid(uid), "ns", uid, JOB, held, node, pin, nominated, verdict, gone, leaving)


@dataclass(frozen=True)
class Case:
    pod: PodView
    want: tuple[State, str] | None


FIRST_SEEN = {
    "a gated pod is Held, without a plan": Case(a_view(held=True), (State.HELD, "")),
    "a bound pod is Bound on its node": Case(a_view(node="n1"), (State.BOUND, "n1")),
    "an ungated pinned pod is Released to its pin": Case(a_view(pin="n1"), (State.RELEASED, "n1")),
    "an ungated nominated pod is Released": Case(a_view(nominated="n2"), (State.RELEASED, "n2")),
    "a pin outweighs a nomination, which only says where volumes are being bound": Case(
        a_view(pin="n1", nominated="n2"), (State.RELEASED, "n1")
    ),
    "an ungated pod without either has no plan and no entry": Case(a_view(), None),
    "a finished pod has no entry": Case(a_view(node="n1", gone=True), None),
}


@pytest.mark.parametrize("case", FIRST_SEEN.values(), ids=FIRST_SEEN.keys())
def test_rebuilt_from_pods_alone(case: Case) -> None:
    ledger = Ledger()

    ledger.observe(case.pod, now=1.0)

    got = ledger.get(PodUid("p"))
    assert (None if got is None else (got.state, got.node)) == case.want


EXPECTED = {
    "on a pinned pod any nomination": (Arm.PIN, "", "n1", "n1"),
    "on a nominated one another than ours": (Arm.NOMINATE, "", "n2", "n2"),
    "not the one that is ours": (Arm.NOMINATE, "", "n1", ""),
    "nor one that stood there before": (Arm.NOMINATE, "n3", "n3", ""),
    "on one that was merely ungated the planned node as well": (Arm.UNGATE, "", "n1", "n1"),
}


@pytest.mark.parametrize(("arm", "before", "shown", "want"), EXPECTED.values(), ids=EXPECTED.keys())
def test_what_kube_scheduler_nominates_is_where_it_is_about_to_bind(
    arm: Arm, before: str, shown: str, want: str
) -> None:
    ledger, uid = Ledger(), PodUid("p")
    ledger.observe(a_view(held=True, nominated=before), 1.0)
    ledger.plan(uid, "n1")
    entry = ledger.release(uid, arm, 2.0)

    ledger.observe(a_view(nominated=shown, verdict=("Unschedulable", "no node")), 3.0)

    assert (entry.expected, entry.node) == (want, "n1")
    assert (entry.refused_since is None) is bool(want)
    assert entry.doubtful is not bool(want)


def test_a_refusal_from_before_the_plan_leaves_an_unpinned_pod_doubtful() -> None:
    ledger, refused = Ledger(), ("Unschedulable", "no node")
    entry = ledger.adopt(a_view(verdict=refused), "n1", Arm.NOMINATE, 1.0)
    ledger.observe(a_view(nominated="n1", verdict=refused), 2.0)
    assert (entry.refused_since, entry.doubtful) == (None, True)

    ledger.move(entry.uid, "n2")
    ledger.arrive(entry.uid, "n2", 3.0)
    assert (entry.node, entry.doubtful) == ("n2", False)


def test_a_gang_member_goes_all_the_way() -> None:
    ledger, uid = Ledger(), PodUid("p")
    ledger.observe(a_view(held=True), 1.0)
    ledger.plan(uid, "n1")
    ledger.release(uid, Arm.PIN, 2.0)
    assert ledger.in_flight() == 1
    ledger.arrive(uid, "n1", 3.0)
    ledger.bound(uid, 4.0)
    ledger.observe(a_view(pin="n1", node="n1"), 5.0)

    entry = ledger.get(uid)
    assert entry is not None
    assert (entry.state, entry.node, entry.since) == (State.BOUND, "n1", 4.0)
    assert ledger.in_flight() == 0


def test_a_call_that_is_lost_leaves_the_pod_released() -> None:
    ledger, uid = Ledger(), PodUid("p")
    ledger.observe(a_view(pin="n1"), 1.0)
    ledger.arrive(uid, "n1", 2.0)

    ledger.lose(uid, 3.0)

    entry = ledger.get(uid)
    assert entry is not None
    assert (entry.state, entry.node) == (State.RELEASED, "n1")


def test_a_plan_that_the_watch_has_not_confirmed_outlives_a_stale_event() -> None:
    ledger, uid = Ledger(), PodUid("p")
    ledger.observe(a_view(held=True), 1.0)
    ledger.plan(uid, "n1")
    ledger.release(uid, Arm.PIN, 2.0)

    ledger.observe(a_view(held=True), 2.1)

    entry = ledger.get(uid)
    assert entry is not None
    assert (entry.state, entry.node) == (State.RELEASED, "n1")


def test_a_gate_taken_off_by_hand_ends_the_hold() -> None:
    ledger = Ledger()
    ledger.observe(a_view(held=True), 1.0)

    ledger.observe(a_view(), 2.0)

    assert PodUid("p") not in ledger
    assert list(ledger.of_job(JOB)) == []


REFUSALS = {
    "no verdict yet": (("", ""), False, None),
    "the verdict of before the release still stands": (("Unschedulable", "old"), False, None),
    "another verdict than at release": (("Unschedulable", "taint"), False, 5.0),
    "volumes are being bound": (("Unschedulable", "taint"), True, None),
}


@pytest.mark.parametrize(("verdict", "prebind", "want"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal_is_a_new_verdict(
    verdict: tuple[str, str], prebind: bool, want: float | None
) -> None:
    ledger, uid = Ledger(), PodUid("p")
    ledger.observe(a_view(held=True, verdict=("Unschedulable", "old")), 1.0)
    ledger.plan(uid, "n1")
    ledger.release(uid, Arm.PIN, 2.0)

    shown = a_view(pin="n1", verdict=verdict, nominated="n1" if prebind else "")
    ledger.observe(shown, 5.0)
    ledger.observe(shown, 6.0)

    entry = ledger.get(uid)
    assert entry is not None
    assert entry.refused_since == want


def test_what_is_said_of_a_pod_behind_its_gate_is_no_refusal() -> None:
    ledger, uid = Ledger(), PodUid("p")
    ledger.observe(a_view(held=True), 1.0)
    ledger.plan(uid, "n1")
    ledger.release(uid, Arm.PIN, 2.0)

    # A condition of our own, whose answer comes when the pod is about to be let go.
    ours = ("Unschedulable", "no room")
    ledger.observe(a_view(held=True, verdict=ours), 2.1)
    ledger.observe(a_view(pin="n1", verdict=ours), 2.2)

    entry = ledger.get(uid)
    assert entry is not None
    assert entry.refused_since is None
    ledger.observe(a_view(pin="n1", verdict=("Unschedulable", "taint")), 3.0)
    assert entry.refused_since == 3.0


def test_a_loose_pod_keeps_its_old_verdict_when_its_call_is_lost() -> None:
    ledger = Ledger()
    shown = a_view(verdict=("SchedulerError", "not planned"))
    entry = ledger.adopt(shown, "n1", Arm.NOMINATE, 1.0)
    ledger.arrive(entry.uid, "n1", 2.0)
    ledger.lose(entry.uid, 3.0)

    ledger.observe(shown, 4.0)

    assert entry.refused_since is None


def test_the_window_leaves_out_pods_that_nobody_let_go() -> None:
    ledger, uid = Ledger(), PodUid("p")
    ledger.adopt(a_view("loose"), "n1", Arm.NOMINATE, 1.0)
    ledger.observe(a_view(held=True), 1.0)
    ledger.plan(uid, "n1")
    ledger.release(uid, Arm.PIN, 2.0)
    assert (ledger.in_flight(), ledger.in_window()) == (2, 1)

    ledger.drop(PodUid("loose"))
    ledger.bound(uid, 3.0)
    assert (ledger.in_flight(), ledger.in_window()) == (0, 0)


def test_a_pod_that_is_to_be_replaced_is_known_by_its_annotation() -> None:
    ledger, uid = Ledger(), PodUid("p")
    ledger.observe(a_view(pin="n1"), 1.0)
    ledger.observe(a_view(pin="n1", leaving=True), 2.0)

    entry = ledger.get(uid)
    assert entry is not None
    assert entry.leaving
    assert ledger.adopt(a_view("q", leaving=True), "n1", Arm.NOMINATE, 3.0).leaving


def test_release_needs_a_plan() -> None:
    ledger = Ledger()
    ledger.observe(a_view(held=True), 1.0)
    with pytest.raises(LedgerError, match="ns/p is released without a plan"):
        ledger.release(PodUid("p"), Arm.PIN, 2.0)


class LedgerMachine(RuleBasedStateMachine):
    """Random life of a few pods: a ledger rebuilt from the pods agrees with the one that lived."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.pods: dict[str, PodView] = {}
        self.now = 0.0

    def show(self, view: PodView) -> None:
        self.now += 1.0
        self.pods[view.uid] = view
        self.ledger.observe(view, self.now)

    @rule(uid=st.sampled_from("abcd"))
    def create(self, uid: str) -> None:
        if uid not in self.pods:
            self.show(a_view(uid, held=True))

    def states(self, state: State) -> list[PodUid]:
        return sorted(e.uid for e in self.ledger if e.state is state)

    @precondition(lambda self: self.states(State.HELD))
    @rule(data=st.data(), node=st.sampled_from(["n1", "n2"]))
    def release(self, data: st.DataObject, node: str) -> None:
        uid = data.draw(st.sampled_from(self.states(State.HELD)))
        self.ledger.plan(uid, node)
        self.ledger.release(uid, Arm.PIN, self.now)
        self.show(replace(self.pods[uid], held=False, pin=node))

    @precondition(lambda self: self.states(State.RELEASED))
    @rule(data=st.data())
    def arrive(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(self.states(State.RELEASED)))
        self.ledger.arrive(uid, self.pods[uid].pin, self.now)

    @precondition(lambda self: self.states(State.ARRIVED))
    @rule(data=st.data(), answered=st.booleans())
    def end_call(self, data: st.DataObject, answered: bool) -> None:
        uid = data.draw(st.sampled_from(self.states(State.ARRIVED)))
        if answered:
            self.ledger.bound(uid, self.now)
            self.show(replace(self.pods[uid], node=self.pods[uid].pin))
        else:
            self.ledger.lose(uid, self.now)

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), job=st.sampled_from([JOB, OTHER_JOB, None]))
    def join(self, data: st.DataObject, job: JobKey | None) -> None:
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        self.show(replace(self.pods[uid], job=job))

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        self.ledger.drop(PodUid(uid))
        del self.pods[uid]

    @invariant()
    def a_restart_loses_nothing(self) -> None:
        rebuilt = Ledger()
        for view in self.pods.values():
            rebuilt.observe(view, self.now)
        lived = {
            e.uid: (State.RELEASED if e.state is State.ARRIVED else e.state, e.node)
            for e in self.ledger
        }
        assert {e.uid: (e.state, e.node) for e in rebuilt} == lived

    @invariant()
    def the_window_counts_what_is_on_its_way(self) -> None:
        on_its_way = self.states(State.RELEASED) + self.states(State.ARRIVED)
        assert self.ledger.in_flight() == len(on_its_way)
        assert sorted(e.uid for e in self.ledger.in_flight_entries()) == sorted(on_its_way)

    @invariant()
    def a_job_counts_those_that_have_come(self) -> None:
        for job in (JOB, OTHER_JOB):
            members = list(self.ledger.of_job(job))
            come = [e for e in members if e.state in (State.ARRIVED, State.BOUND)]
            assert self.ledger.come(job) == len(come)
            assert {e.job for e in members} <= {job}

    @invariant()
    def it_is_known_who_is_still_released(self) -> None:
        released = self.ledger.still_released(map(PodUid, "abcd"))
        assert sorted(released) == self.states(State.RELEASED)


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=examples(40), stateful_step_count=30)
