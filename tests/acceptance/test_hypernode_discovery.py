"""HyperNodes: discovered from labels and from a fabric manager, counted, and cleaned away."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pumice.local.nodes import NODES
from pumice.local.watching import Watched
from tests.acceptance.bed import Bed
from tests.acceptance.objects import Object

pytestmark = pytest.mark.cluster

HYPER_NODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
SOURCE = "volcano.sh/network-topology-source"
RACK = "volcano.sh/e2e-hypernode-rack"
SYSTEM = "pumice-system"
LABELS = f"""
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      e2e-rack-topology: [{{nodeLabel: {RACK}}}]
"""
SOON_S = 10


class Fabric:
    """A fabric manager that lists which node hangs on which leaf."""

    def __init__(self) -> None:
        self.links: dict[str, str] = {}
        fabric = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                ports = [
                    {"description": "Computer IB Port", "system_name": n, "peer_node_name": leaf}
                    for n, leaf in fabric.links.items()
                ]
                allowed = self.headers.get("Authorization") == "Basic dTpw"  # u:p
                self.send_response(200 if allowed else 401)
                self.end_headers()
                self.wfile.write(json.dumps(ports).encode())

            def log_message(self, *_: Any, **__: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Topology:
    """The HyperNodes of the cluster, as a test wants to see them."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.hyper_nodes = Watched(bed.api, HYPER_NODES, changed=bed.changed).start()

    def configure(self, text: str) -> None:
        """Put the configuration of discovery in force."""
        self.bed.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "volcano-controller-configmap", "namespace": SYSTEM},
                "data": {"volcano-controller.conf": text},
            }
        )

    def label(self, node: str, rack: str | None) -> None:
        self.bed.api.patch(f"{NODES}/{node}", {"metadata": {"labels": {RACK: rack}}})

    def found(self, source: str) -> dict[str, tuple[int, list[str], int]]:
        """Return tier, members and count of what a source found, by rack or name."""
        return {
            h["metadata"]["labels"].get(RACK, h["metadata"]["name"]): (
                h["spec"]["tier"],
                members(h),
                h.get("status", {}).get("nodeCount", -1),
            )
            for h in self.hyper_nodes.values()
            if h["metadata"].get("labels", {}).get(SOURCE) == source
        }

    def clear(self) -> None:
        self.configure("")
        for name in list(self.hyper_nodes):
            self.bed.api.delete(f"{HYPER_NODES}/{name}")
        self.hyper_nodes.wait(lambda all_: not all_, SOON_S, "the HyperNodes are gone")
        self.hyper_nodes.stop()


def members(hypernode: Object) -> list[str]:
    return [member["selector"]["exactMatch"]["name"] for member in hypernode["spec"]["members"]]


@pytest.fixture
def topology(bed: Bed) -> Iterator[Topology]:
    view = Topology(bed)
    try:
        yield view
    finally:
        view.clear()


@pytest.fixture
def fabric() -> Iterator[Fabric]:
    running = Fabric()
    try:
        yield running
    finally:
        running.stop()


def test_label_topology_is_discovered_updated_and_removed(bed: Bed, topology: Topology) -> None:
    n0, n1 = bed.nodes(2)
    topology.configure(LABELS)
    for node in (n0, n1):
        topology.label(node, "rack-a")

    def shows(want: dict[str, tuple[int, list[str], int]], what: str) -> None:
        bed.wait_for(lambda: topology.found("label") == want, SOON_S, what)

    shows({"rack-a": (1, [n0, n1], 2)}, "one rack of two nodes")
    (rack,) = topology.hyper_nodes.values()
    assert rack["spec"]["tierName"] == RACK

    topology.label(n1, "rack-b")
    shows({"rack-a": (1, [n0], 1), "rack-b": (1, [n1], 1)}, "two racks of a node each")
    uids = {h["metadata"]["uid"] for h in topology.hyper_nodes.values()}
    assert rack["metadata"]["uid"] in uids, "the rack that stays is the same HyperNode"

    for node in (n0, n1):
        topology.label(node, None)
    shows({}, "no rack is left")


def test_a_hypernode_by_hand_is_counted_and_kept(bed: Bed, topology: Topology) -> None:
    topology.configure(LABELS)
    selectors = [
        {"exactMatch": {"name": "node-0"}},
        {"regexMatch": {"pattern": "^node-[12]$"}},
        {"labelMatch": {"matchLabels": {"kubernetes.io/hostname": "node-3"}}},
    ]
    body: Object = {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "by-hand"},
        "spec": {"tier": 1, "members": [{"type": "Node", "selector": s} for s in selectors]},
    }
    bed.api.post(HYPER_NODES, body)

    def status() -> Object:
        found: Object = topology.hyper_nodes.get("by-hand", {}).get("status", {})
        return found

    def says(count: int, message: str) -> bool:
        conditions = status().get("conditions", [])
        told = [c["message"] for c in conditions if c["type"] == "MembersFound"]
        return status().get("nodeCount") == count and told == [message]

    bed.wait_for(lambda: says(1, "0 nodes; not found: Node node-0"), SOON_S, "a name counts")
    bed.nodes(4)
    bed.wait_for(lambda: says(4, "4 nodes"), SOON_S, "all members are there")
    assert "4" in bed.kubectl("get", "hypernode", "by-hand", "--no-headers").split()


def test_a_fabric_manager_is_asked(bed: Bed, topology: Topology, fabric: Fabric) -> None:
    fabric.links = {"n0": "leaf-b", "n1": "leaf-a", "n2": "leaf-a"}
    bed.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "ufm", "namespace": SYSTEM},
            "data": {"username": "dQ==", "password": "cA=="},
        }
    )
    topology.configure(
        f"""
networkTopologyDiscovery:
- source: ufm
  enabled: true
  interval: 1s
  credentials: {{secretRef: {{name: ufm}}}}
  config: {{endpoint: "{fabric.url}"}}
"""
    )

    def shows(want: dict[str, tuple[int, list[str], int]], what: str) -> None:
        bed.wait_for(lambda: topology.found("ufm") == want, SOON_S, what)

    leaves = ["leaf-hn-0", "leaf-hn-1"]
    shows(
        {
            "leaf-hn-0": (1, ["n1", "n2"], 2),
            "leaf-hn-1": (1, ["n0"], 1),
            "spine-hn": (2, leaves, 2),
        },
        "two leaves and a spine",
    )
    fabric.links["n0"] = "leaf-a"
    shows(
        {"leaf-hn-0": (1, ["n0", "n1", "n2"], 3), "spine-hn": (2, ["leaf-hn-0"], 1)},
        "one leaf is left",
    )
