"""A gang that is bound to a tier of HyperNodes is in one of them, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pumice.local.nodes import NODES, a_node, create_all
from tests.acceptance.bed import Bed
from tests.acceptance.objects import Object, a_job

pytestmark = pytest.mark.cluster

RACK = "example.com/rack"
RACKS = ("red", "green", "blue")
SPARE = "spare"
COLLECTION = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
ANNOTATION = "volcano.sh/job-allocated-hypernode"
PATIENCE_S = 20.0
STAYS_S = 2.0


@pytest.fixture
def racks(bed: Bed) -> Iterator[None]:
    """Make racks of two nodes of 4 cpu, chosen by label, under one spine."""
    add_rack(bed, *RACKS)
    leaves = [{"type": "HyperNode", "selector": {"exactMatch": {"name": r}}} for r in RACKS]
    bed.create(a_hypernode("spine", 2, "spine", *leaves))
    yield
    for name in (*RACKS, SPARE, "spine"):
        bed.api.delete(f"{COLLECTION}/{name}")


def add_rack(bed: Bed, *names: str) -> None:
    made = (a_node(f"{r}-{i}", cpu=4, labels={RACK: r}) for r in names for i in "ab")
    create_all(bed.api, NODES, made)
    for name in names:
        selector = {"labelMatch": {"matchLabels": {RACK: name}}}
        bed.create(a_hypernode(name, 1, "rack", {"type": "Node", "selector": selector}))


def a_hypernode(name: str, tier: int, tier_name: str, *members: Object) -> Object:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "tierName": tier_name, "members": list(members)},
    }


def a_gang(name: str) -> Object:
    """Return a Job whose four pods fill a rack."""
    job = a_job(name, replicas=4, min_available=4, cpu=2)
    job["spec"]["networkTopology"] = {"mode": "hard", "highestTierName": "rack"}
    return job


def racks_of(bed: Bed, job: str) -> list[str]:
    """Return the racks of a Job's pods that run, each of them once for each pod."""
    return [pod["spec"]["nodeName"].rpartition("-")[0] for pod in bed.running(job)]


def uids(bed: Bed, job: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in bed.running(job)}


def hypernode(bed: Bed, job: str) -> str:
    """Return the HyperNode that a Job's PodGroup names."""
    notes: dict[str, str] = (bed.pod_group(job) or {"metadata": {}})["metadata"].get(
        "annotations", {}
    )
    return notes.get(ANNOTATION, "")


def condition(bed: Bed, job: str) -> str:
    conditions = (bed.pod_group(job) or {}).get("status", {}).get("conditions", [])
    return " ".join(c["message"] for c in conditions if c["type"] == "Unschedulable")


async def test_gangs_stay_within_a_rack(bed: Bed, racks: None) -> None:
    async with bed.auditor() as auditor:
        # One pod in each rack but one leaves room for half a gang there, for a whole one in sum.
        bed.create(*(a_job(f"small-{r}", cpu=1, nodeSelector={RACK: r}) for r in RACKS[:2]))
        await bed.until(
            lambda: all(bed.running(f"small-{r}") for r in RACKS[:2]), PATIENCE_S, "they run"
        )
        bed.create(a_gang("first"))
        await bed.until(lambda: racks_of(bed, "first") == ["blue"] * 4, PATIENCE_S, "it is in blue")
        await bed.until(lambda: hypernode(bed, "first") == "blue", PATIENCE_S, "its group says so")

        bed.create(a_gang("second"))
        await bed.until(
            lambda: "one HyperNode of tier rack or below" in condition(bed, "second"),
            PATIENCE_S,
            "it is told why the second waits",
        )
        assert all(name in condition(bed, "second") for name in RACKS)
        await bed.never(lambda: bed.bound("second"), STAYS_S, "a gang is spread over racks")

        bed.end(*bed.running("small-green"))
        await bed.until(lambda: racks_of(bed, "second") == ["green"] * 4, PATIENCE_S, "it starts")

        # A lost member comes back to its rack, though another one is empty, and after a restart.
        add_rack(bed, SPARE)
        await bed.aside(bed.kill, "extender")
        await auditor.killed()
        pod = bed.running("second")[0]
        lost = pod["metadata"]["uid"]
        bed.delete(pod, grace_s=0)
        await bed.aside(bed.restart, "extender")
        await bed.until(
            lambda: racks_of(bed, "second") == ["green"] * 4 and lost not in uids(bed, "second"),
            PATIENCE_S,
            "the lost member is back in its rack",
        )
        await auditor.finish()
