"""
Which pods a step or check is about.

A selection holds where all that it names holds; `str` gives it as the file does.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

from pumice.local.api import Object
from tests.cases import podfacts
from tests.cases.moment import Moment

Names = str | list[str]
"""One `namespace/name` or several; `*` stands for any characters."""


class Selection(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"
):
    """
    Pods by Job (and task), by name, by PodGroup or queue.

    `object` names an object in place of pods, where uids are compared. `winnerOf` (the Job with
    most bound pods) and `anyBoundOf` (`count` bound pods of these Jobs, or of these pods) are
    for steps alone: what they stand for depends on the moment.
    """

    job: str = ""
    job_name: str = ""
    jobs: Names = ""
    task: str = ""
    pods: Names = ""
    pod_group: str = ""
    queue: str = ""
    object: str = ""
    bound_pods_of: Selection | None = None
    winner_of: list[str] = []
    any_bound_of: list[str] = []
    count: int = 1

    def __post_init__(self) -> None:
        given = {key for key, value in msgspec.structs.asdict(self).items() if value}
        if not given - {"task", "count"}:
            raise ValueError("a selection names a Job, pods, a PodGroup, a queue or an object")
        if self.task and not given & {"job", "job_name", "jobs"}:
            raise ValueError("`task` goes with a Job")
        if self.count != 1 and not self.any_bound_of:
            raise ValueError("`count` goes with `anyBoundOf`")
        if self.count < 1:
            raise ValueError("`count` is 1 or more")

    def __str__(self) -> str:
        written = msgspec.to_builtins(self)
        return ", ".join(f"{key} {_text(value)}" for key, value in written.items())

    @property
    def is_for_steps(self) -> bool:
        """Whether it is one that only a step can have."""
        return bool(self.winner_of or self.any_bound_of)

    def picks(self, pod: Object, scene: Moment) -> bool:
        """Whether it is about this pod; Jobs count by name, there or not."""
        job, key = podfacts.job(pod), key_of(pod)
        return (
            (not self.job or job == self.job)
            and (not self.job_name or job == self.job_name)
            and (not self.jobs or (bool(job) and is_named(job, self.jobs)))
            and (not self.task or podfacts.task(pod) == self.task)
            and (not self.pods or is_named(key, self.pods))
            and (not self.pod_group or _is_member(pod, scene.group_key(self.pod_group)))
            and (not self.queue or queue_of(pod, scene) == self.queue)
            and (self.bound_pods_of is None or _is_bound_in(self.bound_pods_of, pod, scene))
            and not self.object
        )

    def of(self, scene: Moment) -> list[Object]:
        """Return the pods of a moment, by name."""
        return [scene.pods[key] for key in sorted(scene.pods) if self.picks(scene.pods[key], scene)]


def key_of(pod: Object) -> str:
    """Return `namespace/name`."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def is_named(key: str, names: Names) -> bool:
    """Whether one of the names, which may be patterns, is this key."""
    patterns = [names] if isinstance(names, str) else names
    return any(fnmatchcase(key, pattern) for pattern in patterns)


def expanded(names: Names, keys: Iterable[str]) -> list[str]:
    """Return the names, each pattern replaced by what there is of it."""
    patterns = [names] if isinstance(names, str) else names
    known = sorted(keys)
    return [
        key
        for pattern in patterns
        for key in ([k for k in known if fnmatchcase(k, pattern)] if "*" in pattern else [pattern])
    ]


def queue_of(pod: Object, scene: Moment) -> str:
    """Return the queue of the pod's PodGroup, else the one that the pod names."""
    group = scene.groups.get(podfacts.group(pod))
    return str(group["spec"].get("queue") or "default") if group else podfacts.queue(pod)


def bound_of(job: str, scene: Moment) -> list[Object]:
    """Return the bound pods of a Job."""
    return [pod for pod in Selection(job=job).of(scene) if podfacts.is_bound(pod)]


def leader(jobs: Iterable[str], scene: Moment) -> str:
    """Return the Job with most bound pods, the first of equals."""
    return max(jobs, key=lambda job: len(bound_of(job, scene)))


def _is_member(pod: Object, group: str | None) -> bool:
    return group is not None and podfacts.group(pod) == group


def _is_bound_in(selection: Selection, pod: Object, scene: Moment) -> bool:
    return podfacts.is_bound(pod) and selection.picks(pod, scene)


def _text(value: object) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{k} {_text(v)}" for k, v in value.items()) + ")"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
