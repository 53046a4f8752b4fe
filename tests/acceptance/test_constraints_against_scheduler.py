"""
Predicates and scores against kube-scheduler itself.

For random pods in random worlds, our predicates let through the nodes that kube-scheduler's
filters let through, and every scorer gives them the score that kube-scheduler's plugin gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from time import sleep
from typing import Any

import msgspec
import numpy as np
import pytest

from pumice.core.api.core import Node, Pod
from pumice.core.cluster import Cluster
from pumice.core.conf import Arguments, Configuration, PluginOption
from pumice.core.ids import PodUid
from pumice.core.model.peers import Peers
from pumice.core.model.tasks import TaskClass
from pumice.core.plugins.nodeorder import ranking
from pumice.core.resources import Bools, Ints, pad
from pumice.core.session import Session
from pumice.local.api import Api
from pumice.local.controlplane import ControlPlane
from pumice.local.watching import Watched
from tests.acceptance.length import Length
from tests.acceptance.probing import Prober
from tests.acceptance.random_constraints import a_probe, a_resident, some_nodes

pytestmark = pytest.mark.cluster

RESIDENTS = 18
READY_S = 20.0
SETTLE_S = 2.0
LEAVING = 0.15
"""The part of the residents that are on their way out, held by a finaliser."""
LOADS = {
    "NodeResourcesFit": "leastrequested",
    "NodeResourcesBalancedAllocation": "balancedresource",
    "ImageLocality": "imagelocality",
}
SCORERS = (
    *("leastrequested", "mostrequested", "balancedresource", "imagelocality"),
    *("nodeaffinity", "podaffinity", "tainttoleration", "podtopologyspread"),
)


@pytest.fixture(scope="module")
def prober(binary_directory: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prober]:
    """A control plane with two namespaces and a kube-scheduler to probe."""
    with ControlPlane(tmp_path_factory.mktemp("probing")) as plane:
        other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
        plane.api.post("/api/v1/namespaces", other)
        accounts = Watched(plane.api, "/api/v1/serviceaccounts").start()
        accounts.wait(lambda found: {"default/default", "other/default"} <= set(found), READY_S)
        accounts.stop()
        prober = Prober(plane)
        yield prober
        prober.close()


def test_kube_scheduler_agrees(prober: Prober, length: Length) -> None:
    rounds, probes = (8, 60) if length.name == "full" else (2, 25)
    for seed in range(rounds):
        rng = Random(seed)
        populate(prober.plane.api, rng)
        try:
            for i in range(probes):
                compare(prober, a_probe(rng, f"probe-{seed}-{i}"))
        finally:
            depopulate(prober.plane.api)


def compare(prober: Prober, probe: Mapping[str, Any]) -> None:
    """Check one pod in the world as it is."""
    world = {
        path: prober.plane.api.get(path)["items"] for path in ("/api/v1/nodes", "/api/v1/pods")
    }
    made, want = prober.probe(dict(probe))
    cluster = a_cluster(world, made)
    task = cluster.task(PodUid(made["metadata"]["uid"]))
    assert task is not None

    ssn = a_session(cluster, {})
    view = ssn.views.of(task.cls, task.job)
    mask = view.candidates()
    for row in task.cls.rows:
        # Plans may also count on room that will be free.
        mask &= task.cls.req[row] <= ssn.nodes.idle[row]
    at = np.flatnonzero(mask)
    names = [ssn.nodes.names[i] for i in at]

    assert names == want.nodes, made["spec"]
    # kube-scheduler does not score where there is no choice.
    if len(names) > 1:
        got = scores(cluster, ssn, task.cls, mask)
        zeros = dict.fromkeys(names, 0)
        wanted = {plugin: {**zeros, **want.scores.get(plugin, {})} for plugin in got}
        assert got == wanted, made["spec"]


def scores(
    cluster: Cluster, ssn: Session, cls: TaskClass, mask: Bools
) -> dict[str, dict[str, int]]:
    """Return plugin -> node -> score, with kube-scheduler's weights."""
    at, columns, signature = np.flatnonzero(mask), ssn.nodes.columns, cls.signature
    names = [ssn.nodes.names[i] for i in at]
    peers = Peers(columns, ssn.snapshot.population)
    preferred = ranking.preferred_by_pod(signature.selection, columns)
    disliked = columns.disliked(signature.selection.tolerations)
    wished = ranking.pod_affinity(signature, peers)
    even = (
        ranking.evenness(signature, peers, mask) if signature.soft_spread else np.zeros(mask.size)
    )
    found = {
        "NodeAffinity": 2 * ranking.of_highest(preferred[at]),
        "TaintToleration": 3 * ranking.reversed_of_highest(disliked[at]),
        "InterPodAffinity": 2 * ranking.between_extremes(wished[at]),
        "PodTopologySpread": 2 * even[at],
    }
    for plugin, scorer in LOADS.items():
        found[plugin] = load_scores(a_session(cluster, {scorer: 1}), cls, at)
    return {
        plugin: dict(zip(names, map(int, row.tolist()), strict=True))
        for plugin, row in found.items()
    }


def load_scores(ssn: Session, cls: TaskClass, at: Ints) -> Any:
    """Return what the node order of a session gives for one task of the class."""
    (order,) = ssn.points.node_order
    used = ssn.nodes.used[:, at, None] + pad(cls.req, ssn.nodes.rows)[:, None, None]
    return order.score(cls, at, ssn.nodes.alloc[:, at, None], used)[:, 0]


def a_cluster(world: Mapping[str, list[Any]], probe: Mapping[str, Any]) -> Cluster:
    """Return our cache of the world, with the probe in it."""
    cluster = Cluster()
    for node in world["/api/v1/nodes"]:
        cluster.set_node(msgspec.convert(node, Node))
    for pod in [*world["/api/v1/pods"], probe]:
        cluster.set_pod(msgspec.convert(pod, Pod))
    assert not cluster.faults
    return cluster


def a_session(cluster: Cluster, weights: Mapping[str, int]) -> Session:
    """Return a session with predicates and, of the scorers, those with a weight."""
    arguments = {f"{scorer}.weight": weights.get(scorer, 0) for scorer in SCORERS}
    tier = (PluginOption("predicates"), PluginOption("nodeorder", arguments=Arguments(arguments)))
    ssn = Session(cluster.snapshot(), Configuration((), (tier,)), 0.0, "s")
    ssn.open()
    return ssn


def populate(api: Api, rng: Random) -> None:
    """Create nodes, and pods on them; some of the pods are on their way out."""
    for node in some_nodes(rng):
        api.post("/api/v1/nodes", node)
    for i in range(RESIDENTS):
        pod = a_resident(rng, f"resident-{i}")
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        leaving = rng.random() < LEAVING
        if leaving:
            pod["metadata"]["finalizers"] = ["pumice.dev/held-for-a-test"]
        api.post(path, pod)
        if leaving:
            api.delete(f"{path}/{pod['metadata']['name']}")
    # kube-scheduler hears of all this by its watches, and KWOK makes the pods run.
    sleep(SETTLE_S)


def depopulate(api: Api) -> None:
    """Remove all that `populate` made."""
    for pod in api.get("/api/v1/pods")["items"]:
        path = "/api/v1/namespaces/{namespace}/pods/{name}".format(**pod["metadata"])
        api.delete(path, {"gracePeriodSeconds": 0})
        if pod["metadata"].get("finalizers"):
            api.patch(path, {"metadata": {"finalizers": None}})
    for node in api.get("/api/v1/nodes")["items"]:
        api.delete(f"/api/v1/nodes/{node['metadata']['name']}")
