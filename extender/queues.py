"""
The queue at `bind`: pods that were merely ungated are checked against their queue once more.

Such a pod is charged when it is let go and may take a while to come; meanwhile the queue may have
been closed, or have shrunk.
"""

from __future__ import annotations

from pumice.core.cluster import Cluster
from pumice.core.model.tasks import Task
from pumice.core.resources import UNLIMITED, over_limit


def within_queue(cluster: Cluster, task: Task) -> bool:
    """Tell whether the queue of a pod is open and holds no more than it may, this pod included."""
    job = cluster.jobs.get(task.job) if task.job is not None else None
    if job is None:
        return True
    queue = cluster.queues.get(job.queue)
    if queue is None or not queue.is_open:
        return False
    bound = queue.bound(cluster.space.size)
    return not over_limit(cluster.allocated(job.queue), bound, task.cls.req, UNLIMITED)
