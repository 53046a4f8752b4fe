"""
The CronJob controller: Jobs by the clock.

    CronJob changed ──────────────┐
    a Job of it came, ended, went ┼──► one worker a CronJob ──► reconcile ──► effects
    its next moment has come ─────┘                                 ▲            │
                                                                    └── created ─┘

What to do is decided in `pumice.core.crons`. A Job is created first and written down after; the
next pass, or the next controller, finds it by its name. A timer runs an hour at most: wall clocks
are set, and machines sleep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from controllers.caches import Caches, Index
from controllers.statuses import patch_status
from controllers.telling import Teller, said
from controllers.zones import offsets
from pumice.core import names, ownership
from pumice.core.api.batch import Job
from pumice.core.api.cron import CronJob
from pumice.core.crons import types as t
from pumice.core.crons.jobs import KIND
from pumice.core.crons.reconcile import reconcile
from pumice.kube import resources
from pumice.kube.client import Client, Preconditions
from pumice.kube.clock import Clock, SystemClock
from pumice.kube.errors import AlreadyExists, Conflict, Forbidden, KubeError, NotFound
from pumice.kube.events import Recorder
from pumice.kube.informer import Deleted, Event, Updated
from pumice.kube.workqueue import WorkQueue

WORKERS: Final = 3
LONGEST_S: Final = 3600.0
LATE_S: Final = 0.1
"""How long after a moment is looked: by then it is over on every clock that is about right."""
TERMINATING: Final = "is being terminated"
"""What the API server says of a namespace in which nothing can be created any more."""


class CronJobController:
    """Watches and works until `run` is cancelled; make it before the caches run."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        events: Recorder,
        *,
        workers: int = WORKERS,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._caches = caches
        self._teller = Teller(events, resources.CRON_JOBS)
        self._clock = clock or SystemClock()
        #: since when a schedule is what it is, where it was seen to change
        self._since: dict[str, float] = {}
        #: by CronJob, uids of Jobs that were deleted here and may still be shown or referred to
        self._removed: dict[str, set[str]] = {}
        self.queue: WorkQueue[str] = WorkQueue("cronjobs", self._work, workers=workers, clock=clock)
        self._jobs: Index[Job] = Index(lambda job: _cron_key(job) or None, caches.jobs)
        caches.cron_jobs.subscribe(self._on_cron)
        caches.jobs.subscribe(self._on_job)

    async def run(self) -> None:
        """Follow CronJobs and what they made."""
        await self._caches.wait()
        await self.queue.run()

    def shutdown(self) -> None:
        """Begin nothing more; `run` returns when what is under way is done."""
        self.queue.shutdown()

    # Changes become keys.

    def _on_cron(self, event: Event[CronJob, CronJob]) -> None:
        """Look at a CronJob; a new schedule counts from now on, whatever the old one missed."""
        key = event.key
        if isinstance(event, Deleted):
            self._teller.forget(key)
            for memory in (self._since, self._removed):
                memory.pop(key, None)
            return
        if isinstance(event, Updated) and _schedule(event.obj) != _schedule(event.old):
            self._since[key] = self._clock.now()
        self.queue.add(key)

    def _on_job(self, event: Event[Job, Job]) -> None:
        """Look at the CronJob of a Job that came, went, or changed its phase."""
        if isinstance(event, Updated) and _standing(event.obj) == _standing(event.old):
            return
        if key := _cron_key(event.old if isinstance(event, Deleted) else event.obj):
            self.queue.add(key)

    # Keys become effects.

    async def _work(self, key: str) -> None:
        """Do what one CronJob needs now."""
        cron = self._caches.cron_jobs.get(key)
        if cron is None:
            return
        effects = reconcile(self._observed(key, cron), offsets, self._clock.now())
        self._teller.begin(key)
        for effect in effects:
            await self._carry_out(cron, effect)

    def _observed(self, key: str, cron: CronJob) -> t.Observed:
        meta = cron.metadata
        jobs = {
            job.metadata.uid: job
            for job in self._jobs.get(key).values()
            if ownership.is_controlled_by(job.metadata, meta)
        }
        known = jobs.keys() | {reference.uid for reference in cron.status.active or ()}
        removed = self._removed[key] = self._removed.get(key, set()) & known
        return t.Observed(
            cron,
            [job for uid, job in jobs.items() if uid not in removed],
            removed,
            lambda name: self._caches.jobs.get(f"{meta.namespace}/{name}"),
            self._since.get(key, 0.0),
        )

    async def _carry_out(self, cron: CronJob, effect: t.Effect) -> None:
        """Do one effect; raise where it cannot be done, for the whole to be tried again."""
        match effect:
            case t.LookAgain(at=at):
                left = max(at - self._clock.now(), 0.0) + LATE_S
                self.queue.add_after(cron.metadata.key, min(left, LONGEST_S))
            case t.PatchStatus(status=status):
                await patch_status(self._client, self._caches.cron_jobs, cron, status)
            case t.CreateJob(job=job):
                await self._create(cron, job)
            case t.DeleteJob():
                await self._delete(cron, effect)
            case t.RecordEvent():
                self._teller.tell(cron.metadata, effect)
            case other:
                assert_never(other)

    async def _create(self, cron: CronJob, job: Job) -> None:
        """Create a Job; whatever has the name already is looked at in the next pass."""
        meta = cron.metadata
        try:
            made = await self._client.create(resources.JOBS, meta.namespace, job)
        except AlreadyExists:
            made = await self._client.get(resources.JOBS, meta.namespace, job.metadata.name)
        except KubeError as error:
            is_over = isinstance(error, Forbidden) and TERMINATING in error.message
            reason = "NamespaceTerminating" if is_over else "FailedCreate"
            text = f"Failed to create job: {said(error)}"
            self._teller.tell(meta, t.RecordEvent("Warning", reason, text))
            if is_over:
                return
            raise
        else:
            text = f"Created job {job.metadata.name} for CronJob {meta.key}"
            self._teller.tell(meta, t.RecordEvent("Normal", "SuccessfulCreate", text))
        self._caches.jobs.observe(made)
        self.queue.add(meta.key)

    async def _delete(self, cron: CronJob, effect: t.DeleteJob) -> None:
        """Delete a Job; that it is gone, or another by now, is as good."""
        meta, name = cron.metadata, effect.name
        try:
            await self._client.delete(
                resources.JOBS,
                meta.namespace,
                name,
                given=Preconditions(uid=effect.uid),
                propagation="Background",
            )
        except (NotFound, Conflict):
            return
        except KubeError as error:
            text = f'Error deleting job "{name}": {said(error)}'
            self._teller.tell(meta, t.RecordEvent("Warning", "FailedDelete", text))
            raise
        self._removed[meta.key].add(effect.uid)
        text = f'Deleted job "{name}"'
        self._teller.tell(meta, t.RecordEvent("Normal", "SuccessfulDelete", text))


def _cron_key(job: Job) -> str:
    return ownership.owner_key(job.metadata, names.BATCH_API, KIND)


def _schedule(cron: CronJob) -> Sequence[str | None]:
    return cron.spec.schedule, cron.spec.time_zone


def _standing(job: Job) -> Sequence[str | None]:
    """Return what a CronJob depends on, of one of its Jobs."""
    return job.status.state.phase, job.metadata.deletion_timestamp
