"""Whatever befalls a Job, its pods and its controller: what must never happen does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from pumice.core import names
from pumice.core.jobs.ttl import FINISHED
from pumice.kube.resources import JOBS, POD_GROUPS, PODS, AnyResource
from tests.adapters.controllers.job_world import order
from tests.adapters.controllers.machine import ControllerMachine
from tests.adapters.controllers.mortal import OBJECTS, MortalWorld
from tests.adapters.controllers.world import Json
from tests.effort import examples
from tests.fakeapi.faults import Faults

MAX_RETRY = 3
ACTIONS = ("AbortJob", "ResumeJob", "RestartJob", "CompleteJob", "TerminateJob", "RestartTask")
POLICIES: tuple[list[Json], ...] = (
    [],
    [{"event": "PodFailed", "action": "RestartPod"}, {"event": "Unknown", "action": "RestartJob"}],
    [{"events": ["PodEvicted", "PodFailed"], "action": "RestartJob"}],
    [{"event": "*", "action": "RestartTask"}],
    [{"event": "PodPending", "action": "AbortJob", "timeout": "3s"}],
    [{"event": "PodEvicted", "action": "AbortJob", "timeout": "2s"}],
    [{"event": "TaskCompleted", "action": "CompleteJob"}],
)
PLACES = st.integers(0, 3)


class JobMachine(ControllerMachine[MortalWorld]):
    """A Job of up to four pods; the rules are its extender, kubelets, users and bad luck."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = ""

    async def make(self) -> MortalWorld:
        return MortalWorld()

    @initialize(policies=st.sampled_from(POLICIES), minimum=st.integers(1, 3))
    def submit(self, policies: list[Json], minimum: int) -> None:
        async def begin() -> None:
            self.world.submit(replicas=3, minAvailable=minimum, policies=policies,
                              maxRetry=MAX_RETRY, plugins={"svc": []})  # fmt: skip
            self.start()
            await self.world.comes_true(lambda: self.world.phase == "Running")

        self.do(begin())

    def running(self) -> AbstractAsyncContextManager[Any]:
        return self.world.running(max_requeues=-1)

    # What happens.

    @rule(place=PLACES, phase=st.sampled_from(["Succeeded", "Failed"]))
    def a_pod_ends(self, place: int, phase: str) -> None:
        self.to_a_pod(place, lambda name: self.world.set_phase(phase, name))

    @rule(place=PLACES)
    def a_kubelet_refuses_a_pod(self, place: int) -> None:
        self.to_a_pod(place, lambda name: self.world.set_phase("Failed", name, reason="OutOfcpu"))

    @rule(place=PLACES)
    def a_pod_is_deleted(self, place: int) -> None:
        self.to_a_pod(place, self.world.delete)

    @rule(place=PLACES)
    def a_pod_is_to_be_replaced(self, place: int) -> None:
        self.to_a_pod(place, lambda n: self.world.annotate(n, **{names.OUT_OF_SYNC: "true"}))

    def to_a_pod(self, place: int, happen: Callable[[str], None]) -> None:
        async def change() -> None:
            pods = sorted(self.world.pods)
            if place < len(pods):
                happen(pods[place])

        self.do(change())

    @rule(replicas=st.integers(0, 4))
    def the_job_is_scaled(self, replicas: int) -> None:
        async def scale() -> None:
            self.world.scale(replicas)

        self.do(scale())

    @rule(action=st.sampled_from(ACTIONS))
    def an_order_comes(self, action: str) -> None:
        async def command() -> None:
            if not any(c["action"] == action for c in self.world.commands):
                order(self.world, action, self.world.job)

        self.do(command())

    @rule(phase=st.sampled_from(["Pending", "Running", "Unknown", ""]))
    def the_group_changes(self, phase: str) -> None:
        async def change() -> None:
            for group in self.world.groups:
                if phase:
                    self.world.api.put(POD_GROUPS, {**group, "status": {"phase": phase}})
                else:
                    self.world.api.objects.delete(POD_GROUPS, group, {})

        self.do(change())

    @rule(place=PLACES)
    def an_object_is_deleted(self, place: int) -> None:
        async def delete() -> None:
            for resource in OBJECTS[place : place + 1]:
                for obj in self.world.api.all(resource):
                    self.world.api.objects.delete(resource, obj, {})

        self.do(delete())

    @rule(writes=st.integers(0, 6))
    def the_controller_dies_soon(self, writes: int) -> None:
        self.dies_after(writes)

    @rule(resource=st.sampled_from([JOBS, PODS, POD_GROUPS]))
    def news_come_late(self, resource: AnyResource) -> None:
        self.world.api.hold(resource)

    @rule()
    def late_news_arrive(self) -> None:
        async def arrive() -> None:
            self.world.api.resume()

        self.do(arrive())

    @rule(times=st.integers(1, 3))
    def answers_are_lost(self, times: int) -> None:
        self.world.api.lose(times=times, applied=True, when=lambda call: call.method != "GET")

    @rule(method=st.sampled_from(["POST", "PATCH", "DELETE"]), seconds=st.sampled_from([0.05, 2.0]))
    def requests_are_slow(self, method: str, seconds: float) -> None:
        self.world.api.delay(seconds, times=2, method=method)

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0]))
    def time_passes(self, seconds: float) -> None:
        async def pass_on() -> None:
            self.world.play()
            await self.world.clock.advance(seconds)

        self.do(pass_on())

    # What holds.

    @invariant()
    def no_more_retries_than_allowed(self) -> None:
        assert self.world.status.get("retryCount", 0) <= MAX_RETRY

    @invariant()
    def an_end_stays(self) -> None:
        if self.ended:
            assert self.world.phase == self.ended
        elif self.world.phase in FINISHED:
            self.ended = self.world.phase

    @invariant()
    def there_is_one_group_at_most(self) -> None:
        assert len(self.world.groups) <= 1

    async def calm(self) -> None:
        """Let time pass until nothing is done any more in ten seconds."""
        self.world.api.faults = Faults()
        self.world.api.resume()
        quiet = 0
        while quiet < 5:
            self.world.writes()
            self.world.play()
            await self.world.clock.advance(2.0)
            quiet = 0 if self.world.writes() else quiet + 1

    def check(self) -> None:
        status, phase = self.world.status, self.world.phase
        self.no_more_retries_than_allowed()
        self.an_end_stays()
        assert told(status) == truth(self.world.pods)
        objects = sum(len(self.world.api.all(resource)) for resource in OBJECTS)
        if phase in ("Pending", "Running"):
            (task,) = self.world.job["spec"]["tasks"]
            assert sorted(self.world.pods) == [f"j-w-{i}" for i in range(task["replicas"])]
            assert (len(self.world.groups), objects) == (1, 3)
            alive = [p for p in self.world.pods.values() if p["status"]["phase"] == "Running"]
            versions = {p["metadata"]["annotations"][names.JOB_VERSION] for p in alive}
            assert versions <= {str(status.get("version", 0))}
        else:
            assert phase in FINISHED | {"Aborted"}
            assert not any(p["status"]["phase"] == "Running" for p in self.world.pods.values())
            assert (self.world.groups, objects) == ([], 0)


def told(status: Json) -> Counter[str]:
    """Return what the status says of pods."""
    kinds = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
    return +Counter({kind: status.get(kind, 0) for kind in kinds})


def truth(pods: dict[str, Json]) -> Counter[str]:
    """Count the pods."""
    return Counter(
        "terminating" if "deletionTimestamp" in pod["metadata"] else pod["status"]["phase"].lower()
        for pod in pods.values()
    )


TestJobMachine = JobMachine.TestCase
TestJobMachine.settings = settings(max_examples=examples(40), stateful_step_count=15)
