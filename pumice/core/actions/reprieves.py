"""
Reprieves: who was sent off and need not have been, seen from the end.

For each task the fewest are sent off. But of those who go for one task some leave more than it
takes, or leave more to their queue; and then others, who had to go for another task before, need
not go any more. Twice it is looked for such victims: when a job has all its promises, and when an
action is through with all jobs. Whoever may stay does, the last to be chosen first, as long as
every promise of the session holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from pumice.core.ids import PodUid
from pumice.core.model.tasks import Status, Task
from pumice.core.resources import EPSILON
from pumice.core.session import Session
from pumice.core.statement import Statement
from pumice.core.workspace import Evicted


def let_stay(ssn: Session, statement: Statement) -> None:
    """Let those stay who need not go for the job of a statement, now that it has its promises."""
    witnesses = _witnesses(ssn, statement.promised)
    statement.forget(_reprieve(ssn, statement.evicted, witnesses))


def reprieve(ssn: Session) -> None:
    """Let those stay who need not have gone, now that others went for other jobs."""
    dismissed = ssn.space.dismissed
    if len(dismissed) < 2:
        return
    promised = [task for name in ssn.space.placed for task in _promised_on(ssn, name)]
    witnesses = _witnesses(ssn, promised)
    for place, dismissal in reversed(list(enumerate(dismissed))):
        stay = _reprieve(ssn, dismissal.victims, witnesses)
        if stay:
            still = tuple(e for e in dismissal.victims if e.before.uid not in stay)
            dismissed[place] = replace(dismissal, victims=still)


def _reprieve(
    ssn: Session, victims: Sequence[Evicted], witnesses: Sequence[Task]
) -> frozenset[PodUid]:
    """Let those of the victims stay without whose going all promises hold; return their uids."""
    stay: set[PodUid] = set()
    for unit in _units(victims):
        nodes = {task.node for task in unit}
        if not all(_have_room(ssn, unit, node) for node in nodes):
            continue
        for task in unit:
            ssn.space.restore(task)
        beside = chain.from_iterable(_promised_on(ssn, node) for node in nodes)
        if all(_holds(ssn, task) for task in (*beside, *witnesses)):
            stay.update(task.uid for task in unit)
        else:
            for task in unit:
                ssn.space.evict(task)
    return frozenset(stay)


def _units(victims: Sequence[Evicted]) -> Iterator[list[Task]]:
    """Yield the victims that can only stay together, those chosen last first."""
    units: dict[PodUid, list[Task]] = {}
    for victim in reversed(victims):
        units.setdefault(victim.unit, []).append(victim.before)
    yield from units.values()


def _have_room(ssn: Session, unit: Iterable[Task], node: str) -> bool:
    """Return whether a node has room for those of its tasks that might stay on it."""
    room = ssn.nodes.future(ssn.nodes.index[node])
    for task in unit:
        if task.node == node:
            room[: task.cls.req.size] -= task.cls.req
    return bool(np.all(room > -EPSILON))


def _promised_on(ssn: Session, node: str) -> list[Task]:
    placed = ssn.space.placed.get(node, {})
    return [task for task in placed.values() if task.status is Status.PIPELINED]


def _witnesses(ssn: Session, promised: Iterable[Task]) -> list[Task]:
    """
    Return promised tasks for which it matters also who stays on other nodes.

    For what a queue may have one of each class speaks for all; where others are may concern each.
    """
    found: dict[object, Task] = {}
    for task in promised:
        job = ssn.job(task.job)
        if job is not None:
            key = task.uid if ssn.views.of_task(task).looks_around else (job.queue, task.cls)
            found.setdefault(key, task)
    return list(found.values())


def _holds(ssn: Session, task: Task) -> bool:
    """Return whether a task might be promised what it was promised, as things stand."""
    job, i = ssn.job(task.job), ssn.nodes.index[task.node]
    if job is None:
        return True
    [waits] = ssn.space.take_back([task], [i])
    queue = ssn.queues[job.queue]
    holds = ssn.views.of_task(waits).takes(i) and ssn.allocatable(queue, task.cls, 1) > 0
    ssn.space.place([waits], [i], Status.PIPELINED)
    return holds
