"""
Consistency: whether running sums are what they would be if they were made anew.

Sums kept from event to event are only as good as the code that keeps them, so tests ask this
after every event, and a running process can be asked at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np

from pumice.core.devices.table import Holding, NodeCards
from pumice.core.ids import JobKey
from pumice.core.model.jobs import JobInfo
from pumice.core.model.nodes import NodeTable
from pumice.core.model.tasks import Status, Task
from pumice.core.resources import EPSILON, Floats, minus, plus

_NOTHING = np.zeros(0)
_SUMS = ("allocated", "promised", "leaving_request", "pending_request", "gated", "total_request")


def differing_nodes(nodes: NodeTable, tasks: Collection[Task]) -> Iterator[str]:
    """Yield the nodes whose residents or charges are not those of the tasks on them."""
    by_node: dict[str, list[Task]] = {}
    for task in tasks:
        if task.occupies:
            by_node.setdefault(task.node, []).append(task)
    for i, node in enumerate(nodes.names):
        here = by_node.get(node, [])
        if {task.uid: task for task in here} != dict(nodes.tasks_on(node)):
            yield f"node {node}: residents differ"
        leaving = [task for task in here if task.status is Status.RELEASING]
        if _differ(_sum(here), nodes.used[:, i]):
            yield f"node {node}: used differs"
        if _differ(_sum(leaving), nodes.releasing[:, i]):
            yield f"node {node}: releasing differs"


def differing_jobs(jobs: Mapping[JobKey, JobInfo], tasks: Collection[Task]) -> Iterator[str]:
    """Yield the jobs whose members, counts or sums are not those of the tasks that name them."""
    members: dict[JobKey | None, list[Task]] = {}
    for task in tasks:
        members.setdefault(task.job, []).append(task)
    for key, job in jobs.items():
        fresh = JobInfo(job.group, job.terms)
        for task in members.get(key, ()):
            fresh.put(fresh.assign(task))
        if job.tasks != fresh.tasks:
            yield f"job {key}: tasks differ"
        if job.counts != fresh.counts or job.sub_jobs != fresh.sub_jobs:
            yield f"job {key}: counts differ"
        for name in _SUMS:
            if _differ(getattr(job, name), getattr(fresh, name)):
                yield f"job {key}: {name} differs"


def differing_cards(
    nodes: Mapping[str, NodeCards],
    tasks: Collection[Task],
    holding_of: Callable[[Task], Holding | None],
) -> Iterator[str]:
    """Yield the nodes whose holders of cards, or sums over them, are not those of the tasks."""
    fresh: dict[str, NodeCards] = {}
    for task in tasks:
        holding = holding_of(task)
        if holding is not None:
            fresh.setdefault(task.node, NodeCards()).put(task.uid, holding)
    for node in nodes.keys() | fresh.keys():
        here, want = nodes.get(node, NodeCards()), fresh.get(node, NodeCards())
        if (here.holders, here.used) != (want.holders, want.used):
            yield f"node {node}: cards differ"


def _sum(tasks: Collection[Task]) -> Floats:
    total = _NOTHING
    for task in tasks:
        total = plus(total, task.cls.req)
    return total


def _differ(a: Floats, b: Floats) -> bool:
    return bool((np.abs(minus(a, b)) >= EPSILON).any())
