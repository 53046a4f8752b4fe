"""A Job controller that dies after a number of writes, and the one that takes over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from pumice.core import names
from pumice.kube.resources import (
    COMMANDS,
    CONFIG_MAPS,
    JOBS,
    NETWORK_POLICIES,
    POD_GROUPS,
    SERVICES,
    AnyResource,
)
from tests.adapters.controllers.job_world import JobWorld, order
from tests.adapters.controllers.world import Json
from tests.fakeapi.clock import settle
from tests.fakeapi.faults import Call, Fault, Faults

OBJECTS: tuple[AnyResource, ...] = (CONFIG_MAPS, NETWORK_POLICIES, SERVICES)
ROUNDS = 60


class Death:
    """The end of a process: what it sends after so many writes does not arrive."""

    def __init__(self, writes: int) -> None:
        self._left = writes
        self.come = asyncio.Event()

    def after(self, writes: int) -> None:
        """Have it come sooner."""
        self._left = min(self._left, writes)

    def takes(self, call: Call) -> bool:
        """Tell whether a request is lost."""
        if not self.come.is_set() and call.method != "GET" and "/events" not in call.path:
            self._left -= 1
            if self._left < 0:
                self.come.set()
        return self.come.is_set()


class MortalWorld(JobWorld):
    """A world whose extender and kubelets work by themselves, in rounds."""

    @asynccontextmanager
    async def dying_after(self, writes: int) -> AsyncIterator[Death]:
        """Have a controller at work that is killed after the writes; the next one lives."""
        death = Death(writes)
        self.api.faults.add(Fault(death.takes, 1_000_000, lost=True))

        async def live() -> None:
            async with self.running():
                await death.come.wait()
            self.api.faults = Faults()
            async with self.running():
                await asyncio.Event().wait()

        life = asyncio.create_task(live(), name="controllers")
        try:
            yield death
        finally:
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)

    async def comes_true(self, condition: Callable[[], object]) -> bool:
        """Let the world go on until the condition holds; return whether it ever did."""
        for _ in range(ROUNDS):
            if condition():
                return True
            self.play()
            await settle()
            await self.clock.advance(0.5)
        return False

    async def goes_on_to(self, condition: Callable[[], object]) -> None:
        """Let the world go on until the condition holds."""
        assert await self.comes_true(condition), (self.phase, self.status, sorted(self.pods))

    async def obeys(self, action: str, condition: Callable[[], object]) -> None:
        """Give an order, and once more where it was lost with the controller that took it."""
        order(self, action, self.job)
        if not await self.comes_true(condition) and not self.commands:
            order(self, action, self.job)
        await self.goes_on_to(condition)

    def play(self) -> None:
        """Play extender and kubelets for a moment."""
        for group in self.groups:
            if group.get("status", {}).get("phase", "Pending") == "Pending":
                self.api.put(POD_GROUPS, {**group, "status": {"phase": "Inqueue"}})
        self.api.finish_pods()
        for name, pod in self.pods.items():
            if pod["status"].get("phase", "Pending") == "Pending":
                self.set_phase("Running", name)

    def scale(self, replicas: int) -> None:
        """Scale the Job; its minimum may not be above its replicas."""
        job = self.job
        spec = job["spec"]
        tasks = [{**spec["tasks"][0], "replicas": replicas}]
        minimum = min(spec["minAvailable"], replicas)
        self.api.put(JOBS, {**job, "spec": {**spec, "tasks": tasks, "minAvailable": minimum}})

    def is_running(self, pods: int, retries: int = 0) -> bool:
        """Tell whether the Job runs with all its pods, none of which is about to go."""
        status = self.status
        alive = [p for p in self.pods.values() if "deletionTimestamp" not in p["metadata"]]
        return (
            self.phase == "Running"
            and status.get("retryCount", 0) >= retries
            and len(self.pods) == len(alive) == status.get("running", 0) == pods
        )

    @property
    def commands(self) -> list[Json]:
        return self.api.all(COMMANDS)

    def versions(self) -> set[str]:
        """Return for which versions of the Job its pods were made."""
        notes = (pod["metadata"]["annotations"] for pod in self.pods.values())
        return {note[names.JOB_VERSION] for note in notes}

    def picture(self) -> Json:
        """Return what there is, but for what may differ between two lives of one Job."""
        status = {k: v for k, v in self.status.items() if k not in ("version", "runningDuration")}
        status["state"] = self.phase
        status["conditions"] = [c["status"] for c in status["conditions"]]
        pods = self.pods
        picture: dict[str, Any] = {
            "status": status,
            "pods": {name: pod["status"].get("phase") for name, pod in pods.items()},
            "marked": [
                n for n, p in pods.items() if names.OUT_OF_SYNC in p["metadata"]["annotations"]
            ],
            "groups": len(self.groups),
            "commands": self.commands,
        }
        for resource in OBJECTS:
            picture[resource.plural] = [
                (obj["metadata"]["name"], obj.get("data")) for obj in self.api.all(resource)
            ]
        return picture
