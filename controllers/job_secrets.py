"""
Secrets of Jobs, read by their names: whoever may list Secrets may read those of everybody.

A Job whose plugins want a Secret has it read before anything is decided. What was read, or came
with the answer of a write, is good for a while; nothing is told when somebody else changes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from controllers.rows import JobObject, job_object
from pumice.core.api.batch import Job
from pumice.core.jobs import plugins
from pumice.kube import resources
from pumice.kube.client import Client
from pumice.kube.clock import Clock
from pumice.kube.errors import NotFound
from pumice.kube.resources import Plain

KEPT_S = 300.0
"""How long a Secret is taken to be as it was read."""


class JobSecrets:
    """What is known of Secrets, by `namespace/name`."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        #: the row, None for one that is not there, and until when that is good
        self._known: dict[str, tuple[JobObject | None, float]] = {}

    async def recall(self, job: Job) -> None:
        """Read the Secrets of a Job of which nothing is known; raise KubeError."""
        namespace = job.metadata.namespace
        for name in plugins.secrets(job):
            key = f"{namespace}/{name}"
            if self._known.get(key, (None, 0.0))[1] > self._clock.monotonic():
                continue
            try:
                secret = await self._client.get(resources.SECRETS, namespace, name)
            except NotFound:
                self.lost(key)
            else:
                self.observe(secret)

    def of(self, job: Job) -> Iterator[JobObject]:
        """Return the rows of a Job's Secrets, of those that are its own."""
        for name in plugins.secrets(job):
            row, _ = self._known.get(f"{job.metadata.namespace}/{name}", (None, 0.0))
            if row and row.job_uid == job.metadata.uid:
                yield row

    def observe(self, obj: Plain) -> None:
        """Take a Secret as it is now."""
        self._known[obj.metadata.key] = (job_object(obj), self._clock.monotonic() + KEPT_S)

    def lost(self, key: str) -> None:
        """Take that a Secret is not there."""
        self._known[key] = (None, self._clock.monotonic() + KEPT_S)

    def forget(self, job: Job) -> None:
        """Forget what is known of the Secrets of a Job that is gone."""
        for name in plugins.secrets(job):
            self._known.pop(f"{job.metadata.namespace}/{name}", None)
