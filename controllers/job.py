"""
The Job controller: Volcano Jobs become a PodGroup and pods, and their pods' fate their phase.

    caches ──change──► request ──► desk of the Job ──► work queue, one worker a Job at a time
                                                             │
            ┌── what the caches hold now ──► reconcile ◄─────┘
            ▼
         effects ──► API server ──► answers ──► caches

What to do is decided in `pumice.core.jobs`; here is only when. Requests of one Job wait for each
other; many events make one sync; a write that only moves counters waits a moment for more of
them. What failed is tried again with longer and longer waits: a refusal counts, and after
`max_requeues` of them the Job is terminated; an API server that is away counts for nothing.

Nothing here outlives the process. When it starts, it looks at every Job and every pod as if they
had just appeared.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from itertools import chain
from typing import Any, Final

from controllers.caches import Cache, Caches
from controllers.job_commands import JobCommands
from controllers.job_desk import Desk, timely
from controllers.job_effects import Hands
from controllers.job_metrics import JobMetrics
from controllers.job_objects import ObjectHands
from controllers.job_outcomes import Away, Made, Refused, Stale
from controllers.job_secrets import JobSecrets
from controllers.job_view import JobView
from controllers.rows import JobObject
from pumice.core.api.batch import Job
from pumice.core.api.bus import Command
from pumice.core.api.core import Pod
from pumice.core.api.scheduling import PodGroup
from pumice.core.jobs import delays, durations, events, policies
from pumice.core.jobs import membership as m
from pumice.core.jobs import types as t
from pumice.core.jobs.reconcile import SYNCHRONISE, reconcile, remaining
from pumice.kube import resources
from pumice.kube.client import Client
from pumice.kube.clock import Clock, SystemClock
from pumice.kube.errors import KubeError
from pumice.kube.events import Recorder
from pumice.kube.informer import Added, Deleted, Event, Updated
from pumice.kube.metrics import Metrics
from pumice.kube.retry import wait_s
from pumice.kube.workqueue import WorkQueue

log = logging.getLogger(__name__)

WORKERS: Final = 16
MAX_REQUEUES: Final = 15
REST: Final = 10.0
"""Mere syncs of one Job rest this many times as long as the last one took to decide."""
HURRY_S: Final = 0.05
"""The longest rest of a Job whose specification was changed."""
BLOCKED_S: Final = (1.0, 60.0)
"""Shortest and longest wait for a pod's name that somebody else holds."""
OUTAGE_S: Final = (0.02, 5.0)
"""Shortest and longest wait after a failure that does not count."""
REFUSED_S: Final = (0.005, 1000.0)
"""The same after one that counts."""
SPARE_S: Final = 30.0
"""The longest wait for pods that were refused and that the Job can do without."""


class JobController:
    """Watches and works until `run` is cancelled; must be made before the caches run."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        recorder: Recorder,
        metrics: Metrics,
        *,
        workers: int = WORKERS,
        max_requeues: int = MAX_REQUEUES,
        clock: Clock | None = None,
    ) -> None:
        self._caches = caches
        self._recorder = recorder
        self._metrics = JobMetrics(metrics)
        self._max_requeues = max_requeues
        self._clock = clock or SystemClock()
        self._secrets = JobSecrets(client, self._clock)
        self.view = JobView(caches, self._secrets)
        objects = ObjectHands(client, self.view, self._tell)
        self._hands = Hands(client, self.view, self._tell, objects)
        self._commands = JobCommands(client, caches.commands, self._obey, clock=clock)
        self.desks: dict[str, Desk] = {}
        self._started = False
        self.queue: WorkQueue[str] = WorkQueue("jobs", self._work, workers=workers, clock=clock)
        caches.want(caches.queues, caches.claims, caches.priority_classes)
        caches.jobs.subscribe(self._on_job)
        caches.pods.subscribe(self._on_pod)
        caches.foreign_pods.subscribe(self._on_pod)
        caches.pod_groups.subscribe(self._on_group)
        for cache in caches.job_objects.values():
            cache.subscribe(partial(self._on_object, cache))

    async def run(self) -> None:
        """Look at everything there is, then at everything that changes."""
        await self._caches.wait()
        self._started = True
        for key, job in self._caches.jobs.items():
            self._on_job(Added(key, job))
        for key, pod in chain(self._caches.pods.items(), self._caches.foreign_pods.items()):
            self._on_pod(Added(key, pod))
        for key, group in self._caches.pod_groups.items():
            self._on_group(Added(key, group))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.queue.run(), name="jobs")
            tasks.create_task(self._commands.queue.run(), name="job commands")

    def shutdown(self) -> None:
        """Begin nothing more; `run` returns when what is under way is done."""
        self.queue.shutdown()
        self._commands.queue.shutdown()

    # Changes become requests.

    def _on_job(self, event: Event[Job, Job]) -> None:
        if isinstance(event, Deleted):
            self.desks.pop(event.key, None)
            self.view.look_again(event.uid)
            self._secrets.forget(event.old)
            return
        old = event.old if isinstance(event, Updated) else None
        if request := events.job_changed(old, event.obj):
            self._ask(event.key, request)
        if old is not None and old.spec != event.obj.spec:
            self._hurry(event.key)

    def _on_pod(self, event: Event[Pod, Pod]) -> None:
        if isinstance(event, Deleted):
            self.view.noticed(event.uid)
            self._ask(m.job_key(event.old), events.pod_deleted(event.old))
            return
        key = m.job_key(event.obj)
        if not key or not self._started:
            return
        old = event.old if isinstance(event, Updated) else None
        self._follow(key, old, event.obj)
        peers = self._caches.pods_by_owner.get(m.owner_uid(event.obj.metadata)).values()
        self._ask(key, events.pod_changed(old, event.obj, self.view.job(key), peers))

    def _follow(self, key: str, old: Pod | None, pod: Pod) -> None:
        """Note whether kubelets take a pod; one that is refused in a row waits in between."""
        name, desk = pod.metadata.name, self.desks.get(key)
        if desk is None or (old is not None and m.phase_of(old) == m.phase_of(pod)):
            return
        if m.phase_of(pod) == "Running":
            desk.turned_away.pop(name, None)
        elif m.is_refused(pod) and (wait := desk.turn_away(name, self._clock.monotonic())):
            times, after = desk.turned_away[name], durations.duration(wait)
            text = (
                f"Pod {name} was refused by its node {times} times in a row: "
                f"{pod.status.reason}; another one is made after {after}"
            )
            if job := self.view.job(key):
                self._tell(job, t.RecordEvent("Warning", "FailedCreate", text))

    def _on_group(self, event: Event[PodGroup, PodGroup]) -> None:
        if isinstance(event, Deleted):
            self.view.noticed(event.uid)
            self._ask(m.group_job_key(event.old), events.SYNCED)
            return
        old = event.old if isinstance(event, Updated) else None
        if request := events.group_changed(old, event.obj):
            self._ask(m.group_job_key(event.obj), request)

    def _on_object(self, cache: Cache[Any, JobObject], event: Event[Any, JobObject]) -> None:
        """Have the Job of an object look at it when it is lost, or not as it was."""
        if isinstance(event, Added):
            return
        if isinstance(event, Deleted):
            self.view.noticed(event.uid)
        if cache.get(event.key) != event.old:
            self._ask(event.old.job, events.SYNCED)

    def _obey(self, key: str, command: Command) -> None:
        if job := self.view.job(key):
            text = (
                f"Start to execute command {command.action}, "
                "and clean it up to make sure executed not more than once."
            )
            self._tell(job, t.RecordEvent("Normal", "CommandIssued", text))
            self._ask(key, events.command_issued(command))

    def _ask(self, key: str, request: t.Request) -> None:
        """Put a request on the Job's desk; before the start all is asked anew anyway."""
        if not key or not self._started:
            return
        desk = self.desks.setdefault(key, Desk())
        desk.delayed = delays.called_off(desk.delayed, request)
        desk.inbox[request] = None
        self.queue.add(key)

    def _hurry(self, key: str) -> None:
        """End a rest: its owner changed the Job, and whoever mounts its hosts reads them soon."""
        if desk := self.desks.get(key):
            desk.rest_until = min(desk.rest_until, self._clock.monotonic() + HURRY_S)

    # Requests become actions.

    async def _work(self, key: str) -> None:
        """Go through a Job's desk, and set the time of what has to wait."""
        desk = self.desks.get(key)
        if desk is None or self.view.job(key) is None:
            self.desks.pop(key, None)
            return
        due, desk.delayed = delays.due(desk.delayed, self._clock.monotonic())
        desk.inbox |= dict.fromkeys(r for r in due if not self._is_pointless(key, r))
        await self._clear(key, desk)
        if self.desks.get(key) is desk and (next_due := desk.next_due()) is not None:
            self.queue.add_after(key, max(next_due - self._clock.monotonic(), 0.001))

    def _is_pointless(self, key: str, request: t.Request) -> bool:
        namespace, _, _ = key.partition("/")
        return delays.is_pointless(request, self._caches.pods.get(f"{namespace}/{request.pod}"))

    async def _clear(self, key: str, desk: Desk) -> None:
        """Work until the desk is empty or something failed; orders first, one sync at the end."""
        for decision in list(desk.again) if self._clock.monotonic() >= desk.rest_until else ():
            if decision in desk.again and not await self._try_again(key, desk, decision):
                return
        while desk.inbox and self._job(key, desk):
            request = next(iter(desk.inbox))
            del desk.inbox[request]
            if not await self._answer(key, desk, request):
                return
        now = self._clock.monotonic()
        if desk.wants_sync(now) and now >= desk.rest_until:
            await self._attempt(key, desk, SYNCHRONISE)

    async def _try_again(self, key: str, desk: Desk, decision: t.Decision) -> bool:
        """Do what is left to do of an action that failed on the way."""
        job = self._job(key, desk)
        if job and remaining(decision, job) == SYNCHRONISE:
            del desk.again[decision]
            desk.unsynced = True
            return True
        return await self._attempt(key, desk, decision)

    async def _answer(self, key: str, desk: Desk, request: t.Request) -> bool:
        """Decide on a request as the Job is now; mere syncs are left for the end."""
        job = self._job(key, desk)
        if job is None:
            return False
        decision = policies.decide(request, job)
        if decision.action == t.SYNC:
            desk.unsynced = True
            return True
        if not decision.after_s:
            return await self._attempt(key, desk, decision)
        after = durations.duration(decision.after_s)
        text = f"Execute action {decision.action} after {after}"
        self._tell(job, t.RecordEvent("Normal", "ExecuteAction", text))
        desk.delayed = delays.scheduled(desk.delayed, decision, self._clock.monotonic())
        desk.unsynced = True  # What went is replaced meanwhile: that may call the action off.
        return True

    async def _attempt(self, key: str, desk: Desk, decision: t.Decision) -> bool:
        """Run an action; where it fails, keep it for later and return False."""
        job = self._job(key, desk)
        if job is None:
            return False
        try:
            await self._run(job, desk, decision)
        except Refused as error:
            log.warning("job %s: %s: refused: %s", key, decision.action, error)
            self._refused(job, desk, decision, error)
            return False
        except (Stale, Away) as error:
            log.info("job %s: %s: again: %s", key, decision.action, error)
            self._put_off(job, desk, decision, error)
            return False
        except Exception:
            # A mistake of ours: the queue tells of it and comes back, and then this is still to do.
            self._keep(desk, decision, 0.0)
            raise
        if not desk.refused:
            desk.refusals = desk.outages = 0
        if decision.action != t.SYNC:
            desk.is_done(decision)
        return True

    async def _run(self, job: Job, desk: Desk, decision: t.Decision) -> None:
        """Decide on the present state and carry it out."""
        try:
            await self._secrets.recall(job)
        except KubeError as error:
            raise Away(str(error)) from error
        began = self._clock.monotonic()
        held = desk.held(began)
        effects = reconcile(self.view.observed(job, held), decision, self._clock.now())
        now = self._clock.monotonic()
        if decision.action == t.SYNC:
            desk.unsynced = False
            desk.rest_until = now + (now - began) * REST
        desk.warned, desk.warnings = desk.warnings, set(desk.warnings) if held else set()
        made = await self._hands.carry_out(job, timely(desk, effects, now))
        if not made.refusal:
            self._metrics.count(job, effects, self._clock.now())
        if decision.action != t.SYNC:
            self.view.look_again(job.metadata.uid)
        if any(isinstance(effect, t.PatchJob) for effect in effects):
            self._ask(job.metadata.key, events.SYNCED)
        self._wait_for_names(job, desk, made.blocked)
        if made.refusal:
            self._hold(job, desk, made, made.refusal)
        elif not held or decision.action != t.SYNC:
            desk.refused, desk.refused_until = frozenset(), 0.0

    def _refused(self, job: Job, desk: Desk, decision: t.Decision, error: Refused) -> None:
        """Have what was refused done again; one refusal too many, and the Job is terminated."""
        if error.event:
            self._tell(job, error.event)
        if not self._is_over(job, desk, decision):
            base_s, cap_s = REFUSED_S
            self._keep(desk, decision, wait_s(desk.refusals, base_s=base_s, cap_s=cap_s))
            desk.refusals += 1

    def _is_over(self, job: Job, desk: Desk, decision: t.Decision) -> bool:
        """Order the end of a Job that was refused something too often; tell whether it was."""
        if not 0 <= self._max_requeues <= desk.refusals:
            return False
        text = f"Job failed on action {decision.action} for retry limit reached"
        self._tell(job, t.RecordEvent("Normal", "ExecuteAction", text))
        desk.again.clear()
        desk.refusals, desk.rest_until = 0, 0.0
        self._ask(job.metadata.key, t.Request(action=t.TERMINATE))
        return True

    def _put_off(self, job: Job, desk: Desk, decision: t.Decision, error: Stale | Away) -> None:
        """Have what did not come through done again; tell what the server says if it goes on."""
        if isinstance(error, Away) and error.event and desk.outages > 1:
            self._tell(job, error.event)
        base_s, cap_s = OUTAGE_S
        self._keep(desk, decision, wait_s(desk.outages, base_s=base_s, cap_s=cap_s))
        desk.outages += 1

    def _keep(self, desk: Desk, decision: t.Decision, seconds: float) -> None:
        """Have what failed done again after a while."""
        desk.rest_until = self._clock.monotonic() + seconds
        if decision.action == t.SYNC:
            desk.unsynced = True
        else:
            desk.again[decision] = None

    def _wait_for_names(self, job: Job, desk: Desk, blocked: int) -> None:
        """Look again later where others hold names of pods; the caches may never show whose."""
        if not blocked:
            desk.blocked, desk.look_at = 0, 0.0
            return
        base_s, cap_s = BLOCKED_S
        desk.look_at = self._clock.monotonic() + wait_s(desk.blocked, base_s=base_s, cap_s=cap_s)
        desk.blocked += 1
        if desk.blocked > 1:
            text = f"Error creating pods: {blocked} of their names belong to pods of others"
            self._tell(job, t.RecordEvent("Warning", "FailedCreate", text))

    def _hold(self, job: Job, desk: Desk, made: Made, refusal: Refused) -> None:
        """
        Hold back pods that were refused, and go on with the rest of the Job meanwhile.

        A refusal counts while the pods that there are do not make up the minimum. A Job that has
        them lives on without the others, however long these are refused.
        """
        if refusal.event:
            self._tell(job, refusal.event)
        there = job.status.pending + job.status.running + job.status.succeeded
        has_minimum = there >= job.spec.min_available
        if refusal.counts and not has_minimum:
            if self._is_over(job, desk, SYNCHRONISE):
                return
            wait = wait_s(desk.refusals, base_s=REFUSED_S[0], cap_s=REFUSED_S[1])
            desk.refusals += 1
        else:
            cap_s = SPARE_S if has_minimum else OUTAGE_S[1]
            wait = wait_s(desk.outages, base_s=OUTAGE_S[0], cap_s=cap_s)
            desk.outages += 1
        desk.refused, desk.refused_until = made.refused, self._clock.monotonic() + wait
        desk.unsynced = True  # What could be made is to be counted.

    def _job(self, key: str, desk: Desk) -> Job | None:
        """Return the Job of a desk; None where its name stands for another one by now."""
        return self.view.job(key) if self.desks.get(key) is desk else None

    def _tell(self, job: Job, event: t.RecordEvent) -> None:
        """Record an event; a warning that the last pass gave as well is not repeated."""
        desk = self.desks.get(job.metadata.key)
        if desk is not None and event.type == "Warning":
            desk.warnings.add(event)
            if event in desk.warned:
                return
        self._recorder.record(resources.JOBS, job.metadata, event.type, event.reason, event.message)
