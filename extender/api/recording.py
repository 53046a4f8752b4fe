"""The last session as a file, to be run again elsewhere."""

from __future__ import annotations

from fastapi import APIRouter, Response

from extender.api.answers import documented
from extender.api.desk import Asks
from extender.api.readers import Reads
from pumice.kube.resources import (
    BUDGETS,
    CLAIMS,
    CSI_CAPACITIES,
    CSI_DRIVERS,
    CSI_NODES,
    HYPERNODES,
    NODES,
    NUMA_TOPOLOGIES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    QUOTAS,
    STORAGE_CLASSES,
    VOLUMES,
)

router = APIRouter(tags=["internals"])

GZIP = "application/gzip"
SEEN = (
    PODS,
    NODES,
    HYPERNODES,
    POD_GROUPS,
    QUEUES,
    PRIORITY_CLASSES,
    BUDGETS,
    QUOTAS,
    NUMA_TOPOLOGIES,
    CLAIMS,
    VOLUMES,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_CAPACITIES,
)
"""What a record holds objects of."""


@router.get(
    "/debug/record",
    response_class=Response,
    responses=documented(None, 429) | {200: {"content": {GZIP: {}}, "description": "The record."}},
    summary="The last session, to be replayed",
)
async def session_record(reader: Reads, desk: Asks) -> Response:
    """
    Return the record of the last session as a file for `pumice replay`.

    Needed: list of pods, nodes, PodGroups, queues, priority classes, HyperNodes, disruption
    budgets, resource quotas, Numatopologies, PersistentVolumeClaims, PersistentVolumes,
    StorageClasses, CSINodes, CSIDrivers and CSIStorageCapacities everywhere.
    """
    for resource in SEEN:
        await reader.require("list", resource)
    entry = desk.session()
    headers = {"Content-Disposition": f'attachment; filename="{entry.name}"'}
    return Response(await desk.think(entry.encode), media_type=GZIP, headers=headers)
