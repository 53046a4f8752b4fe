"""
Room: whether one pod may be on one node, asked between sessions.

Before a decision is applied, and again before its pod is bound, this looks at the tables as they
are by then. What is short is named: resources, `cards`, or the `node` where that is gone.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pumice.core.bounds import Standings, bounds_of, refusal
from pumice.core.cluster import Cluster
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.tasks import Task
from pumice.core.resources import EPSILON, minus, shortages


def lacking(cluster: Cluster, uid: PodUid, node: str, without: Iterable[PodUid] = ()) -> list[str]:
    """
    Return what is short if a pod were put on a node now.

    What the pods in `without` hold of the node's resources does not count.
    """
    task, i = cluster.task(uid), cluster.nodes.index.get(node)
    if task is None or i is None:
        return ["node"] if i is None else []
    used = cluster.nodes.used[:, i]
    for other in (uid, *without):
        resident = cluster.task(other)
        if resident is not None and resident.node == node and resident.occupies:
            used = minus(used, resident.cls.req)
    rows = shortages(task.cls.req, cluster.nodes.alloc[:, i] - used)
    short = _names(cluster, rows, task)
    if cluster.devices.ask(task) is not None and cluster.devices.choose(task, node) is None:
        short.append("cards")
    return short


def lacking_when_bound(
    cluster: Cluster, uid: PodUid, node: str, committed: Iterable[PodUid]
) -> list[str]:
    """
    Return the resources that are short if a pod were bound on a node now.

    What counts is what is bound on the node, by anyone, and what of `committed` was given to
    it and is not yet seen there; room that is merely held for other pods does not count.
    """
    task, i = cluster.task(uid), cluster.nodes.index.get(node)
    if task is None or i is None:
        return ["node"] if i is None else []
    used, alloc = cluster.nodes.used[:, i], cluster.nodes.alloc[:, i]
    if task.occupies and task.node == node and not shortages(used, alloc):
        return []  # There is room even with all that is merely held.
    counted = set(committed) - {uid}
    for other in cluster.nodes.tasks_on(node).values():
        if other.uid == uid or (other.uid in cluster.assumed and other.uid not in counted):
            used = minus(used, other.cls.req)
    return _names(cluster, shortages(task.cls.req, alloc - used), task)


def overcommitted(cluster: Cluster) -> list[str]:
    """Return the nodes on which more is bound, by anyone, than is allocatable."""
    nodes = cluster.nodes
    suspects = (nodes.used > nodes.alloc + EPSILON).any(axis=0)
    found = []
    for i in np.flatnonzero(suspects):
        name = nodes.names[int(i)]
        bound = nodes.used[:, i]
        for task in nodes.tasks_on(name).values():
            if task.uid in cluster.assumed:
                bound = minus(bound, task.cls.req)
        if (bound > nodes.alloc[:, i] + EPSILON).any():
            found.append(name)
    return found


def standings_of(cluster: Cluster, key: JobKey) -> Standings | None:
    """Return where a job's tasks are in HyperNodes; None where they may be anywhere."""
    job = cluster.jobs.get(key)
    if job is None or not bounds_of(job, cluster.tree).hard:
        return None
    return Standings(job, cluster.tree, cluster.nodes.index)


def straying(cluster: Cluster, uid: PodUid, node: str) -> str:
    """Return why a pod would be too far from its gang on a node; empty where it is not."""
    task, index = cluster.task(uid), cluster.nodes.index
    if task is None or task.job is None or node not in index:
        return ""
    places = standings_of(cluster, task.job)
    if places is None:
        return ""
    if task.occupies and task.node in index:
        places.move(task.sub_job, (index[task.node],), -1)
    return refusal(places, task, index[node])


def _names(cluster: Cluster, rows: Iterable[int], task: Task) -> list[str]:
    """Return the names of short rows that the task asks for; others are not its fault."""
    return [cluster.space.names[row] for row in rows if row in task.cls.rows]
