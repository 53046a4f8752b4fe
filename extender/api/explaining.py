"""Why a job, a gang or a pod waits or is where it is; and how far a gang has got."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Response

from extender.api import examples
from extender.api.answers import LIMIT, NAME, Limit, Name, Namespace, answer, documented
from extender.api.desk import Asks, Desk
from extender.api.readers import Reads
from pumice.core import names
from pumice.core.api.core import Pod
from pumice.core.explain.answers import Choice, Explanation, Gang, Kind
from pumice.core.explain.choice import choose, class_of
from pumice.core.explain.groups import explain_group
from pumice.core.explain.picture import Picture, Progress
from pumice.core.explain.pods import explain_pod, with_choice, with_decision
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.jobs import JobInfo
from pumice.core.steering import group_of
from pumice.kube.resources import JOBS, NODES, POD_GROUPS, PODS, AnyResource

router = APIRouter(tags=["explain"])

KINDS: Mapping[Kind, AnyResource] = {"job": JOBS, "podgroup": POD_GROUPS, "pod": PODS}
Node = Annotated[
    str,
    Query(
        pattern=f"{NAME}|^$",
        max_length=253,
        description="of a pod: what speaks for or against this node",
    ),
]


@router.get(
    "/debug/explain/{kind}/{namespace}/{name}",
    response_model=Explanation,
    responses=documented(examples.EXPLANATION, 404, 429),
    summary="Why it does not run, or where it does",
)
async def explain(
    kind: Kind, namespace: Namespace, name: Name, reader: Reads, desk: Asks, node: Node = ""
) -> Response:
    """
    Explain a Job of Volcano's kind, a PodGroup or a pod.

    Needed: get of that kind in the namespace. Of a pod's PodGroup little is said without get of
    it, of a group's single pods nothing without list of pods; without list of PodGroups or queues
    those that are not the reader's own are summed up; what the nodes say to a pod is for those who
    may list nodes.
    """
    await reader.require("get", KINDS[kind], namespace, name)
    if node:
        await reader.require("list", NODES)
    if kind == "pod":
        found = await _pod(desk, namespace, name)
        weighs = await reader.may("list", NODES)
        explanation = await _explain_pod(desk, found, node=node, weighs=weighs)
        if not await reader.may("get", POD_GROUPS, namespace, explanation.pod_group):
            explanation = replace(explanation, phase="", members=None, condition="")
    else:
        picture = desk.picture()
        job = await desk.think(_find, picture, kind, namespace, name)
        if job is None:
            raise HTTPException(404, _missing(kind, namespace, name))
        progress = desk.progress(job.key)
        explanation = await desk.think(explain_group, picture, job, progress, kind=kind, name=name)
        if not await reader.sees_pods(namespace):
            explanation = replace(explanation, nack=None)
    return answer(await reader.veiled(explanation))


@router.get(
    "/debug/podgroups/{namespace}/{name}",
    response_model=Gang,
    responses=documented(examples.GANG, 404),
    summary="How far the pods of a gang have got",
)
async def gang(
    namespace: Namespace, name: Name, reader: Reads, desk: Asks, limit: Limit = LIMIT
) -> Response:
    """
    Return the ledger and the barrier of one gang, those first that have come least far.

    Needed: get of PodGroups and list of pods in the namespace.
    """
    await reader.require("get", POD_GROUPS, namespace, name)
    await reader.require("list", PODS, namespace)
    picture = desk.picture()
    job = picture.snapshot.jobs.get(JobKey(f"{namespace}/{name}"))
    if job is None:
        raise HTTPException(404, _missing("podgroup", namespace, name))
    return answer(desk.gang(picture, job, limit))


async def _pod(desk: Desk, namespace: str, name: str) -> Pod:
    pod = await desk.think(_find_pod, list(desk.model.cluster.pods.values()), namespace, name)
    if pod is None:
        raise HTTPException(404, _missing("pod", namespace, name))
    return pod


async def _explain_pod(desk: Desk, pod: Pod, *, node: str, weighs: bool) -> Explanation:
    """Put together what is known of a pod; what the nodes say, where that is asked for."""
    picture, key, uid = desk.picture(), group_of(pod), PodUid(pod.metadata.uid)
    standing, progress = desk.standing(uid), desk.progress(key) if key else Progress()
    plans = [past.plan for past in reversed(desk.engine.past)]
    if node and node not in picture.snapshot.nodes.index:
        raise HTTPException(404, f"there is no node {node}")
    about = node or pod.spec.node_name or standing.node
    ask = _question(desk, picture, pod, about) if weighs and about else None

    def put_together() -> Explanation:
        found = explain_pod(picture, pod, standing, progress, desk.model.scheduler_names)
        found = with_decision(found, uid, plans)
        return with_choice(found, ask()) if ask else found

    return await desk.think(put_together)


def _question(desk: Desk, picture: Picture, pod: Pod, node: str) -> Callable[[], Choice] | None:
    """Return what asks the nodes about a pod; None for one that no session would place."""
    key = group_of(pod)
    job = picture.snapshot.jobs.get(key) if key else None
    task = job.tasks.get(PodUid(pod.metadata.uid)) if job else None
    if job is None or task is None or job.queue not in picture.snapshot.queues:
        return None
    cls, conf = class_of(picture, pod), desk.configuration()
    return partial(choose, picture, conf, job, task, cls, node, ask=desk.engine.ask)


def _find(picture: Picture, kind: Kind, namespace: str, name: str) -> JobInfo | None:
    """Return a PodGroup, or that of a Job."""
    if kind == "podgroup":
        return picture.snapshot.jobs.get(JobKey(f"{namespace}/{name}"))
    start = f"{namespace}/{name}-"
    for key, job in picture.snapshot.jobs.items():
        owner = job.group.metadata.controller if key.startswith(start) else None
        if owner and (owner.api_version, owner.kind, owner.name) == (names.BATCH_API, "Job", name):
            return job
    return None


def _find_pod(pods: Iterable[Pod], namespace: str, name: str) -> Pod | None:
    return next(
        (p for p in pods if (p.metadata.name, p.metadata.namespace) == (name, namespace)), None
    )


def _missing(kind: Kind, namespace: str, name: str) -> str:
    if kind == "job":
        return (
            f"there is no PodGroup of a Job {namespace}/{name}: there is no such Job, or the"
            " controllers have still to make its PodGroup"
        )
    return f"there is no {KINDS[kind].kind} {namespace}/{name}"
