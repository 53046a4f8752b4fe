"""Claims, volumes and classes in one line each, and clusters that know them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from pumice.core.api.core import Pod, PodSpec
from pumice.core.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from pumice.core.cluster import Cluster
from pumice.core.model.claims import BOUND_BY
from pumice.core.model.storage import Stored
from tests.builders import a_pod

Json = dict[str, Any]
HOST = "kubernetes.io/hostname"
SELECTED = "volume.kubernetes.io/selected-node"


def a_claim(
    name: str,
    *,
    volume: str = "",
    storage: str = "1Gi",
    of: str | None = "local",
    modes: Sequence[str] = ("ReadWriteOnce",),
    selector: Mapping[str, str] | None = None,
    phase: str = "",
    annotations: Mapping[str, str] | None = None,
    bound: bool = True,
    deleting: bool = False,
    owner: str = "",
    **spec: object,
) -> PersistentVolumeClaim:
    """Return a claim of class `of`; bound where it has a volume, unless it is said otherwise."""
    notes = {**({BOUND_BY: "yes"} if volume and bound else {}), **(annotations or {})}
    raw = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"claim-{name}",
            "annotations": notes,
            "deletionTimestamp": "2026-01-01T00:00:00Z" if deleting else None,
            "ownerReferences": [{"uid": owner, "controller": True}] if owner else None,
        },
        "spec": {
            "volumeName": volume,
            "storageClassName": of,
            "accessModes": [*modes],
            "selector": {"matchLabels": dict(selector)} if selector else None,
            "resources": {"requests": {"storage": storage}},
            **spec,
        },
        "status": {"phase": phase or ("Bound" if volume and bound else "Pending")},
    }
    return msgspec.convert(raw, PersistentVolumeClaim)


def a_volume(
    name: str,
    *,
    on: str = "",
    storage: str = "1Gi",
    of: str = "local",
    modes: Sequence[str] = ("ReadWriteOnce",),
    labels: Mapping[str, str] | None = None,
    claim: str = "",
    phase: str = "",
    terms: Sequence[Json] = (),
    driver: str = "",
    **spec: object,
) -> PersistentVolume:
    """
    Return a volume that node `on` alone reaches, or that the node selector `terms` mean.

    One with a `claim` is kept for it; it is available unless another phase is given.
    """
    here = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [on]}]}
    nodes = {"nodeSelectorTerms": [here] if on else [*terms]}
    raw = {
        "metadata": {"name": name, "uid": f"volume-{name}", "labels": dict(labels or {})},
        "spec": {
            "capacity": {"storage": storage},
            "storageClassName": of,
            "accessModes": [*modes],
            "claimRef": {"namespace": "ns", "name": claim} if claim else None,
            "nodeAffinity": {"required": nodes} if on or terms else None,
            "csi": {"driver": driver, "volumeHandle": f"handle-{name}"} if driver else None,
            **spec,
        },
        "status": {"phase": phase or "Available"},
    }
    return msgspec.convert(raw, PersistentVolume)


def a_class(
    name: str,
    *,
    by: str = "kubernetes.io/no-provisioner",
    waits: bool = True,
    topologies: Sequence[Mapping[str, Sequence[str]]] = (),
) -> StorageClass:
    """Return a class; its claims wait for their first consumer unless it is said otherwise."""
    terms = [
        {"matchLabelExpressions": [{"key": k, "values": [*v]} for k, v in term.items()]}
        for term in topologies
    ]
    raw = {
        "metadata": {"name": name},
        "provisioner": by,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
        "allowedTopologies": terms or None,
    }
    return msgspec.convert(raw, StorageClass)


def a_csi_node(name: str, **limits: int | None) -> CSINode:
    """Return how many volumes each driver takes on a node."""
    drivers = [{"name": d, "allocatable": {"count": count}} for d, count in limits.items()]
    return msgspec.convert({"metadata": {"name": name}, "spec": {"drivers": drivers}}, CSINode)


def a_driver(name: str, *, tells_capacity: bool = True) -> CSIDriver:
    raw = {"metadata": {"name": name}, "spec": {"storageCapacity": tells_capacity}}
    return msgspec.convert(raw, CSIDriver)


def a_capacity(
    name: str, of: str, capacity: str | None, *, most: str | None = None, **labels: str
) -> CSIStorageCapacity:
    """Return what is left of a class for the nodes with all of these labels."""
    raw = {
        "metadata": {"name": name, "namespace": "ns"},
        "storageClassName": of,
        "nodeTopology": {"matchLabels": labels},
        "capacity": capacity,
        "maximumVolumeSize": most,
    }
    return msgspec.convert(raw, CSIStorageCapacity)


def mounting(*claims: str, ephemeral: Sequence[str] = ()) -> PodSpec:
    """Return the specification of a pod that mounts these claims and ephemeral volumes."""
    volumes: list[Json] = [{"name": "unrelated"}]
    volumes += [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    volumes += [{"name": e, "ephemeral": {"volumeClaimTemplate": {"spec": {}}}} for e in ephemeral]
    return msgspec.convert({"volumes": volumes}, PodSpec)


def a_mounting_pod(name: str, *claims: str, asks: str = "1", job: str = "", node: str = "") -> Pod:
    """Return a pod that mounts these claims."""
    return a_pod(name, asks, job=job, node=node, spec=mounting(*claims))


def store(cluster: Cluster, *things: Stored | Iterable[Stored]) -> Cluster:
    """Let a cluster know of these objects; return it."""
    storage = cluster.inputs.storage
    for thing in things:
        match thing:
            case PersistentVolumeClaim():
                storage.claims[thing.metadata.key] = thing
            case PersistentVolume():
                storage.volumes[thing.metadata.key] = thing
            case StorageClass():
                storage.classes[thing.metadata.key] = thing
            case CSINode():
                storage.csi_nodes[thing.metadata.key] = thing
            case CSIDriver():
                storage.drivers[thing.metadata.key] = thing
            case CSIStorageCapacity():
                storage.capacities[thing.metadata.key] = thing
            case _:
                store(cluster, *thing)
    return cluster
