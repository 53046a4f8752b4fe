"""
What the caches hold of one Job, put together for the core.

The caches lag behind our own writes by a moment. Answers close most of that gap; a deletion that
took effect at once leaves nothing to answer with, so its object is remembered here as gone until
the caches have noticed.
"""

from __future__ import annotations

import msgspec

from controllers.caches import Caches
from controllers.job_effects import Answer
from controllers.job_secrets import JobSecrets
from controllers.rows import JobObject
from pumice.core.admission.jobs import defaults
from pumice.core.api.batch import Job
from pumice.core.api.core import Pod
from pumice.core.api.scheduling import PodGroup
from pumice.core.api.storage import PersistentVolumeClaim
from pumice.core.jobs import membership as m
from pumice.core.jobs import state, volumes
from pumice.core.jobs.types import MAX_PODS, ObjectKey, ObjectKind, Observed, Owned
from pumice.kube.resources import Plain


class JobView:
    """Reads the caches, and takes the answers of writes."""

    def __init__(self, caches: Caches, secrets: JobSecrets) -> None:
        self._caches = caches
        self._secrets = secrets
        #: uids of what we deleted and the caches still show
        self.gone: set[str] = set()
        #: by uid of the Job, names of its plugins' objects that others hold
        self.foreign: dict[str, set[ObjectKey]] = {}

    def job(self, key: str) -> Job | None:
        """Return the Job of a name, with the defaults of admission."""
        job = self._caches.jobs.get(key)
        return None if job is None else defaults(job)

    def observed(self, job: Job, held: frozenset[str] = frozenset()) -> Observed:
        """Return all that the core asks about; pods that are held count as names taken."""
        meta = job.metadata
        owned = self._caches.pods_by_owner.get(meta.uid).values()
        pods = {pod.metadata.name: self._leaving(pod) for pod in owned}
        claims = (name for name in volumes.wanted(job) if self._has_claim(meta.namespace, name))
        return Observed(
            job=job,
            pods=pods,
            taken=self._taken(job, pods) | held,
            group=self._group(job),
            queue=self._caches.queues.get(job.spec.queue),
            claims=frozenset(claims),
            objects=self._objects(job),
            foreign=frozenset(self.foreign.get(meta.uid, ())),
            priorities={name: c.value for name, c in self._caches.priority_classes.items()},
        )

    def changed(self, obj: Answer) -> None:
        """Take an object as a write left it."""
        if isinstance(obj, Job):
            self._caches.jobs.observe(obj)
        elif isinstance(obj, PodGroup):
            self._caches.pod_groups.observe(obj)
        elif isinstance(obj, PersistentVolumeClaim):
            self._caches.claims.observe(obj)
        else:
            self._caches.pods_like(obj).observe(obj)

    def deleted(self, key: str, uid: str, last: Pod | PodGroup | None) -> None:
        """Take that an object is gone or going; `last` is what the server said of it."""
        # Where another write came between, the server answers with an object that has no version.
        if last and last.metadata.deletion_timestamp and last.metadata.resource_version:
            self.changed(last)
            return
        for kept in (self._pod(key), self._caches.pod_groups.get(key)):
            if kept is not None and kept.metadata.uid == uid:
                self.gone.add(uid)

    def object_changed(self, kind: ObjectKind, obj: Plain) -> None:
        """Take an object of a plugin as a write left it."""
        if kind == "Secret":
            self._secrets.observe(obj)
        else:
            self._caches.job_objects[kind].observe(obj)

    def object_deleted(self, kind: ObjectKind, key: str, uid: str) -> None:
        """Take that an object of a plugin is gone or going."""
        if kind == "Secret":
            self._secrets.lost(key)
            return
        row = self._caches.job_objects[kind].get(key)
        if row is not None and row.uid == uid:
            self.gone.add(uid)

    def object_is_foreign(self, job: Job, key: ObjectKey) -> None:
        """Take that another owner holds a name that the Job can do without."""
        self.foreign.setdefault(job.metadata.uid, set()).add(key)

    def noticed(self, uid: str) -> None:
        """Forget what the caches no longer show."""
        self.gone.discard(uid)

    def look_again(self, uid: str) -> None:
        """Forget who holds the names of a Job's objects."""
        self.foreign.pop(uid, None)

    def _pod(self, key: str) -> Pod | None:
        return self._caches.pods.get(key) or self._caches.foreign_pods.get(key)

    def _objects(self, job: Job) -> dict[ObjectKey, Owned]:
        """Return what plugins made for the Job and is not about to go."""
        watched = [
            (kind, row)
            for kind, index in self._caches.objects_by_job.items()
            for row in index.get(job.metadata.uid).values()
        ]
        read: list[tuple[ObjectKind, JobObject]] = [("Secret", r) for r in self._secrets.of(job)]
        return {
            (kind, row.name): Owned(row.uid, row.data)
            for kind, row in [*watched, *read]
            if not row.is_leaving and row.uid not in self.gone
        }

    def _leaving(self, pod: Pod) -> Pod:
        """Return the pod as being deleted where we know better than the cache."""
        meta = pod.metadata
        if meta.uid not in self.gone or m.is_terminating(pod):
            return pod
        going = msgspec.structs.replace(meta, deletion_timestamp=meta.creation_timestamp or "")
        return msgspec.structs.replace(pod, metadata=going)

    def _taken(self, job: Job, pods: dict[str, Pod]) -> frozenset[str]:
        """Return the names of the Job's missing pods under which others' pods exist."""
        if state.total_replicas(job.spec) > MAX_PODS:
            return frozenset()
        namespace = job.metadata.namespace
        wanted = (
            m.pod_name(job, task, index)
            for task in job.spec.tasks or ()
            for index in range(task.replicas)
        )
        missing = (name for name in wanted if name not in pods)
        return frozenset(name for name in missing if self._pod(f"{namespace}/{name}"))

    def _group(self, job: Job) -> PodGroup | None:
        """Return the Job's PodGroup; older ones have the Job's name alone."""
        meta = job.metadata
        for name in (m.group_name(job), meta.name):
            group = self._caches.pod_groups.get(f"{meta.namespace}/{name}")
            if group is None or m.owner_uid(group.metadata) != meta.uid:
                continue
            if group.metadata.uid in self.gone or group.metadata.deletion_timestamp:
                continue
            return group
        return None

    def _has_claim(self, namespace: str, name: str) -> bool:
        return self._caches.claims.get(f"{namespace}/{name}") is not None
