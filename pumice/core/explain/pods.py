"""Why a pod waits, or where it is and how that came about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pumice.core.api.core import Pod
from pumice.core.explain import words
from pumice.core.explain.answers import Choice, Decision, Explanation, Placement, State
from pumice.core.explain.groups import explain_group, refused, summary
from pumice.core.explain.picture import Picture, Progress
from pumice.core.explain.sentences import sentence
from pumice.core.ids import PodUid
from pumice.core.ledger import Arm
from pumice.core.model.jobs import JobInfo
from pumice.core.model.tasks import Task
from pumice.core.plan import Plan, PodNote, Reason
from pumice.core.resources import PODS
from pumice.core.steering import FINISHED, group_of, is_gated, is_held, pinned_node
from pumice.core.timestamps import stamp

HOW = {
    Arm.PIN: "Pumice chose the node and pinned the pod to it",
    Arm.NOMINATE: "Pumice chose the node and nominated it to kube-scheduler",
    Arm.UNGATE: "kube-scheduler chose the node when Pumice had let the pod go",
}
SOMEHOW = "it had the node before Pumice saw it"


@dataclass(frozen=True, slots=True)
class Standing:
    """How far one pod has got, by the ledger."""

    #: Held, Released, Arrived, Bound; empty for a pod without an entry
    state: str = ""
    node: str = ""
    arm: Arm | None = None
    since: str = ""
    #: kube-scheduler has to bind claims of the pod before it comes back
    claims: bool = False


def explain_pod(
    picture: Picture, pod: Pod, standing: Standing, progress: Progress, schedulers: frozenset[str]
) -> Explanation:
    """Return why a pod waits, or where it is; `progress` is that of its gang."""
    meta, key = pod.metadata, group_of(pod)
    job = picture.snapshot.jobs.get(key) if key else None
    alone = _alone(picture, pod, schedulers)
    if alone or job is None:
        state = _state(pod, standing)
        text = alone or "The pod has no PodGroup that exists: it waits until there is one."
        return Explanation("pod", meta.namespace, meta.name, state, text, phase=pod.status.phase)
    whole = explain_group(picture, job, progress, kind="pod", name=meta.name)
    task = job.tasks.get(PodUid(meta.uid))
    note = _note(picture, job, pod)
    own = _own_reason(picture, job, task, note)
    if _state(pod, standing) != "waiting":
        # What may still be said of others of its gang is not about this pod.
        whole = replace(
            whole, obstacle="", compared=(), nodes=0, refused=(), holders=(), condition=""
        )
        own = None
    return replace(
        whole,
        state=_state(pod, standing),
        sentence=_sentence(pod, standing, note, own, picture.reason(job))
        or summary(picture, job, progress),
        obstacle=own.obstacle if own else whole.obstacle,
        nodes=own.of_nodes if own else whole.nodes,
        refused=refused(own) if own else whole.refused,
        nack=whole.nack if whole.nack and whole.nack.pod == meta.name else None,
        placement=_placement(pod, standing),
    )


def _alone(picture: Picture, pod: Pod, schedulers: frozenset[str]) -> str:
    """Return what keeps a pod from being anybody's member; empty for one that is."""
    scheduler = pod.spec.scheduler_name
    if scheduler not in schedulers:
        return f"The pod is not Pumice's to place: its scheduler is {scheduler or 'not named'}."
    fault = picture.snapshot.faults.get(f"pod {pod.metadata.key}")
    if fault:
        return f"The pod cannot be scheduled as it is written: {fault}."
    if group_of(pod) is None:
        return "The pod names no PodGroup yet: the controllers give it one."
    return ""


def _state(pod: Pod, standing: Standing) -> State:
    if pod.status.phase in FINISHED:
        return "finished"
    if pod.spec.node_name:
        return "running"
    return "starting" if standing.node else "waiting"


def _note(picture: Picture, job: JobInfo, pod: Pod) -> PodNote | None:
    status = picture.status(job)
    return status.pods.get(PodUid(pod.metadata.uid)) if status else None


def _own_reason(
    picture: Picture, job: JobInfo, task: Task | None, note: PodNote | None
) -> Reason | None:
    """Return why no node took this very pod, where the session tried it."""
    errors = note.errors if note else None
    if errors is None or task is None or not (errors.reasons or not errors.nodes):
        return None
    rows = (row for row in task.cls.rows if row != PODS)
    asks = {picture.snapshot.names[row]: float(task.cls.req[row]) for row in rows}
    return Reason(
        "allocate",
        "",
        str(errors),
        {"minAvailable": 1.0},
        errors.reasons,
        obstacle="room",
        queue=job.queue,
        waiting=1,
        asks=asks,
        of_nodes=errors.nodes,
        most=errors.most,
    )


def _sentence(
    pod: Pod, standing: Standing, note: PodNote | None, own: Reason | None, gang: Reason | None
) -> str:
    """Return what is to be said of the pod itself; empty where it is what is said of its gang."""
    if pod.status.phase in FINISHED:
        return f"The pod has finished: it {pod.status.phase.lower()} on node {pod.spec.node_name}."
    if pod.spec.node_name:
        return f"The pod has node {pod.spec.node_name}: {_how(pod, standing)}."
    match standing.state:
        case "Arrived":
            return (
                f"kube-scheduler has placed the pod on node {standing.node}, where it waits for"
                " the rest of its gang."
            )
        case "Released":
            task = "agree, and to bind the pod's claims" if standing.claims else "agree"
            return (
                f"The pod was given node {standing.node}, and kube-scheduler has still to {task}."
            )
        case "Held" if standing.node:
            return (
                f"There is a node for the pod, {standing.node}, and it waits for its turn to be let"
                " go to kube-scheduler."
            )
    others = [gate.name for gate in pod.spec.scheduling_gates or ()]
    if is_gated(pod) and not is_held(pod):
        return f"The pod is held by scheduling gates of others: {', '.join(others)}."
    if note is not None and note.reason == "Schedulable":
        rest = f": {words.inside(sentence(gang))}" if gang else "."
        return f"There is a node for the pod, which waits for the rest of its gang{rest}"
    return sentence(own) if own else ""


def _how(pod: Pod, standing: Standing) -> str:
    arm = standing.arm or (Arm.PIN if pinned_node(pod) else None)
    return HOW[arm] if arm else SOMEHOW


def _placement(pod: Pod, standing: Standing) -> Placement | None:
    node = pod.spec.node_name or standing.node
    return Placement(node, _how(pod, standing), standing.since) if node else None


def with_decision(explanation: Explanation, uid: PodUid, plans: Iterable[Plan]) -> Explanation:
    """Return the explanation with the session that chose the pod's node; `plans` newest first."""
    where = explanation.placement
    if where is None:
        return explanation
    for plan in plans:
        for made in plan.allocations:
            if any(placement.uid == uid for placement in made.placements):
                reason = made.reason
                decision = Decision(
                    plan.session, stamp(plan.now), reason.action, reason.plugin, reason.message
                )
                placement = replace(where, decision=decision, together=len(made.placements))
                return replace(explanation, placement=placement)
    return explanation


def with_choice(explanation: Explanation, choice: Choice) -> Explanation:
    """Return the explanation with what the nodes say; of a pod that has one, say why there."""
    return replace(
        explanation,
        choice=choice,
        sentence=f"{explanation.sentence.rstrip('.')}{_of_nodes(explanation, choice)}.",
    )


def _of_nodes(explanation: Explanation, choice: Choice) -> str:
    verdict = choice.verdict
    would = f"{choice.open} of the {choice.nodes} nodes would take it as things stand"
    if verdict is None:
        return f"; {would}"
    if not verdict.takes:
        why = "; ".join(verdict.refusals) or "it is not as it was"
        return f"; {would}, but not {verdict.name}: {why}"
    if not verdict.better:
        return f"; {would}, and none scores higher than {verdict.name}"
    return f"; {would}, and {verdict.better} of them score higher than {verdict.name}"
