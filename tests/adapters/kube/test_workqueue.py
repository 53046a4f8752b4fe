"""The work queue: no key twice at a time, none forgotten, failures waited out."""

from __future__ import annotations

import asyncio
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.kube.retry import wait_s
from pumice.kube.workqueue import WorkQueue
from tests.adapters.kube.conftest import running
from tests.fakeapi import ManualClock, settle, until


class Work:
    """Work that waits until it is let go, and notes what runs."""

    def __init__(self, clock: ManualClock, workers: int = 2) -> None:
        self.queue: WorkQueue[str] = WorkQueue("q", self, clock=clock, workers=workers)
        self.done: list[str] = []
        self.running: Counter[str] = Counter()
        self.failing: Counter[str] = Counter()
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, key: str) -> None:
        self.running[key] += 1
        assert self.running[key] == 1
        await self.gate.wait()
        self.running[key] -= 1
        self.done.append(key)
        if self.failing[key]:
            self.failing[key] -= 1
            raise RuntimeError(f"{key} fails")

    @property
    def busy(self) -> set[str]:
        return {key for key, n in self.running.items() if n}


async def test_a_key_that_waits_is_worked_on_once(clock: ManualClock) -> None:
    work = Work(clock)
    for _ in range(10):
        work.queue.add("a")
    async with running(work.queue.run()):
        await until(lambda: work.queue.idle and work.done)
    assert work.done == ["a"]


async def test_a_key_added_while_worked_on_is_worked_on_again(clock: ManualClock) -> None:
    work = Work(clock)
    work.gate.clear()
    async with running(work.queue.run()):
        work.queue.add("a")
        await until(lambda: work.busy == {"a"})
        work.queue.add("a")
        work.queue.add("a")
        await settle()
        assert len(work.queue) == 0
        work.gate.set()
        await until(lambda: work.queue.idle)
    assert work.done == ["a", "a"]


async def test_workers_are_bounded(clock: ManualClock) -> None:
    work = Work(clock, workers=2)
    work.gate.clear()
    async with running(work.queue.run()):
        for key in "abc":
            work.queue.add(key)
        await settle()
        assert (work.busy, len(work.queue)) == ({"a", "b"}, 1)
        work.gate.set()
        await until(lambda: work.queue.idle)
    assert sorted(work.done) == ["a", "b", "c"]


async def test_failures_wait_longer_each_time_until_forgotten(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    work = Work(clock)
    work.failing["a"] = 3
    async with running(work.queue.run()):
        work.queue.add("a")
        await settle()
        times = []
        for wait in (0.005, 0.010, 0.020):
            await clock.advance(wait - 0.001)
            times.append(len(work.done))
            await clock.advance(0.001)
            times.append(len(work.done))
        assert times == [1, 2, 2, 3, 3, 4]
        assert work.queue.num_requeues("a") == 0
        assert caplog.text.count("RuntimeError: a fails") == 3


async def test_the_earlier_of_two_delays_counts(clock: ManualClock) -> None:
    work = Work(clock)
    async with running(work.queue.run()):
        work.queue.add_after("a", 10)
        work.queue.add_after("a", 5)
        work.queue.add_after("a", 7)
        work.queue.add_after("b", 6)
        work.queue.add_after("c", 0)
        await clock.advance(5)
        assert work.done == ["c", "a"]
        await clock.advance(20)
        assert work.done == ["c", "a", "b"]


async def test_shutdown_lets_the_work_at_hand_end(clock: ManualClock) -> None:
    work = Work(clock, workers=1)
    work.gate.clear()
    task = asyncio.create_task(work.queue.run())
    for key in "ab":
        work.queue.add(key)
    work.queue.add_after("c", 1)
    await until(lambda: work.busy == {"a"})
    work.queue.shutdown()
    work.queue.add("d")
    work.gate.set()
    await task
    assert work.done == ["a"]


@given(st.integers(0, 2_000))
def test_waits_double_up_to_the_cap(failures: int) -> None:
    wait = wait_s(failures, base_s=0.005, cap_s=60)
    assert wait == (0.005 * 2**failures if failures < 14 else 60)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.01, 3)), max_size=30))
def test_every_key_comes_due_at_its_earliest_time(adds: list[tuple[str, float]]) -> None:
    async def run() -> None:
        clock = ManualClock()
        worked: dict[str, float] = {}
        due: dict[str, float] = {}

        async def note(key: str) -> None:
            assert key not in worked
            worked[key] = clock.monotonic()

        queue: WorkQueue[str] = WorkQueue("q", note, clock=clock)
        async with running(queue.run()):
            for key, delay in adds:
                queue.add_after(key, delay)
                due[key] = min(due.get(key, math.inf), clock.monotonic() + delay)
            await clock.advance(4)
        assert worked == pytest.approx(due)

    asyncio.run(run())
