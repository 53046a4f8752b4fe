"""The CronJob controller against the in-memory API server: a clock that the tests turn."""

from __future__ import annotations

from datetime import datetime

import pytest

from pumice.kube.resources import CRON_JOBS, EVENTS, JOBS
from tests.adapters.controllers.cron_world import CronWorld, due_at, ending
from tests.adapters.controllers.world import Json
from tests.fakeapi.clock import settle, until
from tests.fakeapi.faults import Faults

FIRST_S = 41.0
"""From the beginning to the first run."""


@pytest.fixture
def world() -> CronWorld:
    return CronWorld()


async def test_a_job_each_minute_with_the_time_that_it_was_due(world: CronWorld) -> None:
    world.add_cron()
    async with world.running():
        await world.clock.advance(FIRST_S)
        (first,) = world.jobs
        world.end(first)
        await world.clock.advance(120)

        due = [due_at(job) for job in world.jobs.values()]
        assert due == ["2023-11-14T22:14:00Z", "2023-11-14T22:15:00Z", "2023-11-14T22:16:00Z"]
        assert all(datetime.fromisoformat(text).tzinfo for text in due)
        minutes = [int(datetime.fromisoformat(text).timestamp()) // 60 for text in due]
        assert list(world.jobs) == [f"c-{minute}" for minute in minutes]
        assert world.status["lastScheduleTime"] == due[-1]
        assert world.status["lastSuccessfulTime"] == "2023-11-14T22:14:01Z"
        assert f"Created job {first} for CronJob ns/c" in {text for _, _, text in world.events()}


async def test_the_zone_of_the_cronjob_counts(world: CronWorld) -> None:
    world.add_cron("14 7 * * *", timeZone="Asia/Tokyo")
    async with world.running():
        await world.clock.advance(FIRST_S)
        (job,) = world.jobs.values()
        assert due_at(job) == "2023-11-15T07:14:00+09:00"


async def test_a_run_costs_two_writes_and_a_minute_without_one_none(world: CronWorld) -> None:
    world.add_cron("*/5 * * * *")
    async with world.running():
        await world.clock.advance(FIRST_S)
        world.writes()
        await world.clock.advance(60)
        (job,) = world.jobs
        assert world.writes() == ["POST jobs", "PATCH cronjobs/c/status"]
        await world.clock.advance(200)
        assert world.writes() == []
        assert world.active == [job]


async def test_a_suspended_one_makes_no_jobs(world: CronWorld) -> None:
    world.add_cron(suspend=True)
    async with world.running():
        await world.clock.advance(180)
        assert world.writes() == []

        world.change(suspend=False)
        await until(lambda: world.jobs)
        assert [due_at(job) for job in world.jobs.values()] == ["2023-11-14T22:16:00Z"]


async def test_allow_lets_jobs_overlap(world: CronWorld) -> None:
    world.add_cron()
    async with world.running():
        await world.clock.advance(FIRST_S + 60)
        assert len(world.unfinished) == len(world.active) == 2


async def test_forbid_keeps_one_and_starts_the_missed_run_when_it_ends(world: CronWorld) -> None:
    world.add_cron(concurrencyPolicy="Forbid")
    async with world.running():
        await world.clock.advance(FIRST_S)
        (first,) = world.jobs
        for _ in range(3):
            await world.clock.advance(60)
            assert world.active == world.unfinished == [first]

        world.end(first)
        await until(lambda: world.unfinished)
        assert [due_at(world.jobs[name]) for name in world.unfinished] == ["2023-11-14T22:17:00Z"]
        await until(lambda: world.active == world.unfinished)
        # Told for each of the three runs, counted as one event.
        (event,) = [e for e in world.api.all(EVENTS) if e["reason"] == "ForbidConcurrent"]
        assert event["count"] == 3


async def test_replace_deletes_the_one_before(world: CronWorld) -> None:
    world.add_cron(concurrencyPolicy="Replace")
    async with world.running():
        await world.clock.advance(FIRST_S)
        (first,) = world.jobs
        for _ in range(3):
            await world.clock.advance(60)
            (job,) = world.jobs
            assert job != first
            assert world.active == world.unfinished == [job]
        assert world.reasons().count("StaleReference") == 0
        assert f'Deleted job "{first}"' in {text for _, _, text in world.events()}


async def test_a_run_missed_for_hours_comes_at_once(world: CronWorld) -> None:
    world.add_cron("*/10 * * * *")
    await world.clock.advance(7200)
    async with world.running():
        await until(lambda: world.status.get("lastScheduleTime"))
        assert [due_at(job) for job in world.jobs.values()] == ["2023-11-15T00:10:00Z"]


async def test_a_finished_job_leaves_the_active_ones(world: CronWorld) -> None:
    world.add_cron("*/5 * * * *")
    async with world.running():
        for phase in ("Completed", "Failed", "Terminated"):
            await world.clock.advance(300)
            (job,) = world.active
            world.end(job, phase)
            await until(lambda: not world.active)
            await settle()
            said = {text for _, _, text in world.events()}
            assert f"Saw completed job: {job} in active, remove" in said


@pytest.mark.parametrize(
    ("limit", "phase"),
    [
        ("successfulJobsHistoryLimit", "Completed"),
        ("failedJobsHistoryLimit", "Failed"),
        ("failedJobsHistoryLimit", "Terminated"),
    ],
)
async def test_finished_jobs_beyond_the_limit_go(world: CronWorld, limit: str, phase: str) -> None:
    spec: Json = {limit: 1}
    world.add_cron(**spec)
    async with world.running():
        await world.clock.advance(FIRST_S)
        (first,) = world.jobs
        world.end(first, phase)
        for _ in range(3):
            await world.clock.advance(60)
            (running,) = world.unfinished
            world.end(running, phase)
            await settle()
            assert list(world.jobs) == [running]
        assert f'Deleted job "{first}"' in {text for _, _, text in world.events()}


async def test_a_new_schedule_counts_from_now_on(world: CronWorld) -> None:
    world.add_cron("*/10 * * * *")
    async with world.running():
        await world.clock.advance(500)
        (job,) = world.jobs
        world.end(job)
        # Changed at 22:28, to five past and so on: the one at 22:25 was never asked for.
        await world.clock.advance(400)
        world.change(schedule="5-59/10 * * * *")
        await world.clock.advance(100)
        assert list(world.jobs) == [job]
        await world.clock.advance(400)
        assert [due_at(job) for job in world.jobs.values()][1:] == ["2023-11-14T22:35:00Z"]


async def test_a_controller_that_dies_between_job_and_status_starts_nothing_twice(
    world: CronWorld,
) -> None:
    world.add_cron("*/10 * * * *")
    world.api.lose(times=1_000, path="cronjobs/c/status")
    async with world.running():
        await world.clock.advance(500)
        assert len(world.jobs) == 1
        assert not world.status
    world.api.faults = Faults()

    async with world.running():
        await until(lambda: world.status.get("active"))
        await world.clock.advance(300)
    assert len(world.jobs) == 1
    assert world.status["lastScheduleTime"] == "2023-11-14T22:20:00Z"


async def test_an_answer_that_is_lost_starts_nothing_twice(world: CronWorld) -> None:
    world.add_cron("*/10 * * * *")
    world.api.lose(method="POST", path="/jobs", applied=True)
    async with world.running():
        await world.clock.advance(500)
        assert len(world.jobs) == 1
        assert world.active == list(world.jobs)


async def test_a_job_that_is_refused_is_told_once_and_tried_again(world: CronWorld) -> None:
    world.add_cron("*/10 * * * *")
    world.api.fail(403, times=5, method="POST", path="/jobs", reason="Forbidden")
    async with world.running():
        await world.clock.advance(500)
        assert len(world.jobs) == 1
        told = [event for event in world.api.all(EVENTS) if event["reason"] == "FailedCreate"]
        assert [event["count"] for event in told] == [1]
        assert told[0]["message"] == "Failed to create job: 403 was ordered"


async def test_a_namespace_that_ends_is_left_in_peace(world: CronWorld) -> None:
    world.add_cron("*/10 * * * *")
    world.api.faults.add(ending("ns"))
    async with world.running():
        await world.clock.advance(500)
        assert world.reasons() == ["NamespaceTerminating"]
        assert sum(call.method == "POST" and "/jobs" in call.path for call in world.api.calls) == 1


async def test_old_jobs_that_cannot_be_deleted_keep_no_run_from_its_time(world: CronWorld) -> None:
    world.add_cron(successfulJobsHistoryLimit=0)
    async with world.running():
        await world.clock.advance(FIRST_S)
        (first,) = world.jobs
        world.api.fail(403, times=1_000, method="DELETE", reason="Forbidden")
        world.end(first)
        await world.clock.advance(180)
        assert len(world.jobs) == 4
        assert "FailedDelete" in world.reasons()


async def test_a_name_that_somebody_else_has_is_told_and_left_alone(world: CronWorld) -> None:
    world.add_cron()
    name = f"c-{int(world.clock.now() + 40) // 60}"
    world.api.add(JOBS, {"metadata": {"name": name}, "spec": {}}, "ns")
    async with world.running():
        await world.clock.advance(FIRST_S)
        assert not world.status
        text = f"Job {name} exists but is not owned by this CronJob (current owner: none)"
        assert {(reason, said) for _, reason, said in world.events()} == {("ForeignJob", text)}
        await world.clock.advance(60)
        assert len(world.jobs) == 2


async def test_nothing_of_a_deleted_cronjob_remains(world: CronWorld) -> None:
    world.add_cron()
    async with world.running() as controller:
        await world.clock.advance(FIRST_S + 60)
        assert len(world.jobs) == 2
        world.delete_cron()
        await world.clock.advance(300)
        assert world.jobs == {}
        assert world.api.all(CRON_JOBS) == []
        teller = controller._teller
        assert (controller._since, controller._removed) == ({}, {})
        assert (teller.warned, teller.before) == ({}, {})


async def test_one_of_the_same_name_has_nothing_to_do_with_the_one_before(world: CronWorld) -> None:
    world.add_cron("*/10 * * * *")
    async with world.running():
        await world.clock.advance(500)
        world.delete_cron()
        world.add_cron("*/10 * * * *")
        await world.clock.advance(600)
        assert [due_at(job) for job in world.jobs.values()] == ["2023-11-14T22:30:00Z"]


async def test_a_malformed_one_is_reported_and_the_others_go_on(world: CronWorld) -> None:
    world.add_cron(name="bad")
    world.api.put(CRON_JOBS, {**world.cron("bad"), "spec": {"schedule": 5}})
    world.add_cron(name="good")
    async with world.running():
        await world.clock.advance(FIRST_S)
        assert len(world.jobs) == 1
        assert ("bad", "Malformed") in {(name, reason) for name, reason, _ in world.events()}
