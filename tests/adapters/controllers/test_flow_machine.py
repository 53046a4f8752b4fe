"""Whatever befalls a JobFlow, its Jobs and its controller: the order holds, to the end."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from pumice.core.jobs.ttl import FINISHED
from pumice.kube.resources import JOB_FLOWS, JOBS
from tests.adapters.controllers.flow_world import FlowWorld
from tests.adapters.controllers.machine import ControllerMachine
from tests.effort import examples
from tests.fakeapi.faults import Faults

PLACES = st.integers(0, 3)
STEPS: dict[str, Any] = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
NAMES = [f"f-{step}" for step in STEPS]


class FlowMachine(ControllerMachine[FlowWorld]):
    """A diamond of four Jobs; the rules are what becomes of them, users, and bad luck."""

    def __init__(self) -> None:
        super().__init__()
        #: Jobs that were ever Completed, and those of which the status ever said so
        self.done: set[str] = set()
        self.recorded: set[str] = set()
        self.ended = ""
        self.is_deleted = False

    async def make(self) -> FlowWorld:
        return FlowWorld()

    @initialize(retain=st.sampled_from(["retain", "delete"]), late=st.booleans())
    def begin(self, retain: str, late: bool) -> None:
        async def begin() -> None:
            self.retain = retain
            self.world.add_templates("a", "b", "c", *([] if late else ["d"]))
            self.is_late = late
            self.world.add_flow(STEPS, jobRetainPolicy=retain)
            self.start()

        self.do(begin())

    # What happens.

    @rule(place=PLACES, phase=st.sampled_from(["Running", "Completed", "Completed", "Aborted"]))
    def a_job_goes_on(self, place: int, phase: str) -> None:
        async def turn() -> None:
            going = [name for name in self.world.jobs if phase_of(self.world, name) not in FINISHED]
            for name in going[place : place + 1]:
                self.world.turn(name, phase)

        self.do(turn())

    @rule(
        place=PLACES, phase=st.sampled_from(["Failed", "Terminated"]), is_unlucky=st.integers(0, 4)
    )
    def a_job_fails(self, place: int, phase: str, is_unlucky: int) -> None:
        if is_unlucky == 0:
            self.a_job_goes_on(place, phase)

    @rule(place=PLACES)
    def a_job_is_deleted(self, place: int) -> None:
        async def delete() -> None:
            for name in list(self.world.jobs)[place : place + 1]:
                # Of an end that was never written down the Job is the only trace.
                if phase_of(self.world, name) not in FINISHED or name in self.told():
                    self.world.api.objects.delete(JOBS, self.world.jobs[name], {})

        self.do(delete())

    @rule()
    def the_missing_template_comes(self) -> None:
        async def come() -> None:
            if self.is_late:
                self.world.add_templates("d")
                self.is_late = False

        self.do(come())

    @rule(is_final=st.integers(0, 9))
    def the_flow_is_deleted(self, is_final: int) -> None:
        async def delete() -> None:
            self.world.api.objects.delete(JOB_FLOWS, self.world.flow, {})
            self.is_deleted = True

        if is_final == 0 and not self.is_deleted:
            self.do(delete())

    @rule(writes=st.integers(0, 3))
    def the_controller_dies_soon(self, writes: int) -> None:
        self.dies_after(writes)

    @rule(applied=st.booleans())
    def an_answer_is_lost(self, applied: bool) -> None:
        self.world.api.lose(applied=applied, when=lambda call: call.method != "GET")

    @rule(seconds=st.sampled_from([0.1, 1.0, 20.0]))
    def time_passes(self, seconds: float) -> None:
        self.do(self.world.clock.advance(seconds))

    # What holds.

    def told(self) -> set[str]:
        """Return the Jobs that the status says are Completed."""
        return set() if self.is_deleted else set(self.world.status.get("completedJobs", ()))

    @invariant()
    def no_job_comes_before_its_targets(self) -> None:
        self.done |= self.told()
        self.done |= {n for n in self.world.jobs if phase_of(self.world, n) == "Completed"}
        for name in self.world.jobs:
            assert {f"f-{target}" for target in STEPS[name[-1]]} <= self.done

    @invariant()
    def what_is_completed_is_not_run_again(self) -> None:
        self.recorded |= self.told()
        for name in self.recorded & self.world.jobs.keys():
            assert phase_of(self.world, name) == "Completed"

    @invariant()
    def an_end_stays(self) -> None:
        if self.is_alive and not self.is_deleted:
            assert self.ended in ("", self.world.phase)
            if self.world.phase in ("Succeed", "Failed"):
                self.ended = self.world.phase

    async def calm(self) -> None:
        """Let faults end, and all Jobs that still go on be Completed."""
        self.world.api.faults = Faults()
        if self.is_late:
            self.world.add_templates("d")
        for _ in NAMES:
            await self.world.clock.advance(70)
            for name in self.world.jobs:
                if phase_of(self.world, name) not in FINISHED:
                    self.world.turn(name, "Completed")
        await self.world.clock.advance(70)

    def check(self) -> None:
        self.no_job_comes_before_its_targets()
        self.an_end_stays()
        if self.is_deleted:
            assert self.world.jobs == {}
        elif self.world.phase == "Succeed":
            assert self.world.status["completedJobs"] == NAMES
            assert not (self.retain == "delete" and self.world.jobs)
        else:
            assert self.world.phase == "Failed"
            assert {phase_of(self.world, name) for name in self.world.jobs} <= FINISHED


def phase_of(world: FlowWorld, name: str) -> str:
    return str(world.jobs[name].get("status", {}).get("state", {}).get("phase", ""))


TestFlowMachine = FlowMachine.TestCase
TestFlowMachine.settings = settings(
    max_examples=examples(80), stateful_step_count=15, deadline=None
)
