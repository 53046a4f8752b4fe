"""
Letting pods out of the gate of their queue.

A pod that asks for it by annotation waits behind the gate of its queue, unseen by kube-scheduler
and autoscalers, until the queue may have it. The gate is then taken off, whether or not there is
a node for the pod; from that moment on its queue keeps room for it. A pod with other gates goes on
waiting: the gate of the queue is the last one to go.

Of a gang enough pods are let go to make up its minimum, or none: pieces of gangs must not keep
room from each other.
"""

from __future__ import annotations

from collections import Counter

from pumice.core import names
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import Status, Task, TaskClass
from pumice.core.plan import Admit, Reason
from pumice.core.session import Session

_ALONE = (names.QUEUE_ALLOCATION_GATE,)


def admit(ssn: Session) -> None:
    """Decide for all pods behind the gate of their queue, in the order of queues and jobs."""
    waiting = [(job, tasks) for job in ssn.active if (tasks := _gated(ssn, job))]
    waiting.sort(key=lambda row: (ssn.queue_key(ssn.queues[row[0].queue]), ssn.job_key(row[0])))
    for job, tasks in waiting:
        if not ssn.is_overused(ssn.queues[job.queue]):
            _admit(ssn, job, sorted(tasks, key=ssn.task_key))


def _gated(ssn: Session, job: JobInfo) -> list[Task]:
    if job.is_pending or not job.counts.total.pending:
        return []
    tasks = [t for t in job.tasks.values() if t.gates == _ALONE and t.status is Status.PENDING]
    return tasks if tasks and ssn.is_valid(job) else []


def _admit(ssn: Session, job: JobInfo, tasks: list[Task]) -> None:
    queue, admitted, taken = ssn.queues[job.queue], [], Counter[TaskClass]()
    for task in tasks:
        if ssn.allocatable(queue, task.cls, 1):
            ssn.admit(queue, task.cls, 1)
            taken[task.cls] += 1
            admitted.append(task.uid)
    free = sum(t.status is Status.PENDING and not t.gates for t in job.tasks.values())
    if not admitted or job.counts.total.ready + free + len(admitted) < job.min_available:
        for cls, n in taken.items():
            ssn.admit(queue, cls, -n)
        return
    message = f"queue {queue.name} may have {len(admitted)} of the {len(tasks)} pods at its gate"
    reason = Reason("allocate", "", message, queue=queue.name, waiting=len(tasks))
    ssn.findings.admitted.append(Admit(job.key, job.uid, tuple(admitted), reason))
