"""
Random storage: classes, volumes, claims bound and unbound, drivers and what they say of nodes.

The same generator state gives the same world. The names of nodes are those of `some_nodes`.
"""

from __future__ import annotations

from random import Random

from pumice.local.api import Object
from pumice.local.nodes import a_node

NODES = 6
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
#: of which the second tells how much storage is left
DRIVERS = ("csi.example.com", "told.example.com")
SIZES = ("1Gi", "2Gi", "3Gi")
MODES = (
    ["ReadWriteOnce"],
    ["ReadWriteOnce"],
    ["ReadWriteOnce", "ReadOnlyMany"],
    ["ReadWriteMany"],
)
VOLUMES, BOUND, UNBOUND, RESIDENTS = 10, 8, 8, 6


def some_nodes(rng: Random) -> list[Object]:
    """Return nodes of two zones, and some of none."""
    found = []
    for i in range(NODES):
        labels = {ZONE: rng.choice("ab")} if rng.random() < 0.8 else {}
        labels |= {REGION: "r"} if rng.random() < 0.3 else {}
        node = a_node(f"n{i}", cpu=8, memory="16Gi", labels=labels)
        if ZONE not in labels:
            del node["metadata"]["labels"][ZONE]
        found.append(node)
    return found


def some_storage(rng: Random) -> list[Object]:
    """Return the objects of a world in the order in which they are to be made."""
    volumes = [
        _volume(rng, f"free-{i}", rng.choice(("local", "local", "made"))) for i in range(VOLUMES)
    ]
    claims = [_claim(rng, f"open-{i}") for i in range(UNBOUND)]
    pairs = [entry for i in range(BOUND) for entry in _pair(rng, i)]
    return [*_classes(), *_drivers(rng), *volumes, *pairs, *claims]


def bound_claims() -> list[str]:
    """Return the names of the claims that are bound."""
    return [f"bound-{i}" for i in range(BOUND)]


def a_resident(rng: Random, name: str) -> Object:
    """Return a pod that is on some node already."""
    pod = _pod(name, rng.sample(bound_claims(), rng.choice((1, 1, 2))))
    pod["spec"] |= {"nodeName": f"n{rng.randrange(NODES)}", "schedulerName": "nobody"}
    return pod


def a_probe(rng: Random, name: str) -> Object:
    """Return a pod that is to be placed."""
    known = [*bound_claims(), *(f"open-{i}" for i in range(UNBOUND))]
    if rng.random() < 0.05:
        known = ["missing"]
    return _pod(name, rng.sample(known, min(rng.choice((1, 1, 2, 3)), len(known))))


def _pod(name: str, claims: list[str]) -> Object:
    spec = {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "busybox"}],
        "volumes": [
            {"name": f"v{i}", "persistentVolumeClaim": {"claimName": claim}}
            for i, claim in enumerate(claims)
        ],
    }
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _classes() -> list[Object]:
    csi, told = DRIVERS
    zone_a = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
    return [
        _class("local", "kubernetes.io/no-provisioner"),
        _class("made", csi, allowedTopologies=zone_a),
        _class("told", told),
        _class("early", "kubernetes.io/no-provisioner", volumeBindingMode="Immediate"),
    ]


def _class(name: str, provisioner: str, **fields: object) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **fields,
    }


def _drivers(rng: Random) -> list[Object]:
    made: list[Object] = [
        _storage("CSIDriver", {"name": DRIVERS[1]}, spec={"storageCapacity": True})
    ]
    for i in range(NODES):
        if rng.random() < 0.7:
            drivers = [
                {"name": driver, "nodeID": f"n{i}", "allocatable": {"count": rng.choice((1, 2, 3))}}
                for driver in DRIVERS
            ]
            made.append(_storage("CSINode", {"name": f"n{i}"}, spec={"drivers": drivers}))
    for i in range(4):
        labels = rng.choice(({ZONE: "a"}, {ZONE: "b"}, {HOST: f"n{rng.randrange(NODES)}"}))
        capacity = {
            "storageClassName": rng.choice(("told", "told", "made")),
            "nodeTopology": {"matchLabels": labels},
            "capacity": rng.choice(SIZES),
        }
        if rng.random() < 0.3:
            capacity["maximumVolumeSize"] = "1Gi"
        metadata = {"name": f"left-{i}", "namespace": "default"}
        made.append(_storage("CSIStorageCapacity", metadata, **capacity))
    return made


def _storage(kind: str, metadata: Object, **fields: object) -> Object:
    return {"apiVersion": "storage.k8s.io/v1", "kind": kind, "metadata": metadata, **fields}


def _volume(rng: Random, name: str, of: str) -> Object:
    spec: Object = {
        "capacity": {"storage": rng.choice(SIZES)},
        "accessModes": rng.choice(MODES),
        "storageClassName": of,
        "hostPath": {"path": "/data"},
    }
    if rng.random() < 0.8:
        terms = [_term(rng) for _ in range(rng.choice((1, 1, 2)))]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    if rng.random() < 0.1:
        spec["volumeMode"] = "Block"
    labels = {"disk": "ssd"} if rng.random() < 0.4 else {}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def _term(rng: Random) -> Object:
    hosts = rng.sample([f"n{i}" for i in range(NODES)], rng.choice((1, 2, 3)))
    rules: list[Object] = [
        {"key": HOST, "operator": "In", "values": hosts},
        {"key": ZONE, "operator": "In", "values": [rng.choice("ab")]},
        {"key": ZONE, "operator": "DoesNotExist"},
        {"key": HOST, "operator": "NotIn", "values": hosts},
    ]
    return {"matchExpressions": rng.sample(rules, rng.choice((1, 1, 2)))}


def _claim(rng: Random, name: str) -> Object:
    spec: Object = {
        "accessModes": rng.choice(MODES),
        "storageClassName": rng.choice(
            ("local", "local", "local", "made", "told", "early", "gone")
        ),
        "resources": {"requests": {"storage": rng.choice(SIZES)}},
    }
    if rng.random() < 0.15:
        spec["selector"] = {"matchLabels": {"disk": "ssd"}}
    if rng.random() < 0.1:
        spec["volumeMode"] = "Block"
    return _persistent_claim(name, spec)


def _pair(rng: Random, i: int) -> list[Object]:
    """Return a volume and the claim that it is bound to."""
    modes = ["ReadWriteOncePod"] if rng.random() < 0.2 else ["ReadWriteOnce"]
    claim = {
        "accessModes": modes,
        "storageClassName": "early",
        "volumeName": f"bound-{i}",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    volume = _volume(rng, f"bound-{i}", "early")
    spec = volume["spec"]
    spec |= {"accessModes": modes, "claimRef": {"namespace": "default", "name": f"bound-{i}"}}
    spec.pop("volumeMode", None)
    if rng.random() < 0.7:
        del spec["hostPath"]
        spec["csi"] = {"driver": rng.choice(DRIVERS), "volumeHandle": f"handle-{i}"}
        spec.pop("nodeAffinity", None)
    if rng.random() < 0.4:
        key = rng.choice((ZONE, OLD_ZONE, REGION))
        volume["metadata"]["labels"] |= {key: rng.choice(("a", "b", "a__b", "r"))}
    return [volume, _persistent_claim(f"bound-{i}", claim)]


def _persistent_claim(name: str, spec: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }
