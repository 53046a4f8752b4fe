"""
The garbage collector: finished Jobs are deleted when their time to live is over.

    Job finished, or its TTL changed ──► timer ──► Job read from the API server ──► deleted

The cache says when to look; the API server's word is what a Job is deleted on, and the deletion
names the version that was read. Pods and whatever else the Job owns go with it, before it: whoever
waits for the Job to be gone finds the rest gone too.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final

from controllers.caches import Caches
from pumice.core.api.batch import Job
from pumice.core.jobs import ttl
from pumice.kube import resources
from pumice.kube.client import Client, Preconditions
from pumice.kube.clock import Clock, SystemClock
from pumice.kube.errors import NotFound
from pumice.kube.informer import Deleted, Event
from pumice.kube.workqueue import WorkQueue

log = logging.getLogger(__name__)

LONGEST_S: Final = 3600.0
"""How long a timer runs at most: the machine's wall clock may be set meanwhile."""


class GarbageCollector:
    """Watches and works until `run` is cancelled; make it before the caches run."""

    def __init__(
        self, client: Client, caches: Caches, *, workers: int = 1, clock: Clock | None = None
    ) -> None:
        self._client = client
        self._caches = caches
        self._clock = clock or SystemClock()
        self.queue: WorkQueue[str] = WorkQueue("garbage", self._work, workers=workers, clock=clock)
        caches.jobs.subscribe(self._on_job)

    async def run(self) -> None:
        """Delete what is due, and what comes to be."""
        await self.queue.run()

    def shutdown(self) -> None:
        """Begin nothing more; `run` returns when what is under way is done."""
        self.queue.shutdown()

    def _on_job(self, event: Event[Job, Job]) -> None:
        if not isinstance(event, Deleted) and self._is_due(event.key, event.obj):
            self.queue.add(event.key)

    def _is_due(self, key: str, job: Job) -> bool:
        """Tell whether a Job is due; for one that will be, set the time to look again."""
        due = ttl.expiry(job)
        left = (due or 0.0) - self._clock.now()
        if due is not None and left > 0:
            self.queue.add_after(key, min(left, LONGEST_S))
        return due is not None and left <= 0

    async def _work(self, key: str) -> None:
        """Delete a Job if it is due, first by the cache's word, then by the API server's."""
        cached = self._caches.jobs.get(key)
        if cached is None or not self._is_due(key, cached):
            return
        namespace, name = cached.metadata.namespace, cached.metadata.name
        with suppress(NotFound):
            job = await self._client.get(resources.JOBS, namespace, name)
            if not self._is_due(key, job):
                return
            given = Preconditions(job.metadata.uid, job.metadata.resource_version)
            await self._client.delete(
                resources.JOBS, namespace, name, given=given, propagation="Foreground"
            )
            log.info("job %s: deleted, finished and its time to live is over", key)
