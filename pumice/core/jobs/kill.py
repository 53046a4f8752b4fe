"""
Kill: remove pods of a Job, the whole or one target, and write what has become of it.

Every pod is marked before it is deleted, so that its end raises no policy. A kill of the whole Job
raises status.version, which makes requests of older pods void, and removes the PodGroup and what
plugins made: what comes next queues anew. Pods that are spared keep being counted.

What is written in which order decides what a controller finds that takes over in mid-kill:

    to Aborting, Completing, Terminating    status, marks, deletions    the phase goes on killing
    to Restarting, and while it lasts       marks, status, deletions    marked pods are replaced

Marks name the retry that a restart spends. Where the Job has not spent it, the restart was broken
off among the marks; it is then begun again, and reaches the pods that had none yet.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pumice.core import timestamps
from pumice.core.api.batch import Job, JobStatus
from pumice.core.api.core import Pod
from pumice.core.ids import PodUid
from pumice.core.jobs import durations, objects, plugins, state
from pumice.core.jobs import membership as m
from pumice.core.jobs import types as t
from pumice.core.jobs.counters import Counters, in_phase


def kill(seen: t.Observed, step: state.Step, decision: t.Decision, now: float) -> list[t.Effect]:
    """
    Remove all pods but the retained ones, the plugins' objects and the PodGroup.

    Where a finished or an ending Job has nothing left to remove, nothing is done but counting;
    the version moves only with a kill that removes something or enters a phase.
    """
    job = seen.job
    last_retry = job.status.retry_count >= job.spec.max_retry - 1
    retain = state.SOFT if last_retry else step.retain
    doomed = [pod for pod in _alive(seen.pods.values()) if m.phase_of(pod) not in retain]
    active = bool(doomed or step.goto or seen.group or seen.objects)
    status = msgspec.structs.replace(
        job.status,
        version=job.status.version + active,
        controlled_resources=plugins.without_resources(job.status.controlled_resources),
    )
    written = _status(seen, step, doomed, status, now)
    effects = _removals(seen, step, decision, doomed, written)
    effects += objects.remove(seen)
    if seen.group is not None:
        meta = seen.group.metadata
        effects.append(t.DeletePodGroup(meta.name, meta.uid))
    return effects


def kill_target(
    seen: t.Observed, step: state.Step, decision: t.Decision, now: float
) -> list[t.Effect]:
    """
    Remove the pods of one task, one pod or one partition; everything else stays.

    Those that go already are marked as well: they go for this, and no other policy is to act on it.
    A task or pod that is not there still costs the retry; an unknown partition changes nothing.
    """
    wanted = decision.request
    meant = [p for p in seen.pods.values() if m.task_of(p) == wanted.task]
    if decision.action == t.RESTART_POD:
        meant = [p for p in meant if p.metadata.name == wanted.pod]
    elif decision.action == t.RESTART_PARTITION:
        meant = [p for p in meant if m.partition_of(p) == wanted.partition != ""]
        if not meant:
            return []
    written = _status(seen, step, list(_alive(meant)), seen.job.status, now)
    return _removals(seen, step, decision, meant, written)


def _restart(seen: t.Observed, step: state.Step, decision: t.Decision) -> t.Restart | None:
    """Return what marks tell of a restart that spends a retry."""
    if not step.retry or decision.action not in t.RESTARTS:
        return None
    return t.Restart(decision.action, seen.job.status.retry_count + 1)


def _alive(pods: Iterable[Pod]) -> Iterable[Pod]:
    return (pod for pod in pods if not m.is_terminating(pod))


def _removals(
    seen: t.Observed,
    step: state.Step,
    decision: t.Decision,
    pods: list[Pod],
    status: list[t.Effect],
) -> list[t.Effect]:
    """Mark all, then delete those that stay; the write of the status goes where it belongs."""
    restart = _restart(seen, step, decision)
    marks: list[t.Effect] = [
        t.MarkOutOfSync(pod.metadata.name, PodUid(pod.metadata.uid), restart)
        for pod in pods
        if not m.is_out_of_sync(pod)
    ]
    deletions = [t.DeletePod(pod.metadata.name, PodUid(pod.metadata.uid)) for pod in _alive(pods)]
    if (step.goto or seen.job.status.state.phase) == "Restarting":
        return [*marks, *status, *deletions]
    return [*status, *marks, *deletions]


def _running_duration(job: Job, status: JobStatus) -> str | None:
    """Return the time from the Job's creation to its last transition."""
    created = timestamps.moment(job.metadata.creation_timestamp)
    ended = timestamps.moment(status.state.last_transition_time)
    return durations.duration(ended - created) if created and ended else None


def _status(
    seen: t.Observed, step: state.Step, doomed: list[Pod], status: JobStatus, now: float
) -> list[t.Effect]:
    """Count into the status and return its write; none where it would change nothing."""
    job, old = seen.job, seen.job.status
    gone = {pod.metadata.uid for pod in doomed}
    counters = Counters(terminating=len(doomed))
    for pod in seen.pods.values():
        if pod.metadata.uid not in gone:
            counters.add(pod)
    new = counters.written_to(status)
    new = msgspec.structs.replace(new, retry_count=old.retry_count + step.retry)
    phase = step.goto or (step.settle.phase_of(job.spec, new) if step.settle else old.state.phase)
    if phase and phase != old.state.phase:
        new = in_phase(new, phase, timestamps.stamp(now))
    if new == old:
        return []
    new.running_duration = _running_duration(job, new)
    urgent = step.retry or (new.version, new.state.phase) != (old.version, old.state.phase)
    meta = job.metadata
    return [t.PatchStatus(meta.uid, meta.resource_version, new, urgent=urgent)]
