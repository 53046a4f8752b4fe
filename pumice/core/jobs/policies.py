"""
From a request to an action: who decides, and in which order.

An order (a Command, a delayed action that came due, a restart that was broken off) is obeyed at
once. A pod's end is judged by the policies of its task, then by those of the Job; the first that
matches decides. Requests about a Job or pods that are no more lead to a plain sync.
"""

from __future__ import annotations

from collections.abc import Iterable

from pumice.core.api.batch import Event, Job, LifecyclePolicy
from pumice.core.jobs import durations
from pumice.core.jobs import types as t
from pumice.core.jobs.event_table import kind_of


def decide(request: t.Request, job: Job) -> t.Decision:
    """Return the action for a request, as Volcano's applyPolicies."""
    sync = t.Decision(t.SYNC, request)
    if request.action:
        return sync if is_done(request, job) else t.Decision(request.action, request)
    if not kind_of(request.event).answered:
        return sync
    if request.job_uid and request.job_uid != job.metadata.uid:
        return sync
    if request.version is not None and request.version < job.status.version:
        return sync
    policy = _match(request, _asked(job, request.task))
    if policy is None or policy.action == t.SYNC:
        return sync
    after_s = durations.seconds(policy.timeout) if policy.timeout else None
    return t.Decision(policy.action, request, max(after_s or 0.0, 0.0))


def is_done(request: t.Request, job: Job) -> bool:
    """Tell whether an order spends a retry that is not the next of this very Job."""
    if not request.retry:
        return False
    is_next = request.retry == job.status.retry_count + 1
    return not is_next or request.job_uid != job.metadata.uid


def listens(job: Job, task: str, event: Event) -> bool:
    """Tell whether any policy would act on the event; saves counting pods where none does."""
    return any(_names(policy, event) for policy in _asked(job, task))


def faults(job: Job) -> list[str]:
    """Return what is wrong with the policies, in sentences; such a policy is left out."""
    tasks = {f"task {task.name}": task.policies for task in job.spec.tasks or ()}
    return [
        f"policy {policy.action} of the {owner} is ignored: "
        f'timeout "{policy.timeout}" is not a duration'
        for owner, policies in {"job": job.spec.policies, **tasks}.items()
        for policy in policies or ()
        if not _readable(policy)
    ]


def _asked(job: Job, task: str) -> Iterable[LifecyclePolicy]:
    """Yield the policies in the order in which they are asked."""
    if task:
        for spec in job.spec.tasks or ():
            if spec.name == task:
                yield from filter(_readable, spec.policies or ())
    yield from filter(_readable, job.spec.policies or ())


def _match(request: t.Request, policies: Iterable[LifecyclePolicy]) -> LifecyclePolicy | None:
    for policy in policies:
        if _names(policy, request.event):
            return policy
        if policy.exit_code is not None and 0 != policy.exit_code == request.exit_code:
            return policy
    return None


def _names(policy: LifecyclePolicy, event: str) -> bool:
    """Tell whether the policy is for the event; one for PodPending must have a timeout."""
    kind = kind_of(event)
    if not kind.answered or (kind.needs_timeout and not policy.timeout):
        return False
    named = {policy.event, *(policy.events or ())}
    return event in named or "*" in named


def _readable(policy: LifecyclePolicy) -> bool:
    return not policy.timeout or durations.seconds(policy.timeout) is not None
