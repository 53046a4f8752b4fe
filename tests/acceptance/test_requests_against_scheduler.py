"""
What a pod asks for, judged by kube-scheduler itself.

For each shape there is a node that offers exactly what `pod_requests` says, where the pod must be
bound, and for each resource of it a node that offers the smallest amount less, where it must not.
A selector sends each pod to its node, so all of them are tried at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from pumice.core.api.core import Pod
from pumice.core.quantity import Exact, text
from pumice.core.requests import Requests, pod_requests
from pumice.local.controlplane import ControlPlane
from pumice.local.nodes import NODES, a_node, create_all
from pumice.local.scheduler import start_stock_scheduler
from pumice.local.watching import Watched
from tests.acceptance.objects import Object
from tests.shapes import SHAPES

pytestmark = pytest.mark.cluster

PODS = "/api/v1/namespaces/default/pods"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
SETTLED_S = 60.0
HOST = "kubernetes.io/hostname"
PLENTY = {"cpu": "64", "memory": "64Gi", "ephemeral-storage": "64Gi"}
SMALLEST: dict[str, Exact] = {"cpu": Fraction(1, 1000), "hugepages-2Mi": 2 << 20}
"""What a node can offer less of a resource, where that is not one unit."""
REFUSALS = {"pods": "Too many pods"}


@dataclass(frozen=True)
class Trial:
    """A pod and the only node that it may go to, which is `short` of a resource, or of none."""

    name: str
    shape: str
    short: str
    asked: Requests

    @property
    def what(self) -> str:
        """What is tried, in words."""
        return f"{self.shape}, {f'too little {self.short}' if self.short else 'exactly that'}"

    @property
    def want(self) -> str:
        """The node where the pod is bound, or why it is not."""
        if self.short:
            return REFUSALS.get(self.short, f"Insufficient {self.short}")
        return self.name

    def node(self) -> Object:
        """Return the node."""
        offered = dict(self.asked)
        if self.short:
            offered[self.short] -= SMALLEST.get(self.short, 1)
        amounts = PLENTY | {name: text(amount) for name, amount in offered.items()}
        node = a_node(self.name)
        node["status"] |= {"allocatable": amounts, "capacity": amounts}
        return node


def a_pod(name: str, shape: str) -> Object:
    """Return a pod of a shape for the node of its own name."""
    spec = {**SHAPES[shape], "nodeSelector": {HOST: name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def plane(
    binary_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane with nothing of Pumice in it."""
    with ControlPlane(tmp_path_factory.mktemp("plane")) as running:
        accounts = Watched(running.api, ACCOUNTS).start()
        accounts.wait(lambda found: "default/default" in found, 30, "the ServiceAccount")
        accounts.stop()
        yield running


def trials(plane: ControlPlane) -> list[Trial]:
    """Return all trials; what a shape asks for is read off the pod as the server stores it."""
    found: list[Trial] = []
    for shape in SHAPES:
        stored = plane.api.post(f"{PODS}?dryRun=All", a_pod("probe", shape))
        asked = pod_requests(msgspec.convert(stored, Pod))
        for short in ("", *(name for name, amount in asked.items() if amount)):
            found.append(Trial(f"trial-{len(found):03}", shape, short, asked))
    return found


def verdict(pod: Object) -> str:
    """Return the pod's node, or why kube-scheduler found none; empty while it has not looked."""
    if node := pod["spec"].get("nodeName"):
        return str(node)
    conditions = pod["status"].get("conditions", [])
    return next((c["message"] for c in conditions if c["reason"] == "Unschedulable"), "")


def test_kube_scheduler_asks_for_the_same(plane: ControlPlane) -> None:
    every = trials(plane)
    create_all(plane.api, NODES, (trial.node() for trial in every))
    pods = Watched(plane.api, PODS).start()
    try:
        start_stock_scheduler(plane)
        create_all(plane.api, PODS, (a_pod(trial.name, trial.shape) for trial in every))
        pods.wait(
            lambda found: len(found) == len(every) and all(map(verdict, found.values())),
            SETTLED_S,
            "kube-scheduler has looked at every pod",
        )
        got = {trial.name: verdict(pods[f"default/{trial.name}"]) for trial in every}
    finally:
        pods.stop()

    wrong = {trial.what: got[trial.name] for trial in every if trial.want not in got[trial.name]}
    assert wrong == {}
