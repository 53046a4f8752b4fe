"""
The volume filters against kube-scheduler itself.

For random pods that mount claims, in random worlds of volumes, our predicates let through the nodes
that kube-scheduler's filters let through; and where there are none, they say all that it says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from random import Random
from time import sleep
from typing import Any

import msgspec
import numpy as np
import pytest

from pumice.core.api.core import Node, Pod
from pumice.core.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from pumice.core.class_views import ClassView
from pumice.core.cluster import Cluster
from pumice.core.conf import Configuration, PluginOption
from pumice.core.ids import PodUid
from pumice.core.session import Session
from pumice.local.api import Api, Object
from pumice.local.controlplane import ControlPlane
from pumice.local.install import collection_of
from pumice.local.watching import Watched
from tests.acceptance.length import Length
from tests.acceptance.probing import Prober
from tests.acceptance.random_volumes import (
    RESIDENTS,
    a_probe,
    a_resident,
    some_nodes,
    some_storage,
)

pytestmark = pytest.mark.cluster

READY_S = 20.0
SETTLE_S = 2.0
KINDS: Mapping[str, tuple[str, type[msgspec.Struct]]] = {
    "claims": ("/api/v1/persistentvolumeclaims", PersistentVolumeClaim),
    "volumes": ("/api/v1/persistentvolumes", PersistentVolume),
    "classes": ("/apis/storage.k8s.io/v1/storageclasses", StorageClass),
    "csi_nodes": ("/apis/storage.k8s.io/v1/csinodes", CSINode),
    "drivers": ("/apis/storage.k8s.io/v1/csidrivers", CSIDriver),
    "capacities": ("/apis/storage.k8s.io/v1/csistoragecapacities", CSIStorageCapacity),
}
REASON = re.compile(r"\d+ (node[^,]+?)(?=[,.])")


@pytest.fixture(scope="module")
def prober(binary_directory: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prober]:
    """A control plane, whose controllers bind volumes, and a kube-scheduler to probe."""
    with ControlPlane(tmp_path_factory.mktemp("volumes")) as plane:
        wait(plane.api, "/api/v1/serviceaccounts", lambda found: "default/default" in found)
        prober = Prober(plane, at_filter=True)
        yield prober
        prober.close()


def test_kube_scheduler_agrees(prober: Prober, length: Length) -> None:
    rounds, probes = (8, 60) if length.name == "full" else (2, 25)
    api, asked = prober.plane.api, 0
    for seed in range(rounds):
        rng = Random(seed)
        populate(api, rng)
        try:
            world = {path: api.get(path)["items"] for path in ("/api/v1/nodes", "/api/v1/pods")}
            stored = {name: api.get(path)["items"] for name, (path, _) in KINDS.items()}
            for i in range(probes):
                asked += compare(prober, world, stored, a_probe(rng, f"probe-{seed}-{i}"))
        finally:
            depopulate(api)
    # It is no test where every pod is refused, or none.
    assert rounds * probes * 0.2 < asked < rounds * probes * 0.8


def compare(
    prober: Prober, world: Mapping[str, Any], stored: Mapping[str, Any], probe: Object
) -> bool:
    """Check one pod in the world as it is; return whether some node takes it."""
    made, want = prober.probe(probe)
    cluster = a_cluster(world, stored, made)
    task = cluster.task(PodUid(made["metadata"]["uid"]))
    assert task is not None
    ssn = Session(cluster.snapshot(), Configuration((), ((PluginOption("predicates"),),)), 0.0, "s")
    ssn.open()
    view = ssn.views.of_task(task)

    names = taken(ssn, view)
    assert names == want.nodes, (made["spec"]["volumes"], want, said(view))
    if not names:
        assert theirs(want.message) <= said(view), made["spec"]["volumes"]
    return bool(names)


def taken(ssn: Session, view: ClassView) -> list[str]:
    if view.refused is not None:
        return []
    return [ssn.nodes.names[i] for i in np.flatnonzero(view.candidates())]


def theirs(message: str) -> set[str]:
    """Return the reasons in kube-scheduler's message."""
    text = message.removesuffix(".").partition("nodes are available: ")[2].partition(". ")[0]
    return {match[1] for match in REASON.finditer(f"{text}.")} or {text}


def said(view: ClassView) -> set[str]:
    """Return our reasons."""
    return {view.refused} if view.refused is not None else {*view.errors(resources=False).reasons}


def a_cluster(world: Mapping[str, Any], stored: Mapping[str, Any], probe: Object) -> Cluster:
    """Return our cache of the world, with the probe in it."""
    cluster = Cluster()
    for node in world["/api/v1/nodes"]:
        cluster.set_node(msgspec.convert(node, Node))
    for pod in [*world["/api/v1/pods"], probe]:
        cluster.set_pod(msgspec.convert(pod, Pod))
    for name, (_, kind) in KINDS.items():
        known = getattr(cluster.inputs.storage, name)
        for body in stored[name]:
            found: Any = msgspec.convert(body, kind)
            known[found.metadata.key] = found
    assert not cluster.faults
    return cluster


def populate(api: Api, rng: Random) -> None:
    """Create nodes, storage, and pods that use some of it already."""
    residents = [a_resident(rng, f"resident-{i}") for i in range(RESIDENTS)]
    for body in [*some_nodes(rng), *some_storage(rng), *residents]:
        api.post(collection_of(body), body)
    wait(api, KINDS["claims"][0], lambda found: all(map(is_bound, some(found, "bound-"))))
    wait(api, KINDS["volumes"][0], lambda found: all(map(is_seen, found.values())))
    # kube-scheduler hears of all this by its watches.
    sleep(SETTLE_S)


def some(found: Watched, prefix: str) -> list[Object]:
    return [body for body in found.values() if body["metadata"]["name"].startswith(prefix)]


def is_bound(claim: Object) -> bool:
    return bool(claim["status"]["phase"] == "Bound")


def is_seen(volume: Object) -> bool:
    """Tell whether the controllers have looked at a volume."""
    return bool(volume["status"]["phase"] != "Pending")


def wait(api: Api, path: str, check: Callable[[Watched], bool]) -> None:
    """Wait until the objects of a collection are as they are to be."""
    watched = Watched(api, path).start()
    try:
        watched.wait(check, READY_S)
    finally:
        watched.stop()


def depopulate(api: Api) -> None:
    """Remove all that `populate` made."""
    paths = ["/api/v1/pods", *(path for path, _ in KINDS.values()), "/api/v1/nodes"]
    for path in paths:
        for body in api.get(path)["items"]:
            home = body["metadata"].get("namespace")
            root, _, plural = path.rpartition("/")
            collection = f"{root}/namespaces/{home}/{plural}" if home else path
            api.delete(f"{collection}/{body['metadata']['name']}", {"gracePeriodSeconds": 0})
    for path in paths:
        wait(api, path, lambda found: not found)
