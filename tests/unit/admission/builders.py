"""Jobs, tasks and views of queues in one line, for the tests of `pumice.core.admission`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pumice.core.admission.errors import FieldError
from pumice.core.admission.views import Queues
from pumice.core.api.batch import Job, JobSpec, LifecyclePolicy, TaskSpec
from pumice.core.api.meta import ObjectMeta
from pumice.core.api.scheduling import Queue
from tests.builders import a_queue


def container(name: str = "main", **fields: Any) -> dict[str, Any]:
    """Return a container as users write it."""
    return {"name": name, "image": "busybox", **fields}


def template(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a pod template; with no container given it has one that is in order."""
    return {"spec": {"containers": list(containers) or [container()], **spec}}


def a_task(name: str | None = "w", replicas: int = 1, **fields: Any) -> TaskSpec:
    fields.setdefault("template", template())
    return TaskSpec(name=name, replicas=replicas, **fields)


def a_job(*tasks: TaskSpec, name: str = "j", **spec: Any) -> Job:
    """Return a Job; with no task given it has one that is in order."""
    meta = ObjectMeta(name=name, namespace="ns", uid="job")
    return Job(metadata=meta, spec=JobSpec(tasks=list(tasks) or [a_task()], **spec))


def a_policy(event: Any = None, action: str = "RestartJob", **fields: Any) -> LifecyclePolicy:
    return LifecyclePolicy(action=action, event=event, **fields)


def view(*queues: Queue) -> Queues:
    """Return a view of these queues, and of root and default, which are open."""
    standing = (a_queue("root"), a_queue("default"))
    return Queues({queue.metadata.name: queue for queue in (*standing, *queues)})


def told(errors: Iterable[FieldError]) -> list[tuple[str, str]]:
    """Return errors as (field, message)."""
    return [(error.field, error.message) for error in errors]


def messages(errors: Sequence[FieldError]) -> list[str]:
    return [error.message for error in errors]
