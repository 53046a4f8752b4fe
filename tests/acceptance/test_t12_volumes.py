"""T12: a gang waits for the volume of one of its members, and nothing of it starts over."""

from __future__ import annotations

import pytest

from tests.acceptance.bed import Bed
from tests.acceptance.figures import extender_metric
from tests.acceptance.length import Length
from tests.acceptance.objects import Object, a_job, a_task
from tests.acceptance.timeline import lives

pytestmark = pytest.mark.cluster

SIZE = 4
PATIENCE_S = 20.0
SELECTED = "volume.kubernetes.io/selected-node"
CLASS = "slow"
CLAIM = "data"


async def test_a_gang_waits_for_a_slow_volume(bed: Bed, length: Length) -> None:
    bed.nodes(SIZE // 2, cpu=2)
    bed.create(A_CLASS, A_CLAIM)
    with_volume = a_task("store", volumes=[VOLUME], cpu=1)
    rest = a_task("worker", SIZE - 1, cpu=1)
    async with bed.auditor() as auditor:
        bed.create(a_job("gang", with_volume, rest, min_available=SIZE))
        await bed.until(lambda: selected(bed), PATIENCE_S, "a node is chosen for the volume")
        await bed.never(
            lambda: bed.bound("gang"), length.volume_s, "a member is bound without the rest"
        )
        bind(bed)
        await bed.until(lambda: bed.job_phase("gang") == "Running", PATIENCE_S, "the gang runs")
        await auditor.finish()

    assert extender_metric(bed, "pumice_bind_errors") == 0
    assert len(lives(bed, "gang")) == SIZE
    [store] = [pod for pod in bed.running("gang") if "store" in pod["metadata"]["name"]]
    assert store["spec"]["nodeName"] == selected(bed)


def selected(bed: Bed) -> str:
    """Return the node for which kube-scheduler wants the volume; empty while there is none."""
    claim = bed.api.get(claim_path(bed))
    return str(claim["metadata"].get("annotations", {}).get(SELECTED, ""))


def bind(bed: Bed) -> None:
    """Make the volume on the node that was chosen, as a provisioner would."""
    claim = bed.api.get(claim_path(bed))["metadata"]
    terms = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [selected(bed)]}]
    reference = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": bed.namespace,
        "name": CLAIM,
        "uid": claim["uid"],
    }
    bed.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"volume-{bed.namespace}"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": CLASS,
                "local": {"path": "/data"},
                "claimRef": reference,
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}},
            },
        }
    )


def claim_path(bed: Bed) -> str:
    return f"/api/v1/namespaces/{bed.namespace}/persistentvolumeclaims/{CLAIM}"


VOLUME: Object = {"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}}
A_CLASS: Object = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": CLASS},
    "provisioner": "example.com/slow",
    "volumeBindingMode": "WaitForFirstConsumer",
}
A_CLAIM: Object = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": CLAIM},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": CLASS,
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
