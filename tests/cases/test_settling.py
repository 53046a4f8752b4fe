"""When a cluster has come to rest."""

from __future__ import annotations

from collections.abc import Callable

from pumice.local.watching import Seen
from tests.cases.builders import a_pod, an_object, seen
from tests.cases.settling import Pulses, settle


class Time:
    """A clock that moves when somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def settles(
        self, holds: Callable[[], bool], *, last_change: Callable[[], float] = lambda: 0.0
    ) -> float:
        """Return when all is quiet for 10 s and the check holds, 60 s at most."""
        settle(last_change, holds, self.wait, quiet_s=10, timeout_s=60, clock=lambda: self.now)
        return self.now


def test_quiet_is_enough_where_nothing_is_checked() -> None:
    assert Time().settles(lambda: True) == 10


def test_a_change_starts_the_quiet_anew() -> None:
    time = Time()
    assert time.settles(lambda: True, last_change=lambda: 4.0 if time.now >= 5 else 0.0) == 14


def test_a_slow_answer_is_waited_for() -> None:
    time = Time()
    assert 30 <= time.settles(lambda: time.now >= 30) < 31


def test_the_wait_has_an_end() -> None:
    assert Time().settles(lambda: False) == 60
    time = Time()
    assert time.settles(lambda: True, last_change=lambda: time.now) == 60


def test_the_past_is_no_change() -> None:
    assert Time().settles(lambda: True, last_change=lambda: -100.0) == 10


def changes(*history: Seen) -> list[float]:
    """Return the times of the events that count as changes."""
    growing: list[Seen] = []
    pulses = Pulses(growing)
    found = []
    for event in history:
        growing.append(event)
        if (last := pulses.last_change()) not in found:
            found.append(last)
    return found


def test_appearance_binding_phase_and_end_are_changes() -> None:
    assert changes(
        seen(1, a_pod("p"), "ADDED"),
        seen(2, a_pod("p", queue="q")),
        seen(3, a_pod("p", node="n")),
        seen(4, a_pod("p", node="n", terminating=True)),
        seen(5, a_pod("p", node="n", phase="Running")),
        seen(6, a_pod("p", node="n", phase="Running"), "DELETED"),
    ) == [1, 3, 5, 6]


def test_phases_of_jobs_and_states_of_queues_are_changes() -> None:
    def job(phase: str) -> Seen:
        return seen(len(phase), an_object("j", status={"state": {"phase": phase}}))

    def queue(state: str) -> Seen:
        return seen(len(state), an_object("q", namespace="", status={"state": state}))

    assert changes(job("Pending"), job("Running!"), job("Running!")) == [7, 8]
    assert changes(queue("Open"), queue("Closing"), queue("Closing")) == [4, 7]
