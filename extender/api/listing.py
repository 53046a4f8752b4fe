"""Lists: queues with their shares, and PodGroups with what they wait for."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Response

from extender.api import examples
from extender.api.answers import (
    LIMIT,
    NAME,
    After,
    InNamespace,
    Limit,
    Name,
    answer,
    documented,
)
from extender.api.desk import Asks
from extender.api.readers import Reads
from pumice.core.explain.answers import Groups, Queues, QueueShare
from pumice.core.explain.groups import list_groups
from pumice.core.explain.picture import Picture
from pumice.core.explain.queues import list_queues, queue_shares
from pumice.core.model.jobs import JobInfo
from pumice.kube.resources import POD_GROUPS, QUEUES

router = APIRouter(tags=["lists"])

OfQueue = Annotated[
    str, Query(pattern=f"{NAME}|^$", max_length=253, description="of this queue alone")
]


@router.get(
    "/debug/queues",
    response_model=Queues,
    responses=documented(examples.QUEUES, 429),
    summary="Queues and their shares",
)
async def queues(reader: Reads, desk: Asks, after: After = "", limit: Limit = LIMIT) -> Response:
    """Return the queues by name. Needed: list of queues."""
    await reader.require("list", QUEUES)
    return answer(await desk.think(list_queues, desk.picture(), after=after, limit=limit))


@router.get(
    "/debug/queues/{name}",
    response_model=QueueShare,
    responses=documented(examples.QUEUES.items[0], 404, 429),
    summary="One queue and its share",
)
async def queue(name: Name, reader: Reads, desk: Asks) -> Response:
    """Return one queue. Needed: get of queues."""
    await reader.require("get", QUEUES, name=name)
    picture = desk.picture()
    if name not in picture.snapshot.queues:
        raise HTTPException(404, f"there is no Queue {name}")
    return answer(await desk.think(_one_queue, picture, name))


def _one_queue(picture: Picture, name: str) -> QueueShare:
    return next(queue_shares(picture, [name]))


@router.get(
    "/debug/podgroups",
    response_model=Groups,
    responses=documented(examples.GROUPS, 429),
    summary="PodGroups, their phases and what they wait for",
)
async def pod_groups(
    reader: Reads,
    desk: Asks,
    namespace: InNamespace = "",
    queue: OfQueue = "",
    after: After = "",
    limit: Limit = LIMIT,
) -> Response:
    """Return PodGroups by namespace and name. Needed: list of PodGroups, there or everywhere."""
    await reader.require("list", POD_GROUPS, namespace)
    start = f"{namespace}/" if namespace else ""

    def chosen(job: JobInfo) -> bool:
        return job.key.startswith(start) and (not queue or job.queue == queue)

    picture = desk.picture()
    return answer(await desk.think(list_groups, picture, chosen, after=after, limit=limit))
