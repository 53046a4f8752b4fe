"""
Applying decisions: the only way into the ledger.

A decision was made on a snapshot and may be old. Each placement is checked again against the
present cache; those that hold are entered together, and a gang that is no longer ready with
them gets nothing: its pods stay as they were and the next session decides anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from extender.model import Model
from extender.releases import Releases
from pumice.core.bounds import Standings, refusal
from pumice.core.ids import JobKey, PodUid
from pumice.core.ledger import State
from pumice.core.model.tasks import Task
from pumice.core.plan import Allocate, Placement, Plan
from pumice.core.readiness import job_ready
from pumice.core.room import lacking, standings_of
from pumice.core.surroundings import Surroundings
from pumice.core.timestamps import moment
from pumice.core.waves import Member, waves

Turn = tuple[int, float, int]
"""Priority, the highest first; age in whole seconds; within a second, the version."""
Part = tuple[list[list[PodUid]], list[PodUid]]
"""Waves, and the pods that must have come before the first of them."""


@dataclass(slots=True)
class Applied:
    """How much of a plan held."""

    placed: int = 0
    dropped: int = 0
    why: dict[PodUid, str] = field(default_factory=dict)


def apply_allocations(plan: Plan, model: Model, releases: Releases) -> Applied:
    """
    Enter the allocations of a plan that still hold, and release their pods.

    They are entered in the order of the plan, and released in the order in which kube-scheduler
    takes what it is given: another order would have it take a gang's pods between those of others.
    """
    applied = Applied()
    entered = [(d.job, _apply(d, model, releases, applied)) for d in plan.allocations]
    gangs = [(job, gated) for job, gated in entered if gated]
    # One for all: what is entered or released meanwhile is no part of it.
    around = cache(model.surroundings)
    for job, gated in sorted(gangs, key=lambda gang: _turn(gang[1], model)):
        for some, after in _waves(job, gated, model, around):
            releases.steer(job, some, after)
    return applied


def _apply(
    decision: Allocate, model: Model, releases: Releases, applied: Applied
) -> list[Placement]:
    """Enter one decision; return the placements of pods that are still to be released."""
    job = model.cluster.jobs.get(decision.job)
    if job is None or job.uid != decision.group_uid:
        applied.dropped += len(decision.placements)
        return []
    gated: list[Placement] = []
    loose: list[Placement] = []
    near = standings_of(model.cluster, decision.job)
    for placement in decision.placements:
        why = _enter(placement, model, gated, loose, near)
        if why:
            applied.dropped += 1
            applied.why[placement.uid] = why
    entered = gated + loose
    if not job_ready(model.cluster.jobs[decision.job]):
        for placement in gated:
            model.unplan(placement.uid)
        for placement in loose:
            model.withdraw(placement.uid)
        applied.dropped += len(entered)
        return []
    applied.placed += len(entered)
    for placement in loose:
        releases.nominate(placement.uid)
    return gated


def _turn(placements: list[Placement], model: Model) -> Turn:
    """Return when kube-scheduler takes the first of the pods: by priority, then by age."""
    pods = (model.pending[placement.uid] for placement in placements)
    return min(
        (
            -(pod.spec.priority or 0),
            moment(pod.metadata.creation_timestamp),
            int(pod.metadata.resource_version or 0),
        )
        for pod in pods
    )


def _enter(
    placement: Placement,
    model: Model,
    gated: list[Placement],
    loose: list[Placement],
    near: Standings | None,
) -> str:
    """
    Enter one placement; return why it does not hold, if so.

    `near` is where the gang is as far as it is entered, if it must stay within HyperNodes.
    """
    uid, node = placement.uid, placement.node
    pod = model.pending.get(uid)
    if pod is None:
        return "the pod is gone or bound"
    if node not in model.cluster.nodes.index:
        return "the node is gone"
    short = lacking(model.cluster, uid, node)
    if short:
        return f"no room any more: {', '.join(short)}"
    task, column = model.cluster.task(uid), model.cluster.nodes.index[node]
    if near is not None and task is not None and (why := refusal(near, task, column)):
        return why
    cards = placement.cards
    if cards is not None and not model.cluster.has_cards(uid, node, cards):
        return "a card was taken meanwhile"
    entry = model.ledger.get(uid)
    if entry is None:
        model.adopt(pod, node, cards)
        loose.append(placement)
    elif entry.state is State.HELD and not entry.node:
        model.plan(uid, node, cards)
        gated.append(placement)
    else:
        return f"the pod is {entry.state.value} already"
    if near is not None and task is not None:
        near.move(task.sub_job, (column,), 1)
    return ""


def _waves(
    job: JobKey, placements: list[Placement], model: Model, around: Callable[[], Surroundings]
) -> list[Part]:
    """Return the pods in waves; those that come after pods with claims are a part by themselves."""
    node_of: Mapping[PodUid, str] = {p.uid: p.node for p in placements}
    tasks: list[Task] = [t for p in placements if (t := model.cluster.task(p.uid)) is not None]
    members = [
        Member(t.uid, t.cls.signature, t.labels, t.namespace, model.claims(t.pod)) for t in tasks
    ]
    settling = model.settling(job)
    claims = {claim for some in settling.values() for claim in some}
    alone = model.cluster.jobs[job].min_available <= 1
    shared = any(claims & m.claims for m in members)
    after = list(model.ledger.still_released(settling)) if shared or not alone else []
    if not any(m.signature.affinity or m.signature.spread or m.claims for m in members):
        return [([[m.uid for m in members]], after)]
    ordered = waves(members, node_of, model.domain_of, around(), settling=claims, alone=alone)
    slow = {m.uid for m in members if m.claims - claims}
    first = next((i for i, wave in enumerate(ordered) if slow & set(wave)), len(ordered)) + 1
    begin = (ordered[:first], after)
    return [begin, (ordered[first:], ordered[first - 1])] if ordered[first:] else [begin]
