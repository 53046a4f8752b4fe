"""
Sync: make a Job's PodGroup and pods what its specification says, and count them.

The PodGroup comes first and the phase Pending after it, so that whoever sees the phase finds the
group. Pods are made only once the group has left its own Pending: until then they would hold
nothing but quota. A pod that is out of sync, or that a kubelet refused, is deleted here and made
again under its name when it is gone; that spends no retry and touches no other pod.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from pumice.core import names, timestamps
from pumice.core.api.batch import Job, TaskSpec
from pumice.core.api.core import Pod
from pumice.core.ids import PodUid
from pumice.core.jobs import dependencies, objects, plugins, podgroups, policies, state, volumes
from pumice.core.jobs import membership as m
from pumice.core.jobs import pods as rendering
from pumice.core.jobs import types as t
from pumice.core.jobs.counters import Counters, count, in_phase
from pumice.core.jobs.minresources import TemplateError


def sync(seen: t.Observed, step: state.Step, now: float) -> list[t.Effect]:
    """Return what is to be done; after a PatchJob or a Fail, what follows has to wait for it."""
    if refusal := _refuse(seen):
        return refusal
    effects = _forward(seen) or _prepare(seen)
    if effects and isinstance(effects[-1], t.PatchJob | t.Fail):
        return effects
    if not seen.job.status.state.phase:
        return [*effects, *_notices(seen.job), _begin(seen.job, now)]
    counters = count(seen.pods.values())
    if seen.group is not None:
        effects += _group_waits(seen)
        if seen.group.status.phase not in ("", "Pending"):
            changes = Changes(seen)
            effects += changes.effects
            counters = changes.counters
    return effects + _status(seen, step, counters, now)


def _refuse(seen: t.Observed) -> list[t.Effect]:
    """Refuse a Job that cannot be worked on as it is."""
    spec = seen.job.spec
    if seen.queue is None:
        text = f"queue {spec.queue} is not found"
        # The default queue is about to be made, where it is not there yet.
        told = [] if spec.queue == names.DEFAULT_QUEUE else [_warning("QueueError", text)]
        return [*told, t.Fail(text)]
    if state.total_replicas(spec) > t.MAX_PODS:
        text = f"a job may have {t.MAX_PODS} pods, and this one asks for more"
        return [_warning("InvalidJob", text), t.Fail(text)]
    for text in plugins.refusals(seen.job):
        event = _warning("PluginError", f"Execute plugin when job add failed, err: {text}")
        return [event, t.Fail(text)]
    return []


def _warning(reason: str, text: str) -> t.RecordEvent:
    return t.RecordEvent("Warning", reason, text)


def _forward(seen: t.Observed) -> list[t.Effect]:
    """Mark a Job whose queue lends it to other clusters."""
    meta = seen.job.metadata
    if not _is_forwarding(seen) or (meta.annotations or {}).get(names.JOB_FORWARDING) == "true":
        return []
    patch = {"metadata": {"annotations": {names.JOB_FORWARDING: "true"}}}
    return [t.PatchJob(meta.uid, meta.resource_version, patch)]


def _is_forwarding(seen: t.Observed) -> bool:
    return seen.queue is not None and bool(seen.queue.spec.extend_clusters)


def _prepare(seen: t.Observed) -> list[t.Effect]:
    """Return what comes before pods: the plugins' objects, claims, the PodGroup."""
    job = seen.job
    effects = objects.follow(seen)
    if job.status.state.phase in ("", "Pending"):
        effects += volumes.prepare(seen)
        if effects and isinstance(effects[-1], t.PatchJob | t.Fail):
            return effects
    try:
        want = podgroups.render(job, seen.priorities)
    except TemplateError as error:
        text = f"Failed to create PodGroup, err: {error}"
        return [_warning("PodGroupError", text), t.Fail(text)]
    if seen.group is None:
        return [*effects, t.CreatePodGroup(want)]
    patch = podgroups.drift(want.spec, seen.group.spec)
    meta = seen.group.metadata
    return [*effects, t.PatchPodGroup(meta.name, meta.uid, patch)] if patch else effects


def _notices(job: Job) -> list[t.Effect]:
    """Tell the Job's owner once what of the specification is not followed."""
    notices = [("PluginError", text) for text in plugins.faults(job)]
    notices += [("InvalidPolicy", text) for text in policies.faults(job)]
    return [_warning(reason, text) for reason, text in notices]


def _begin(job: Job, now: float) -> t.PatchStatus:
    """Enter Pending; the next sync goes on from there."""
    old = msgspec.structs.replace(
        job.status, min_available=job.spec.min_available, controlled_resources=_controlled(job)
    )
    status = in_phase(old, "Pending", timestamps.stamp(now))
    return t.PatchStatus(job.metadata.uid, job.metadata.resource_version, status)


def _controlled(job: Job) -> dict[str, str] | None:
    """Return what is made for the Job beside pods; entries of before are kept."""
    kept = job.status.controlled_resources or {}
    return {**kept, **plugins.resources(job), **volumes.resources(job)} or None


def _group_waits(seen: t.Observed) -> list[t.Effect]:
    """Repeat on the Job what the newest condition of its PodGroup complains about."""
    group = seen.group
    found = [c for c in (group.status.conditions if group else None) or () if c.status == "True"]
    if not found or group is None:
        return []
    newest = max(found, key=lambda c: timestamps.moment(c.last_transition_time))
    if newest.type == "Scheduled":
        return []
    meta = seen.job.metadata
    text = f"PodGroup {meta.namespace}:{meta.name} {newest.type.lower()}, reason: {newest.message}"
    return [_warning("PodGroupPending", text)]


@dataclass(slots=True)
class Changes:
    """Which pods are to be made and removed, and the counters once that is done."""

    seen: t.Observed
    create: list[t.Effect] = field(default_factory=list)
    mark: list[t.Effect] = field(default_factory=list)
    delete: list[t.Effect] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)

    def __post_init__(self) -> None:
        left = dict(self.seen.pods)
        for task in self.seen.job.spec.tasks or ():
            self._task(task, left)
        tasks = {task.name for task in self.seen.job.spec.tasks or ()}
        for pod in left.values():
            if m.task_of(pod) in tasks:
                self._surplus(pod)
            else:
                self.counters.add(pod)

    @property
    def effects(self) -> list[t.Effect]:
        """Return deletions before creations: what goes may be what a quota lacks."""
        return self.mark + self.delete + self.create

    def _task(self, task: TaskSpec, left: dict[str, Pod]) -> None:
        """Go through the indexes of one task; pods that are met are taken out of `left`."""
        job = self.seen.job
        may_create = dependencies.is_met(job, task, self.seen.pods)
        render: rendering.Render | None = None
        for index in range(task.replicas):
            name = m.pod_name(job, task, index)
            pod = left.pop(name, None)
            if pod is not None:
                self._present(pod)
            elif may_create and name not in self.seen.taken:
                # Most syncs make no pod, and plugins may have much to work out for a task.
                render = render or rendering.renderer(
                    job, task, forwarding=_is_forwarding(self.seen)
                )
                label = task.name or "default"
                self.create.append(t.CreatePod(name, rendering.held(render(index)), label))
                self.counters.add_phase(label, "Pending")

    def _present(self, pod: Pod) -> None:
        if m.is_out_of_sync(pod) and not m.is_terminating(pod):
            self.delete.append(t.DeletePod(pod.metadata.name, PodUid(pod.metadata.uid)))
            self.counters.terminating += 1
        else:
            self.counters.add(pod)

    def _surplus(self, pod: Pod) -> None:
        """Remove a pod beyond its task's replicas; marked, so that no policy mistakes it."""
        self.counters.terminating += 1
        if m.is_terminating(pod):
            return
        which = pod.metadata.name, PodUid(pod.metadata.uid)
        if not m.is_out_of_sync(pod):
            self.mark.append(t.MarkOutOfSync(*which))
        self.delete.append(t.DeletePod(*which))


def _status(seen: t.Observed, step: state.Step, counters: Counters, now: float) -> list[t.Effect]:
    """Return the write of the status; none where it would change nothing."""
    job, old = seen.job, seen.job.status
    new = msgspec.structs.replace(
        counters.written_to(old),
        min_available=job.spec.min_available,
        controlled_resources=_controlled(job),
        running_duration=None,
    )
    phase = step.settle.phase_of(job.spec, new) if step.settle else old.state.phase or "Pending"
    moved = phase != old.state.phase
    if new == old and not moved:
        return []
    new = in_phase(new, phase, timestamps.stamp(now))
    meta = job.metadata
    return [t.PatchStatus(meta.uid, meta.resource_version, new, urgent=moved)]
