"""
What each path answers: the question decoded, judged by `pumice.core.admission`, and the verdict.

An object that cannot be read gets no defaults: the API server's schema, which comes next, says
what is wrong with it better than we could. Where it is to be judged, it is refused in words.
"""

from __future__ import annotations

import asyncio
import logging
import zoneinfo
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Protocol, TypeVar

import msgspec

from pumice.core import names
from pumice.core.admission import (
    cronjobs,
    hypernodes,
    job_creation,
    job_templates,
    job_update,
    jobflows,
    jobs,
    patches,
    podgroups,
    pods,
    queues,
    resource_groups,
)
from pumice.core.admission.drafts import JobDraft, QueueDraft
from pumice.core.admission.errors import FieldError
from pumice.core.admission.patches import Operation
from pumice.core.admission.queues import Rules
from pumice.core.admission.resource_groups import ResourceGroup
from pumice.core.admission.views import Queues
from pumice.core.api.batch import Job
from pumice.core.api.core import Pod
from pumice.core.api.cron import CronJob
from pumice.core.api.flow import JobFlow, JobTemplate
from pumice.core.api.meta import Struct
from pumice.core.api.scheduling import PodGroup, Queue
from pumice.core.api.topology import HyperNode
from pumice.kube.errors import KubeError
from webhooks.wire import Request

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Struct)

NAMESPACE_S = 2.0


class UnreadableError(Exception):
    """An object does not have the form of its kind."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Yes, with these changes."""

    steps: Sequence[Operation] = ()


@dataclass(frozen=True, slots=True)
class Denied:
    """No, and why."""

    errors: Sequence[FieldError]


Verdict = Allowed | Denied


class KnownQueues(Protocol):
    """Where the queues come from."""

    async def known(self, name: str) -> Queues:
        """Return the queues after a look for this one."""
        ...

    async def opened(self, name: str) -> Queues:
        """Return the queues after this one had time to be opened."""
        ...


NamespaceAnnotations = Callable[[str], Awaitable[Mapping[str, str]]]
"""Return the annotations of a namespace."""


@dataclass(frozen=True, slots=True)
class Options:
    """What an installation chooses."""

    scheduler_names: Collection[str] = (names.DEFAULT_SCHEDULER,)
    queue_rules: Rules = field(default_factory=Rules)
    #: mark the pods that are held: kube-scheduler is shared with other pods
    marker: bool = False
    #: put Volcano's queue gate on pods that ask for it
    queue_gate: bool = False


class Reviews:
    """The judge; `paths` says what it answers where."""

    def __init__(
        self, queues: KnownQueues, annotations: NamespaceAnnotations, options: Options
    ) -> None:
        self._queues = queues
        self._annotations = annotations
        self._options = options
        #: resource groups of pods; they change with their file
        self.groups: Sequence[ResourceGroup] = ()
        self.paths: Mapping[str, Callable[[Request], Awaitable[Verdict]]] = {
            "/jobs/mutate": self._mutate_job,
            "/jobs/validate": self._validate_job,
            "/queues/mutate": self._mutate_queue,
            "/queues/validate": self._validate_queue,
            "/cronjobs/validate": self._validate_cron_job,
            "/jobflows/validate": self._validate_flow,
            "/jobtemplates/validate": self._validate_template,
            "/hypernodes/validate": self._validate_hypernode,
            "/podgroups/mutate": self._mutate_group,
            "/podgroups/validate": self._validate_group,
            "/pods/mutate": self._mutate_pod,
            "/pods/validate": self._validate_pod,
        }

    async def answer(self, path: str, request: Request) -> Verdict:
        """Return the verdict on a request that came to its path."""
        try:
            return await self.paths[path](request)
        except UnreadableError as error:
            if path.endswith("/mutate"):
                return Allowed()
            return Denied([FieldError("", str(error))])

    async def _mutate_job(self, request: Request) -> Verdict:
        job = _read(request.object, JobDraft)
        scheduler = next(iter(self._options.scheduler_names))
        return _changed(request, job, jobs.defaults(job, scheduler))

    async def _validate_job(self, request: Request) -> Verdict:
        job = _read(request.object, Job)
        if request.operation == "UPDATE":
            return _judged(job_update.check(_read(request.old_object, Job), job))
        return _judged(job_creation.check(job, await self._queues.opened(job.spec.queue)))

    async def _mutate_queue(self, request: Request) -> Verdict:
        queue = _read(request.object, QueueDraft)
        return _changed(request, queue, queues.defaults(queue))

    async def _validate_queue(self, request: Request) -> Verdict:
        rules = self._options.queue_rules
        if request.operation == "DELETE":
            known = await self._queues.known(request.name)
            return _judged(queues.check_delete(request.name, known, rules))
        queue = _read(request.object, Queue)
        known = await self._queues.known(queue.spec.parent)
        if request.operation == "UPDATE":
            old = _read(request.old_object, Queue)
            return _judged(queues.check_update(old, queue, known, rules))
        return _judged(queues.check_create(queue, known, rules))

    async def _validate_cron_job(self, request: Request) -> Verdict:
        return _judged(cronjobs.check(_read(request.object, CronJob), is_zone))

    async def _validate_flow(self, request: Request) -> Verdict:
        return _judged(jobflows.check(_read(request.object, JobFlow)))

    async def _validate_template(self, request: Request) -> Verdict:
        return _judged(job_templates.check(_read(request.object, JobTemplate)))

    async def _validate_hypernode(self, request: Request) -> Verdict:
        return _judged(hypernodes.check(_read(request.object, HyperNode)))

    async def _mutate_group(self, request: Request) -> Verdict:
        group = _read(request.object, PodGroup)
        if group.spec.queue != names.DEFAULT_QUEUE:
            return Allowed()
        try:
            async with asyncio.timeout(NAMESPACE_S):
                notes = await self._annotations(request.namespace)
        except (KubeError, TimeoutError) as error:
            # The group is good in the default queue too; it must not wait for us.
            log.warning("namespace %s: %r", request.namespace, error)
            return Allowed()
        return _changed(request, group, podgroups.defaults(group, notes))

    async def _validate_group(self, request: Request) -> Verdict:
        group = _read(request.object, PodGroup)
        known = await self._queues.opened(group.spec.queue)
        return _judged(podgroups.check_create(group, known))

    async def _mutate_pod(self, request: Request) -> Verdict:
        pod = _read(request.object, Pod)
        group = resource_groups.group_of(self.groups, pod, request.namespace)
        steps = [*group.steps(pod)] if group else []
        if group and group.scheduler_name:
            spec = msgspec.structs.replace(pod.spec, scheduler_name=group.scheduler_name)
            pod = msgspec.structs.replace(pod, spec=spec)
        ours = self._options.scheduler_names
        held = pods.gated(pod, request.namespace, ours)
        if self._options.queue_gate:
            held = pods.queue_gated(held, ours)
        if self._options.marker:
            held = pods.marked(held, request.namespace, ours)
        return Allowed([*steps, *patches.difference(pod, held)])

    async def _validate_pod(self, request: Request) -> Verdict:
        pod = _read(request.object, Pod)
        return _judged(pods.check_create(pod, self._options.scheduler_names))


@lru_cache(maxsize=1024)
def is_zone(name: str) -> bool:
    """Tell whether the time zone database of this machine has a zone."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _judged(errors: Sequence[FieldError]) -> Verdict:
    return Denied(errors) if errors else Allowed()


class _Present(msgspec.Struct):
    """Whether an object has a specification to be changed."""

    spec: dict[str, Any] | None = None


_present = msgspec.json.Decoder(_Present).decode


def _changed(request: Request, before: Struct, after: Struct) -> Verdict:
    """Return the changes; what they change is made first where there is none."""
    steps = patches.difference(before, after)
    if steps and _present(request.object).spec is None:
        steps = [Operation("add", "/spec", {}), *steps]
    return Allowed(steps)


@cache
def _decoder(kind: type[Struct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def _read(raw: msgspec.Raw, kind: type[T]) -> T:
    try:
        obj: T = _decoder(kind).decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableError(f"{kind.__name__}: {error}") from error
    return obj
