"""
The JobFlow controller: Jobs of JobTemplates, in an order.

    JobFlow changed ────────────────────┐
    a Job of it came, changed, went ────┼──► one worker a JobFlow ──► reconcile ──► effects
    a JobTemplate of its namespace came ┤                                 ▲            │
    what it asked may answer by now ────┘                                 ├── created ─┤
                                                                          └── answers ─┘

What to do is decided in `pumice.core.flows`. What follows from the phase of a Job is done at once,
everything else is written down within a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, assert_never

from controllers.caches import Caches, Index
from controllers.probing import Prober
from controllers.statuses import patch_status
from controllers.telling import Teller, said
from pumice.core import names, ownership
from pumice.core.api.batch import Job
from pumice.core.api.flow import JobFlow, JobTemplate
from pumice.core.flows import types as t
from pumice.core.flows.jobs import KIND
from pumice.core.flows.reconcile import reconcile
from pumice.kube import resources
from pumice.kube.client import Client, Preconditions
from pumice.kube.clock import Clock, SystemClock
from pumice.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from pumice.kube.events import Recorder
from pumice.kube.informer import Deleted, Event, Updated
from pumice.kube.metrics import Metrics
from pumice.kube.workqueue import WorkQueue

WORKERS: Final = 3
STATUS_S: Final = 1.0
PROBE_S: Final = 5.0
"""How often what a flow waits for is asked again."""


class JobFlowController:
    """Watches and works until `run` is cancelled; make it before the caches run."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        events: Recorder,
        metrics: Metrics,
        *,
        prober: Prober | None = None,
        workers: int = WORKERS,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._caches = caches
        self._teller = Teller(events, resources.JOB_FLOWS)
        self._prober = prober or Prober(client)
        self._clock = clock or SystemClock()
        self._ends = {
            phase: metrics.counter(
                f"jobflow_{phase.lower()}_phase_count",
                f"JobFlows that came to phase {phase}.",
                ["jobflow_namespace"],
            )
            for phase in ("Succeed", "Failed")
        }
        self.queue: WorkQueue[str] = WorkQueue("jobflows", self._work, workers=workers, clock=clock)
        self._jobs: Index[Job] = Index(lambda job: _flow_key(job) or None, caches.jobs)
        self._flows: Index[JobFlow] = Index(lambda f: f.metadata.namespace, caches.job_flows)
        caches.job_flows.subscribe(self._on_flow)
        caches.jobs.subscribe(self._on_job)
        caches.job_templates.subscribe(self._on_template)

    async def run(self) -> None:
        """Follow JobFlows and what they are made of."""
        await self._caches.wait()
        await self.queue.run()

    def shutdown(self) -> None:
        """Begin nothing more; `run` returns when what is under way is done."""
        self.queue.shutdown()

    # Changes become keys.

    def _on_flow(self, event: Event[JobFlow, JobFlow]) -> None:
        if isinstance(event, Deleted):
            self._teller.forget(event.key)
        else:
            self.queue.add(event.key)

    def _on_job(self, event: Event[Job, Job]) -> None:
        """Look at the JobFlow of a Job: soon, or at once where its phase is another one."""
        if not (key := _flow_key(event.old if isinstance(event, Deleted) else event.obj)):
            return
        if isinstance(event, Updated) and _phase(event.obj) == _phase(event.old):
            self.queue.add_after(key, STATUS_S)
        else:
            self.queue.add(key)

    def _on_template(self, event: Event[JobTemplate, JobTemplate]) -> None:
        """Look at the JobFlows that may wait for a JobTemplate, or for a better one."""
        if isinstance(event, Deleted):
            return
        if isinstance(event, Updated) and event.obj.spec == event.old.spec:
            return
        for key in self._flows.get(event.obj.metadata.namespace):
            self.queue.add(key)

    # Keys become effects.

    async def _work(self, key: str) -> None:
        """Do what one JobFlow needs now."""
        flow = self._caches.job_flows.get(key)
        if flow is None:
            return
        self._teller.begin(key)
        effects = reconcile(self._observed(flow), self._clock.now())
        checks = [
            check for effect in effects if isinstance(effect, t.Ask) for check in effect.checks
        ]
        if checks:
            answers = await self._ask(flow, checks)
            effects = reconcile(self._observed(flow, answers), self._clock.now())
        for effect in effects:
            await self._carry_out(flow, effect)

    def _observed(self, flow: JobFlow, answers: dict[t.Check, int] | None = None) -> t.Observed:
        meta = flow.metadata
        jobs = self._jobs.get(meta.key).values()
        return t.Observed(
            flow,
            [job for job in jobs if ownership.is_controlled_by(job.metadata, meta)],
            lambda name: self._caches.job_templates.get(f"{meta.namespace}/{name}"),
            lambda name: self._caches.jobs.get(f"{meta.namespace}/{name}"),
            answers or {},
        )

    async def _ask(self, flow: JobFlow, checks: Iterable[t.Check]) -> dict[t.Check, int]:
        asked = list(checks)
        namespace = flow.metadata.namespace
        counts = await asyncio.gather(*(self._prober.count(namespace, check) for check in asked))
        return dict(zip(asked, counts, strict=True))

    async def _carry_out(self, flow: JobFlow, effect: t.Effect) -> None:
        """Do one effect; raise where it cannot be done, for the whole to be tried again."""
        meta = flow.metadata
        match effect:
            case t.PatchStatus(status=status):
                await patch_status(self._client, self._caches.job_flows, flow, status)
                phase = status.state.phase
                if phase != flow.status.state.phase and phase in self._ends:
                    self._ends[phase].labels(meta.namespace).inc()
            case t.CreateJob(job=job):
                await self._create(flow, job)
            case t.DeleteJob(name=name, uid=uid):
                await self._delete(meta.namespace, name, uid)
            case t.RecordEvent():
                self._teller.tell(flow.metadata, effect)
            case t.Ask():
                self.queue.add_after(meta.key, PROBE_S)
            case t.LookAgain(seconds=seconds):
                self.queue.add_after(meta.key, seconds)
            case other:
                assert_never(other)

    async def _create(self, flow: JobFlow, job: Job) -> None:
        """Create a Job; whatever has the name already is looked at in the next pass."""
        meta = flow.metadata
        try:
            made = await self._client.create(resources.JOBS, meta.namespace, job)
        except AlreadyExists:
            made = await self._client.get(resources.JOBS, meta.namespace, job.metadata.name)
        except KubeError as error:
            text = f"{t.SYNC} JobFlow failed for {said(error)}"
            self._teller.tell(meta, t.RecordEvent("Warning", t.SYNC, text))
            raise
        else:
            text = f"create a job named {job.metadata.name}!"
            self._teller.tell(meta, t.RecordEvent("Normal", "Created", text))
        self._caches.jobs.observe(made)
        self.queue.add(meta.key)

    async def _delete(self, namespace: str, name: str, uid: str) -> None:
        """Delete a Job; that it is gone, or another by now, is as good."""
        given = Preconditions(uid=uid)
        with suppress(NotFound, Conflict):
            await self._client.delete(
                resources.JOBS, namespace, name, given=given, propagation="Background"
            )


def _flow_key(job: Job) -> str:
    return ownership.owner_key(job.metadata, names.FLOW_API, KIND)


def _phase(job: Job) -> str:
    return job.status.state.phase
