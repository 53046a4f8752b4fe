"""A cluster for tests of the CronJob controller: the tests play the Job controller."""

from __future__ import annotations

from typing import Any

from controllers.cron import CronJobController
from pumice.core import names
from pumice.core.jobs.ttl import FINISHED
from pumice.kube.clock import rfc3339
from pumice.kube.resources import CRON_JOBS, JOBS
from tests.adapters.controllers.world import Json, World
from tests.fakeapi.faults import Fault, on
from tests.fakeapi.refusals import Refusal
from tests.unit.jobs.builders import template

MINUTELY = "* * * * *"


class CronWorld(World[CronJobController]):
    """A world with the CronJob controller in it; its clock shows 22:13:20."""

    def __init__(self) -> None:
        super().__init__(
            lambda made: CronJobController(made.client, made.caches, made.events, clock=made.clock)
        )

    def add_cron(self, schedule: str = MINUTELY, name: str = "c", **spec: Any) -> Json:
        job = {"spec": {"tasks": [{"name": "w", "replicas": 1, "template": template()}]}}
        body = {
            "metadata": {"name": name},
            "spec": {"schedule": schedule, "jobTemplate": job} | spec,
        }
        return self.api.add(CRON_JOBS, body, "ns")

    def change(self, name: str = "c", **spec: Any) -> None:
        cron = self.cron(name)
        self.api.put(CRON_JOBS, {**cron, "spec": {**cron["spec"], **spec}})

    def delete_cron(self, name: str = "c") -> None:
        self.api.objects.delete(CRON_JOBS, self.cron(name), {})

    def cron(self, name: str = "c") -> Json:
        cron = self.api.get(CRON_JOBS, "ns", name)
        assert cron is not None
        return cron

    @property
    def status(self) -> Json:
        got: Json = self.cron().get("status", {})
        return got

    @property
    def active(self) -> list[str]:
        return [reference["name"] for reference in self.status.get("active", ())]

    @property
    def jobs(self) -> dict[str, Json]:
        return {job["metadata"]["name"]: job for job in self.api.all(JOBS)}

    @property
    def unfinished(self) -> list[str]:
        return [name for name, job in self.jobs.items() if phase_of(job) not in FINISHED]

    def end(self, name: str, phase: str = "Completed") -> None:
        """Play the Job controller: a Job has come to its end."""
        state = {"phase": phase, "lastTransitionTime": rfc3339(self.clock.now())}
        self.api.put(JOBS, {**self.jobs[name], "status": {"state": state}})

    def reasons(self) -> list[str]:
        return sorted(reason for _, reason, _ in self.events())


def phase_of(job: Json) -> str:
    return str(job.get("status", {}).get("state", {}).get("phase", ""))


def due_at(job: Json) -> str:
    return str(job["metadata"]["annotations"][names.CRON_TIMESTAMP])


def ending(namespace: str) -> Fault:
    """Refuse what is created in a namespace, as the API server does while the namespace ends."""
    text = f"unable to create new content in namespace {namespace} because it is being terminated"
    return Fault(on("POST", f"namespaces/{namespace}/jobs"), 1_000, Refusal(403, "Forbidden", text))
