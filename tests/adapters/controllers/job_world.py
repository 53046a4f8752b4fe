"""A cluster for tests of the Job controller: the tests play extender and kubelets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from controllers.job import JobController
from pumice.core import names
from pumice.core.api.meta import ObjectMeta
from pumice.core.api.scheduling import Queue
from pumice.kube.resources import COMMANDS, EVENTS, JOBS, POD_GROUPS, PODS, QUEUES
from tests.adapters.controllers.world import Json, Process, World
from tests.fakeapi.clock import settle, until
from tests.unit.jobs.builders import template

RESTART = [{"event": "PodEvicted", "action": "RestartJob"}]


def make(process: Process, **options: Any) -> JobController:
    """Return a Job controller."""
    return JobController(
        process.client,
        process.caches,
        process.events,
        process.metrics,
        clock=process.clock,
        **options,
    )


class JobWorld(World[JobController]):
    """A world with the Job controller in it, and the default queue."""

    def __init__(self) -> None:
        super().__init__(make)
        self.api.add(QUEUES, Queue(metadata=ObjectMeta(name="default")))

    def submit(self, replicas: int = 2, **spec: Any) -> Json:
        """Create Job `j` with one task `w`."""
        task = {"name": "w", "replicas": replicas, "template": template("1")}
        body = {"metadata": {"name": "j"}, "spec": {"tasks": [task], **spec}}
        return self.api.add(JOBS, body, "ns")

    @property
    def job(self) -> Json:
        job = self.api.get(JOBS, "ns", "j")
        assert job is not None
        return job

    @property
    def status(self) -> Json:
        got: Json = self.job.get("status", {})
        return got

    @property
    def phase(self) -> str:
        return str(self.status.get("state", {}).get("phase", ""))

    @property
    def groups(self) -> list[Json]:
        return self.api.all(POD_GROUPS)

    @property
    def pods(self) -> dict[str, Json]:
        return {pod["metadata"]["name"]: pod for pod in self.api.all(PODS)}

    @property
    def uids(self) -> dict[str, str]:
        return {name: pod["metadata"]["uid"] for name, pod in self.pods.items()}

    def told(self, reason: str) -> list[str]:
        """Return the messages of events with a reason."""
        found = self.api.all(EVENTS)
        return [event["message"] for event in found if event["reason"] == reason]

    def enqueue(self) -> None:
        """Play the extender: let the pods of every group be made."""
        for group in self.groups:
            self.api.put(POD_GROUPS, {**group, "status": {"phase": "Inqueue"}})

    def set_phase(self, phase: str, *which: str, **status: Any) -> None:
        """Play the kubelets: give pods (all where none are named) a phase, on a node."""
        for name, pod in self.pods.items():
            if not which or name in which:
                spec = {**pod["spec"], "nodeName": "n1"}
                state = {**pod["status"], "phase": phase, **status}
                self.api.put(PODS, {**pod, "spec": spec, "status": state})

    def annotate(self, name: str, **notes: str) -> None:
        pod = self.pods[name]
        meta = pod["metadata"]
        merged = {**meta, "annotations": {**meta["annotations"], **notes}}
        self.api.put(PODS, {**pod, "metadata": merged})

    def delete(self, name: str) -> None:
        pod = self.pods[name]
        self.api.objects.delete(PODS, pod, {"gracePeriodSeconds": 0})

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for the condition, letting a little time pass where nothing else moves."""
        for _ in range(100):
            try:
                await until(condition)
            except AssertionError:
                await self.clock.advance(0.5)
            else:
                return
        raise AssertionError(f"phase {self.phase}, pods {sorted(self.pods)}: never came true")

    async def quiet(self) -> None:
        """Wait until counters that wait are written."""
        await settle()
        await self.clock.advance(1.0)

    async def finish(self) -> None:
        """Play the kubelets: end what is being deleted, once nothing more is written."""
        calls = -1
        while calls != len(self.api.calls):
            calls = len(self.api.calls)
            await settle()
        self.api.finish_pods()

    async def until_running(self, pods: int = 2) -> None:
        await self.until(lambda: len(self.groups) == 1)
        self.enqueue()
        await self.until(lambda: len(self.pods) == pods)
        self.set_phase("Running")
        await self.until(lambda: self.phase == "Running")


def order(world: JobWorld, action: str, job: Json) -> None:
    target = {
        "apiVersion": names.BATCH_API,
        "kind": "Job",
        "name": "j",
        "uid": job["metadata"]["uid"],
    }
    body = {"metadata": {"name": action.lower()}, "action": action, "target": target}
    world.api.add(COMMANDS, body, "ns")
