"""A cluster for tests of the JobFlow controller: the tests play Job controller and pods."""

from __future__ import annotations

from typing import Any

from controllers.flow import JobFlowController
from controllers.probing import Prober
from pumice.core import names
from pumice.core.flows.types import Check
from pumice.kube.resources import JOB_FLOWS, JOB_TEMPLATES, JOBS, PODS
from tests.adapters.controllers.world import Json, Process, World
from tests.unit.jobs.builders import template


class FlowWorld(World[JobFlowController]):
    """A world with the JobFlow controller in it."""

    def __init__(self) -> None:
        super().__init__(self._controller)
        #: addresses and ports that answer
        self.listening: set[tuple[str, int]] = set()
        #: what was asked, in order
        self.asked: list[tuple[str, int]] = []

    def _controller(self, made: Process) -> JobFlowController:
        return JobFlowController(
            made.client,
            made.caches,
            made.events,
            made.metrics,
            prober=Prober(made.client, self._answer),
            clock=made.clock,
        )

    async def _answer(self, address: str, check: Check) -> bool:
        self.asked.append((address, check.port))
        return (address, check.port) in self.listening

    def add_templates(self, *wanted: str) -> None:
        for name in wanted:
            tasks = [{"name": "w", "replicas": 1, "template": template()}]
            self.api.add(
                JOB_TEMPLATES, {"metadata": {"name": name}, "spec": {"tasks": tasks}}, "ns"
            )

    def add_flow(self, steps: dict[str, Json | list[str]], **spec: Any) -> Json:
        """Create JobFlow `f`: what each step depends on, by name."""
        flows = []
        for name, depends in steps.items():
            on = depends if isinstance(depends, dict) else {"targets": depends}
            flows.append({"name": name, "dependsOn": on} if depends else {"name": name})
        return self.api.add(
            JOB_FLOWS, {"metadata": {"name": "f"}, "spec": {"flows": flows, **spec}}, "ns"
        )

    @property
    def flow(self) -> Json:
        flow = self.api.get(JOB_FLOWS, "ns", "f")
        assert flow is not None
        return flow

    @property
    def status(self) -> Json:
        got: Json = self.flow.get("status", {})
        return got

    @property
    def phase(self) -> str:
        return str(self.status.get("state", {}).get("phase", ""))

    @property
    def jobs(self) -> dict[str, Json]:
        return {job["metadata"]["name"]: job for job in self.api.all(JOBS)}

    def turn(self, name: str, phase: str, **status: Any) -> None:
        """Play the Job controller: a Job has another phase."""
        state = {"state": {"phase": phase}, **status}
        self.api.put(JOBS, {**self.jobs[name], "status": state})

    def add_pod(self, job: str, address: str, uid: str = "") -> None:
        """Add a running pod of task `w` of a Job (by its uid), and count it in its status."""
        uid = uid or self.jobs[job]["metadata"]["uid"]
        owner = {"apiVersion": names.BATCH_API, "kind": "Job", "name": job, "controller": True}
        labels = {names.JOB_NAME: job, names.TASK_SPEC: "w"}
        body = {
            "metadata": {
                "name": f"{job}-w-0",
                "labels": labels,
                "ownerReferences": [{**owner, "uid": uid}],
            },
            "spec": template()["spec"],
        }
        pod = self.api.add(PODS, body, "ns")
        self.api.put(PODS, {**pod, "status": {"phase": "Running", "podIP": address}})
        self.turn(job, "Running", taskStatusCount={"w": {"phase": {"Running": 1}}})

    def told(self, reason: str) -> list[str]:
        return sorted(text for _, said, text in self.events() if said == reason)
