"""Whatever befalls a CronJob, its Jobs and its controller: no run is doubled, and none is lost."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from pumice.core.timestamps import moment
from pumice.kube.resources import JOBS
from tests.adapters.controllers.cron_world import CronWorld, due_at, phase_of
from tests.adapters.controllers.machine import ControllerMachine
from tests.effort import examples
from tests.fakeapi.faults import Faults

PLACES = st.integers(0, 3)
LIMIT = 2


class CronMachine(ControllerMachine[CronWorld]):
    """A CronJob of every minute; the rules are its Jobs' ends, users, and bad luck."""

    def __init__(self) -> None:
        super().__init__()
        #: by name, the uid of the one Job that ever had it
        self.seen: dict[str, str] = {}
        self.last = 0.0

    async def make(self) -> CronWorld:
        return CronWorld()

    @initialize(policy=st.sampled_from(["Allow", "Forbid", "Replace"]))
    def begin(self, policy: str) -> None:
        async def begin() -> None:
            self.policy = policy
            self.world.add_cron(
                concurrencyPolicy=policy,
                successfulJobsHistoryLimit=LIMIT,
                failedJobsHistoryLimit=LIMIT,
            )
            self.start()
            await self.world.clock.advance(41)

        self.do(begin())

    # What happens.

    @rule(place=PLACES, phase=st.sampled_from(["Completed", "Failed", "Terminated", "Aborted"]))
    def a_job_ends(self, place: int, phase: str) -> None:
        async def end() -> None:
            for name in self.world.unfinished[place : place + 1]:
                self.world.end(name, phase)

        self.do(end())

    @rule(place=PLACES)
    def a_user_deletes_a_job(self, place: int) -> None:
        async def delete() -> None:
            last = moment(self.world.status.get("lastScheduleTime"))
            for job in list(self.world.jobs.values())[place : place + 1]:
                # Of a run that was never written down its Job is the only trace.
                if moment(due_at(job)) <= last:
                    self.world.api.objects.delete(JOBS, job, {})

        self.do(delete())

    @rule(suspend=st.booleans())
    def it_is_suspended_or_not(self, suspend: bool) -> None:
        async def change() -> None:
            self.world.change(suspend=suspend)

        self.do(change())

    @rule(schedule=st.sampled_from(["* * * * *", "*/2 * * * *", "1-59/3 * * * *"]))
    def the_schedule_changes(self, schedule: str) -> None:
        async def change() -> None:
            self.world.change(schedule=schedule)

        self.do(change())

    @rule(writes=st.integers(0, 3))
    def the_controller_dies_soon(self, writes: int) -> None:
        self.dies_after(writes)

    @rule(applied=st.booleans())
    def an_answer_is_lost(self, applied: bool) -> None:
        self.world.api.lose(applied=applied, when=lambda call: call.method != "GET")

    @rule(seconds=st.sampled_from([1.0, 20.0, 60.0, 200.0]))
    def time_passes(self, seconds: float) -> None:
        self.do(self.world.clock.advance(seconds))

    # What holds.

    @invariant()
    def a_run_happens_once(self) -> None:
        for name, job in self.world.jobs.items():
            uid = job["metadata"]["uid"]
            assert self.seen.setdefault(name, uid) == uid

    @invariant()
    def no_run_is_early(self) -> None:
        for job in self.world.jobs.values():
            assert moment(due_at(job)) <= moment(job["metadata"]["creationTimestamp"])

    @invariant()
    def the_last_time_never_goes_back(self) -> None:
        if self.is_alive:
            last = moment(self.world.status.get("lastScheduleTime"))
            assert last >= self.last
            self.last = last

    @invariant()
    def forbidden_ones_do_not_overlap(self) -> None:
        if self.is_alive and self.policy != "Allow":
            assert len(self.world.unfinished) <= 1

    async def calm(self) -> None:
        """Let faults end and failures be forgotten; then let one more run be due."""
        self.world.api.faults = Faults()
        self.world.change(suspend=False, schedule="* * * * *")
        await self.world.clock.advance(120)
        for name in self.world.unfinished:
            self.world.end(name)
        self.before = set(self.seen) | set(self.world.jobs)
        await self.world.clock.advance(60)

    def check(self) -> None:
        jobs = self.world.jobs
        self.a_run_happens_once()
        self.forbidden_ones_do_not_overlap()
        assert jobs.keys() - self.before, "the next run has come"
        assert sorted(self.world.active) == sorted(self.world.unfinished)
        assert sum(phase_of(job) == "Completed" for job in jobs.values()) <= LIMIT
        assert sum(phase_of(job) in ("Failed", "Terminated") for job in jobs.values()) <= LIMIT


TestCronMachine = CronMachine.TestCase
TestCronMachine.settings = settings(
    max_examples=examples(40), stateful_step_count=15, deadline=None
)
