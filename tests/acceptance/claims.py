"""Volumes and devices that pods claim, and those who bind them, as a test plays them."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pumice.local.watching import Watched
from tests.acceptance.bed import Bed
from tests.acceptance.objects import Object

VOLUMES = "/api/v1/persistentvolumes"
SELECTED = "volume.kubernetes.io/selected-node"
BINDER = "kube-controller-manager"
HOST = "kubernetes.io/hostname"
LOCAL = "kubernetes.io/no-provisioner"
DRIVER = "cards.example.com"
PATIENCE_S = 20.0


@dataclass(frozen=True)
class Volumes:
    """Volumes of a class that waits for its first consumer, and a claim of it, as seen now."""

    bed: Bed
    #: name of the class, and of the claim
    name: str
    volumes: Watched
    claims: Watched

    def claim(self) -> Object:
        """Return the claim."""
        return self.claims[f"{self.bed.namespace}/{self.name}"]

    def mount(self) -> Object:
        """Return the volume of a pod that mounts the claim."""
        return {"name": "data", "persistentVolumeClaim": {"claimName": self.name}}

    def selected(self) -> str:
        """Return the node for which kube-scheduler wants a volume made; empty as yet."""
        return str(self.claim()["metadata"].get("annotations", {}).get(SELECTED, ""))

    def kept(self) -> list[Object]:
        """Return the volumes that are the claim's, or kept for it."""
        return [v for v in self._mine() if v["spec"].get("claimRef", {}).get("name") == self.name]

    def is_bound(self) -> bool:
        """Tell whether the claim has its volume."""
        return bool(self.claim()["status"].get("phase") == "Bound")

    def make(self, node: str, *, claimed: bool = False) -> None:
        """Make a volume that one node reaches, for the claim or for whoever claims it."""
        terms = [{"key": HOST, "operator": "In", "values": [node]}]
        spec: Object = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": self.name,
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}},
        }
        if claimed:
            spec["claimRef"] = {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": self.bed.namespace,
                "name": self.name,
                "uid": self.claim()["metadata"]["uid"],
            }
        self.bed.create(_object("v1", "PersistentVolume", self.of(node), spec=spec))

    def of(self, node: str) -> str:
        """Return the name of the volume on a node."""
        return f"{self.name}-{node}"

    def remove(self, node: str) -> None:
        """Take the volume of a node away, and wait until it is gone."""
        self.bed.api.delete(f"{VOLUMES}/{self.of(node)}")
        self.volumes.wait(lambda seen: self.of(node) not in seen, PATIENCE_S, "the volume is gone")

    def _mine(self) -> list[Object]:
        return [v for v in self.volumes.values() if v["spec"].get("storageClassName") == self.name]

    def available(self) -> int:
        """Return how many volumes may be claimed."""
        return sum(v["status"].get("phase") == "Available" for v in self._mine())


@contextmanager
def volumes_on(bed: Bed, nodes: Sequence[str] = (), provisioner: str = LOCAL) -> Iterator[Volumes]:
    """Make a class, local volumes of it on some nodes, and a claim; remove class and volumes."""
    name = f"data-{bed.namespace}"
    claims = f"/api/v1/namespaces/{bed.namespace}/persistentvolumeclaims"
    found = Volumes(
        bed,
        name,
        Watched(bed.api, VOLUMES, changed=bed.changed),
        Watched(bed.api, claims, changed=bed.changed),
    )
    mode = "WaitForFirstConsumer"
    a_class = _object(
        "storage.k8s.io/v1", "StorageClass", name, provisioner=provisioner, volumeBindingMode=mode
    )
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": name,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    bed.create(a_class, _object("v1", "PersistentVolumeClaim", name, spec=claim))
    for watched in (found.volumes, found.claims):
        watched.start()
    try:
        for node in nodes:
            found.make(node)
        # kube-scheduler takes no volume before the controller has looked at it.
        bed.wait_for(lambda: found.available() == len(nodes), PATIENCE_S, "the volumes are there")
        yield found
    finally:
        for volume in found._mine():
            bed.api.delete(f"{VOLUMES}/{volume['metadata']['name']}")
        bed.delete(a_class)
        for watched in (found.volumes, found.claims):
            watched.stop()


@contextmanager
def binder_away(bed: Bed) -> Iterator[None]:
    """Stop whoever binds volumes (and all else of kube-controller-manager) inside the block."""
    bed.kill(BINDER, signal.SIGSTOP)
    try:
        yield
    finally:
        bed.kill(BINDER, signal.SIGCONT)


@contextmanager
def devices_on(bed: Bed, nodes: Sequence[str]) -> Iterator[list[Object]]:
    """
    Give each of some nodes a device, and the namespace a template of claims of one.

    Yield the resource claims of a pod that has one made for it by that template.
    """
    name = f"card-{bed.namespace}"
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    request = {"name": "card", "exactly": {"deviceClassName": name}}
    version = "resource.k8s.io/v1"
    shared = [
        _object(version, "DeviceClass", name, spec={"selectors": [selector]}),
        *(
            _object(
                version,
                "ResourceSlice",
                f"{name}-{node}",
                spec={
                    "driver": DRIVER,
                    "nodeName": node,
                    "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "card-0"}],
                },
            )
            for node in nodes
        ),
    ]
    template = {"spec": {"devices": {"requests": [request]}}}
    bed.create(*shared, _object(version, "ResourceClaimTemplate", name, spec=template))
    try:
        yield [{"name": "card", "resourceClaimTemplateName": name}]
    finally:
        for body in shared:
            bed.delete(body)


def _object(version: str, kind: str, name: str, **parts: object) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **parts}
