"""Gangs whose volumes are disks in few nodes: they go there, whole, and nobody starts over."""

from __future__ import annotations

import pytest

from tests.acceptance.bed import Bed
from tests.acceptance.figures import extender_metric
from tests.acceptance.objects import Object, a_job, a_task
from tests.acceptance.timeline import lives

pytestmark = pytest.mark.cluster

SIZE = 4
NODES = 6
PATIENCE_S = 20.0
HOST = "kubernetes.io/hostname"


async def test_a_gang_goes_where_its_bound_volumes_are(bed: Bed) -> None:
    homes = homes_of(bed)
    bed.create(a_class(bed, "Immediate"))
    for i, home in enumerate(homes):
        bed.create(a_disk(bed, i, home, claim=f"data-{i}"), a_claim(bed, i, volume=True))
    await bed.until(lambda: all(map(is_bound, claims(bed))), PATIENCE_S, "the claims are bound")

    await runs_without_a_hitch(bed)

    assert [node_of(bed, i) for i in range(SIZE)] == homes


async def test_a_gang_whose_claims_wait_for_it_goes_where_there_are_disks(bed: Bed) -> None:
    homes = homes_of(bed)
    bed.create(a_class(bed, "WaitForFirstConsumer"))
    for i, home in enumerate(homes):
        bed.create(a_disk(bed, i, home), a_claim(bed, i))
    await bed.until(lambda: all(map(is_available, disks(bed))), PATIENCE_S, "the disks are there")

    await runs_without_a_hitch(bed)

    assert sorted(node_of(bed, i) for i in range(SIZE)) == sorted(homes)
    place = {disk["metadata"]["name"]: home_of(disk) for disk in disks(bed)}
    given = [claim["spec"]["volumeName"] for claim in claims(bed)]
    assert len(set(given)) == SIZE
    assert [place[name] for name in given] == [node_of(bed, i) for i in range(SIZE)]


async def test_a_gang_waits_for_a_claim_that_does_not_exist_and_says_so(bed: Bed) -> None:
    [node] = bed.nodes(1, cpu=SIZE)
    bed.create(a_class(bed, "WaitForFirstConsumer"))
    for i in range(SIZE):
        bed.create(a_disk(bed, i, node))
    for i in range(SIZE - 1):
        bed.create(a_claim(bed, i))
    missing = f'persistentvolumeclaim "data-{SIZE - 1}" not found'
    async with bed.auditor() as auditor:
        bed.create(a_gang())
        await bed.until(lambda: missing in said(bed), PATIENCE_S, "the group says what is missing")
        assert not bed.bound("gang")

        bed.create(a_claim(bed, SIZE - 1))
        await bed.until(lambda: bed.job_phase("gang") == "Running", PATIENCE_S, "the gang runs")
        await auditor.finish()
    assert len(lives(bed, "gang")) == SIZE


async def runs_without_a_hitch(bed: Bed) -> None:
    """Run the gang; nobody is refused, and nobody is replaced."""
    before = extender_metric(bed, "pumice_bind_errors")
    async with bed.auditor() as auditor:
        bed.create(a_gang())
        await bed.until(lambda: bed.job_phase("gang") == "Running", PATIENCE_S, "the gang runs")
        await auditor.finish()
    assert extender_metric(bed, "pumice_bind_errors") == before
    assert len(lives(bed, "gang")) == SIZE


def homes_of(bed: Bed) -> list[str]:
    """Make nodes, and return for each disk the node that it is in: two of them have all."""
    names = bed.nodes(NODES, cpu=SIZE)
    return [names[2], names[5]] * (SIZE // 2)


def said(bed: Bed) -> str:
    """Return the messages of the gang's PodGroup."""
    conditions = (bed.pod_group("gang") or {}).get("status", {}).get("conditions", ())
    return " ".join(condition["message"] for condition in conditions)


def node_of(bed: Bed, i: int) -> str:
    """Return the node of the member that mounts claim `i`."""
    [pod] = [pod for pod in bed.running("gang") if f"-m{i}-" in pod["metadata"]["name"]]
    return str(pod["spec"]["nodeName"])


def claims(bed: Bed) -> list[Object]:
    path = f"/api/v1/namespaces/{bed.namespace}/persistentvolumeclaims"
    found: list[Object] = bed.api.get(path)["items"]
    return sorted(found, key=lambda claim: str(claim["metadata"]["name"]))


def disks(bed: Bed) -> list[Object]:
    found: list[Object] = bed.api.get("/api/v1/persistentvolumes")["items"]
    return [disk for disk in found if disk["spec"]["storageClassName"] == bed.namespace]


def is_bound(claim: Object) -> bool:
    return bool(claim["status"]["phase"] == "Bound")


def is_available(disk: Object) -> bool:
    return bool(disk["status"]["phase"] == "Available")


def home_of(disk: Object) -> str:
    """Return the node that a disk is in."""
    [term] = disk["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    return str(term["matchExpressions"][0]["values"][0])


def a_gang() -> Object:
    """Return a gang whose members mount a claim each."""
    tasks = []
    for i in range(SIZE):
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{i}"}}
        tasks.append(a_task(f"m{i}", volumes=[volume], cpu=1))
    return a_job("gang", *tasks, min_available=SIZE)


def a_class(bed: Bed, mode: str) -> Object:
    """Return the class of the test's disks, which nobody makes."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": bed.namespace},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": mode,
    }


def a_disk(bed: Bed, i: int, home: str, *, claim: str = "") -> Object:
    """Return a disk in a node, kept for a claim if one is named."""
    here = [{"key": HOST, "operator": "In", "values": [home]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{bed.namespace}-{i}"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": bed.namespace,
            "local": {"path": "/data"},
            "claimRef": {"namespace": bed.namespace, "name": claim} if claim else None,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": here}]}},
        },
    }


def a_claim(bed: Bed, i: int, *, volume: bool = False) -> Object:
    """Return a claim, to the disk of its number if it is to have that one."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"data-{i}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": bed.namespace,
            "volumeName": f"{bed.namespace}-{i}" if volume else None,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
