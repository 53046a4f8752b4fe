"""Actions that wait, and what calls them off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pumice.core.jobs import types as t
from pumice.core.jobs.delays import Delayed, Waiting, called_off, due, scheduled, settled
from pumice.core.jobs.types import Decision, Request

EVICTED = Request(event="PodEvicted", task="a", pod="p", pod_uid="1", partition="0")
PENDING = replace(EVICTED, event="PodPending")


def waits(action: str, request: Request = EVICTED, due_at: float = 60.0) -> Waiting:
    return {request.pod: Delayed(replace(request, action=action), due_at)}


def test_a_decision_waits_until_it_is_due() -> None:
    waiting = scheduled({}, Decision(t.ABORT, EVICTED, 60.0), now=0.0)

    assert waiting == waits(t.ABORT)
    assert due(waiting, 59.9) == ([], waiting)
    assert due(waiting, 60.0) == ([replace(EVICTED, action=t.ABORT)], {})


def test_the_same_action_keeps_its_time_and_another_replaces_it() -> None:
    waiting = waits(t.ABORT)

    assert scheduled(waiting, Decision(t.ABORT, EVICTED, 60.0), now=30.0) == waiting
    assert scheduled(waiting, Decision(t.RESTART, EVICTED, 60.0), now=30.0) == waits(
        t.RESTART, due_at=90.0
    )


CALLS: dict[str, tuple[Waiting, Request, bool]] = {
    "the pod that did not start starts": (
        waits(t.ABORT, PENDING), replace(EVICTED, event="PodRunning"), True),
    "the pod that did not start ends": (waits(t.ABORT, PENDING), EVICTED, True),
    "another pod of its name starts": (
        waits(t.ABORT, PENDING), replace(EVICTED, event="PodRunning", pod_uid="2"), False),
    "the pod that did not start is still there": (
        waits(t.ABORT, PENDING), replace(EVICTED, event="OutOfSync"), False),
    "a new pod runs in the place of the one that went": (
        waits(t.ABORT), replace(EVICTED, event="PodRunning", pod_uid="2"), True),
    "the new pod goes as well": (waits(t.ABORT), replace(EVICTED, pod_uid="2"), False),
    "another pod runs": (waits(t.ABORT), Request(event="PodRunning", pod="q"), False),
}  # fmt: skip


@pytest.mark.parametrize(("waiting", "request_", "off"), CALLS.values(), ids=CALLS.keys())
def test_called_off(waiting: Waiting, request_: Request, off: bool) -> None:
    assert called_off(waiting, request_) == ({} if off else waiting)


SETTLED: dict[str, tuple[str, str, Request, bool]] = {
    "an action on the job settles another one": (t.RESTART, t.ABORT, Request(pod="q"), True),
    "an action on the job leaves tasks": (t.RESTART, t.RESTART_TASK, Request(task="a"), False),
    "a task restarted settles the same task": (
        t.RESTART_TASK, t.RESTART_TASK, Request(task="a", pod="q"), True),
    "a task restarted leaves other tasks": (
        t.RESTART_TASK, t.RESTART_TASK, Request(task="b"), False),
    "a pod restarted settles the same pod": (t.RESTART_POD, t.RESTART_POD, EVICTED, True),
    "a pod restarted leaves other pods": (t.RESTART_POD, t.RESTART_POD, Request(pod="q"), False),
    "a partition restarted settles the same partition": (
        t.RESTART_PARTITION, t.RESTART_PARTITION, Request(partition="0"), True),
    "a sync settles nothing": (t.SYNC, t.ABORT, EVICTED, False),
}  # fmt: skip


@pytest.mark.parametrize(("done", "waiting", "by", "off"), SETTLED.values(), ids=SETTLED.keys())
def test_settled(done: str, waiting: str, by: Request, off: bool) -> None:
    before = waits(waiting)

    assert settled(before, Decision(done, by)) == ({} if off else before)
