"""Why a gang waits or how far it has got, and the list of all groups."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from pumice.core.explain import words
from pumice.core.explain.answers import (
    Cramped,
    Explanation,
    Group,
    Groups,
    Kind,
    Members,
    Refused,
    State,
)
from pumice.core.explain.comparisons import comparisons
from pumice.core.explain.holders import holders
from pumice.core.explain.picture import Picture, Progress
from pumice.core.explain.sentences import explained, fresh_condition, told
from pumice.core.explain.words import count
from pumice.core.ids import JobKey
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import COMPLETED_STATUSES, Status
from pumice.core.plan import Reason
from pumice.core.resources import as_text
from pumice.core.timestamps import stamp

THERE = Status.BOUND | Status.RUNNING | Status.SUCCEEDED


def explain_group(
    picture: Picture, job: JobInfo, progress: Progress, *, kind: Kind, name: str
) -> Explanation:
    """Return why a job waits, or how far it has got; `kind` and `name` are what was asked for."""
    reason, state = picture.reason(job), state_of(job, progress)
    waits = reason if state in ("waiting", "running") else None
    namespace, _, group = job.key.partition("/")
    return Explanation(
        kind=kind,
        namespace=namespace,
        name=name,
        state=state,
        sentence=summary(picture, job, progress),
        obstacle=waits.obstacle if waits else "",
        pod_group=group,
        queue=job.queue,
        phase=picture.phase(job),
        members=members(job, reason, progress),
        compared=comparisons(waits) if waits else (),
        nodes=waits.of_nodes if waits else 0,
        refused=refused(waits) if waits else (),
        hypernodes=cramped(waits) if waits else (),
        holders=holders(picture, waits) if waits else (),
        nack=progress.nack,
        condition=_condition(picture, job),
        decision=picture.decision(job),
        expected_start=stamp(waits.expected + 1) if waits and waits.expected is not None else "",
    )


def state_of(job: JobInfo, progress: Progress) -> State:
    """Return how far a job has got as a whole."""
    total = job.counts.total
    if total.total and total.count(COMPLETED_STATUSES) == total.total:
        return "finished"
    there = total.count(THERE)
    if there and there >= job.min_available:
        return "running"
    on_their_way = progress.states.get("Released", 0) + progress.states.get("Arrived", 0)
    return "starting" if on_their_way or progress.planned else "waiting"


def summary(picture: Picture, job: JobInfo, progress: Progress) -> str:
    """Return in a sentence why a job waits, or how far it has got."""
    reason, state, total = picture.reason(job), state_of(job, progress), job.counts.total
    match state:
        case "finished":
            return f"All of the job's pods have finished: {count(total.total, 'pod')}."
        case "starting":
            return _starting(job, progress)
        case _ if reason is not None:
            return told(reason)
        case "running":
            return f"The job runs: {total.count(THERE)} of its {total.total} pods have a node."
        case _ if not total.total and not job.is_pending:
            return "The job was let in, and its pods have not been made yet."
        case _:
            return "No session has looked at the job yet."


def _starting(job: JobInfo, progress: Progress) -> str:
    released, arrived = progress.states.get("Released", 0), progress.states.get("Arrived", 0)
    if not released and not arrived:
        return "The pods have nodes, and wait for their turn to be let go to kube-scheduler."
    here = arrived + progress.states.get("Bound", 0)
    return (
        f"The pods were given nodes: kube-scheduler has confirmed {here} of the"
        f" {job.min_available} that the gang needs, and has still to look at {released}."
    )


def members(job: JobInfo, reason: Reason | None, progress: Progress) -> Members:
    """Return the pods of a job, counted."""
    total = job.counts.total
    return Members(
        minimum=job.min_available,
        total=total.total,
        waiting=total.pending,
        found=reason.found if reason else 0,
        placed=total.ready,
        running=total.by_status.get(Status.RUNNING, 0),
        succeeded=total.by_status.get(Status.SUCCEEDED, 0),
        failed=total.by_status.get(Status.FAILED, 0),
        ledger=dict(progress.states),
    )


def refused(reason: Reason) -> tuple[Refused, ...]:
    """Return the nodes by what they were refused for, most nodes first."""
    return tuple(
        Refused(number, why, words.refusal(why, reason.asks))
        for why, number in words.by_node(reason.nodes)
    )


def cramped(reason: Reason) -> tuple[Cramped, ...]:
    """Return the HyperNodes that were to hold the gang, and the numbers that spoke against them."""
    confined = reason.confined
    if confined is None:
        return ()
    return tuple(
        Cramped(
            name,
            entry.found,
            confined.wanted,
            entry.short,
            as_text(entry.short, entry.asked) if entry.short else "",
            as_text(entry.short, entry.free) if entry.short else "",
        )
        for name, entry in words.by_promise(confined.tried)
    )


def _condition(picture: Picture, job: JobInfo) -> str:
    """Return the text of the condition that the last session made, if it made one."""
    status = picture.status(job)
    condition = fresh_condition(status) if status else None
    return explained(condition.message, picture.reason(job)) if condition else ""


def list_groups(
    picture: Picture, chosen: Callable[[JobInfo], bool], *, after: str, limit: int
) -> Groups:
    """Return groups by key, those behind `after` and no more than `limit`."""
    keys = (key for key, job in picture.snapshot.jobs.items() if key > after and chosen(job))
    found = heapq.nsmallest(limit + 1, keys)
    items = tuple(_row(picture, picture.snapshot.jobs[JobKey(key)]) for key in found[:limit])
    return Groups(items, found[limit - 1] if len(found) > limit else "")


def _row(picture: Picture, job: JobInfo) -> Group:
    namespace, _, name = job.key.partition("/")
    total, reason = job.counts.total, picture.reason(job)
    # What is on its way is charged already, but for what the session itself has placed.
    placed = total.by_status.get(Status.BINDING, 0) + picture.placed[job.key]
    progress = Progress({"Released": placed})
    return Group(
        namespace=namespace,
        name=name,
        queue=job.queue,
        phase=picture.phase(job),
        state=state_of(job, progress),
        minimum=job.min_available,
        total=total.total,
        waiting=total.pending,
        running=total.by_status.get(Status.RUNNING, 0),
        priority=job.priority,
        obstacle=reason.obstacle if reason else "",
        sentence=summary(picture, job, progress),
    )
