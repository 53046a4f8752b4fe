"""
The JobTemplate controller: each JobTemplate lists the Jobs that were made of it.

Jobs come and go by the hundred; their JobTemplate is written once a second at most.
"""

from __future__ import annotations

from typing import Final

from controllers.caches import Caches, Index
from controllers.statuses import patch_status
from pumice.core.api.batch import Job
from pumice.core.api.flow import JobTemplate
from pumice.core.flows.jobs import template_key
from pumice.core.flows.reconcile import template_status
from pumice.kube.client import Client
from pumice.kube.clock import Clock
from pumice.kube.informer import Deleted, Event, Updated
from pumice.kube.workqueue import WorkQueue

STATUS_S: Final = 1.0


class JobTemplateController:
    """Watches and works until `run` is cancelled; make it before the caches run."""

    def __init__(self, client: Client, caches: Caches, *, clock: Clock | None = None) -> None:
        self._client = client
        self._caches = caches
        self.queue: WorkQueue[str] = WorkQueue("jobtemplates", self._work, workers=1, clock=clock)
        self._jobs: Index[Job] = Index(lambda job: template_key(job) or None, caches.jobs)
        caches.job_templates.subscribe(self._on_template)
        caches.jobs.subscribe(self._on_job)

    async def run(self) -> None:
        """Follow JobTemplates and what was made of them."""
        await self._caches.wait()
        await self.queue.run()

    def shutdown(self) -> None:
        """Begin nothing more; `run` returns when what is under way is done."""
        self.queue.shutdown()

    def _on_template(self, event: Event[JobTemplate, JobTemplate]) -> None:
        if not isinstance(event, Deleted):
            self.queue.add(event.key)

    def _on_job(self, event: Event[Job, Job]) -> None:
        """Look at the JobTemplate of a Job that came or went."""
        if isinstance(event, Updated):
            return
        if key := template_key(event.old if isinstance(event, Deleted) else event.obj):
            self.queue.add_after(key, STATUS_S)

    async def _work(self, key: str) -> None:
        """Write the list where it is another one by now."""
        template = self._caches.job_templates.get(key)
        if template is None:
            return
        status = template_status(list(self._jobs.get(key).values()))
        if status != template.status:
            await patch_status(self._client, self._caches.job_templates, template, status)
