"""T12: gangs of which members have claims; nothing of them starts over for a slow binder."""

from __future__ import annotations

import pytest

from tests.acceptance.bed import Bed
from tests.acceptance.claims import Volumes, binder_away, devices_on, volumes_on
from tests.acceptance.conftest import LAYOUTS as BOTH
from tests.acceptance.figures import extender_metric
from tests.acceptance.length import FULL, Length, chosen_length
from tests.acceptance.objects import Object, a_job, a_task
from tests.acceptance.pages import Pages
from tests.acceptance.parked import behind_proxy
from tests.acceptance.timeline import lives

pytestmark = pytest.mark.cluster
LAYOUTS = BOTH if chosen_length().name == FULL.name else None

SIZE = 4
PATIENCE_S = 20.0
AGAIN_S = 40.0
"""How soon a pod is there whose call found nobody, back-off included."""


def a_gang(volumes: Volumes) -> Object:
    """Return a Job of four, one of which has the claim."""
    store = a_task("store", volumes=[volumes.mount()], cpu=1)
    return a_job("gang", store, a_task("worker", SIZE - 1, cpu=1), min_available=SIZE)


async def runs(bed: Bed, within_s: float = PATIENCE_S) -> None:
    """See the gang run, with the pods that it was made with."""
    await bed.until(lambda: len(bed.running("gang")) == SIZE, within_s, "the gang runs")
    assert len(lives(bed, "gang")) == SIZE, "a pod was replaced"


def store_of(bed: Bed) -> Object:
    """Return the member that has the claim."""
    [store] = [pod for pod in bed.pods_of("gang") if "store" in pod["metadata"]["name"]]
    return store


def nominated(bed: Bed) -> set[str]:
    """Return the nodes that the member with the claim was ever nominated to."""
    shown = [seen.object for seen in bed.pods.history if "store" in seen.object["metadata"]["name"]]
    mine = [pod for pod in shown if pod["metadata"]["namespace"] == bed.namespace]
    return {node for pod in mine if (node := pod["status"].get("nominatedNodeName"))}


async def test_a_gang_waits_for_a_local_volume_that_is_bound_slowly(
    bed: Bed, length: Length
) -> None:
    nodes = bed.nodes(6, cpu=2)
    with volumes_on(bed, nodes[4:]) as volumes:
        async with bed.auditor() as auditor:
            with binder_away(bed):
                bed.create(a_gang(volumes))
                await bed.until(volumes.kept, PATIENCE_S, "kube-scheduler takes a volume")
                bed.create(a_job("other", replicas=2, min_available=2, cpu=1))
                await bed.never(
                    lambda: bed.bound("gang"), length.volume_s, "a member is bound without the rest"
                )
                assert len(bed.running("other")) == 2, "others are held up"
            await runs(bed)
            await auditor.finish()

        assert extender_metric(bed, "pumice_bind_errors") == 0
        assert volumes.is_bound()
        [volume] = volumes.kept()
        assert volume["metadata"]["name"] == volumes.of(store_of(bed)["spec"]["nodeName"])
        assert nominated(bed) <= set(nodes[4:])
    store, *workers = sorted(lives(bed, "gang"), key=lambda life: life.released)
    assert "store" in store.name
    assert min(worker.released for worker in workers) >= store.released + length.volume_s


async def test_a_gang_waits_for_a_volume_that_is_made_slowly(bed: Bed, length: Length) -> None:
    bed.nodes(SIZE // 2, cpu=2)
    with volumes_on(bed, provisioner="example.com/slow") as volumes:
        async with bed.auditor() as auditor:
            bed.create(a_gang(volumes))
            await bed.until(volumes.selected, PATIENCE_S, "a node is chosen for the volume")
            await bed.never(
                lambda: bed.bound("gang"), length.volume_s, "a member is bound without the rest"
            )
            volumes.make(volumes.selected(), claimed=True)
            await runs(bed)
            await auditor.finish()

        assert extender_metric(bed, "pumice_bind_errors") == 0
        assert store_of(bed)["spec"]["nodeName"] == volumes.selected()


async def test_the_rest_is_planned_around_a_node_that_was_not_foreseen(bed: Bed) -> None:
    """The volume on the planned node goes; the other one is where another member is to go."""
    nodes = bed.nodes(SIZE, cpu=1)
    gate = rf"/namespaces/{bed.namespace}/pods/gang-store-0$"
    with volumes_on(bed, nodes[2:]) as volumes:
        async with behind_proxy(bed) as proxy, bed.auditor() as auditor:
            with proxy.hold(method="PATCH", path=gate, body=lambda b: b"Gates" in b) as hold:
                bed.create(a_gang(volumes))
                await bed.until(lambda: nominated(bed), PATIENCE_S, "a node is planned")
                await hold.arrived.wait()
                [planned] = nominated(bed)
                entries = await Pages(bed).entries()
                [other] = set(nodes[2:]) - {planned}
                assert other in {entry.node for entry in entries.values()}
                await bed.aside(volumes.remove, planned)
            await runs(bed)
            await auditor.finish()
        assert store_of(bed)["spec"]["nodeName"] == other
        assert extender_metric(bed, "pumice_bind_errors") == 0


async def test_members_that_share_a_volume_follow_the_first_of_them(bed: Bed) -> None:
    nodes = bed.nodes(6, cpu=SIZE)
    with volumes_on(bed, nodes[4:]) as volumes:
        gang = a_job("gang", replicas=SIZE, min_available=SIZE, cpu=1)
        gang["spec"]["volumes"] = [{"mountPath": "/data", "volumeClaimName": volumes.name}]
        async with bed.auditor() as auditor:
            bed.create(gang)
            await runs(bed)
            await auditor.finish()

        [volume] = volumes.kept()
        [node] = {pod["spec"]["nodeName"] for pod in bed.running("gang")}
        assert volume["metadata"]["name"] == volumes.of(node)
        assert extender_metric(bed, "pumice_bind_errors") == 0


async def test_a_kill_while_the_volume_is_being_bound_loses_nothing(bed: Bed) -> None:
    nodes = bed.nodes(6, cpu=2)
    with volumes_on(bed, nodes[4:]) as volumes:
        async with bed.auditor() as auditor:
            with binder_away(bed):
                bed.create(a_gang(volumes))
                await bed.until(volumes.kept, PATIENCE_S, "kube-scheduler takes a volume")
                bed.kill("extender")
                await auditor.killed()
                await bed.aside(bed.restart, "extender")
            await runs(bed, AGAIN_S)
            await auditor.finish()
        [volume] = volumes.kept()
        assert volume["metadata"]["name"] == volumes.of(store_of(bed)["spec"]["nodeName"])


async def test_a_gang_whose_devices_the_engine_does_not_know_goes_where_they_are(bed: Bed) -> None:
    nodes = bed.nodes(6, cpu=2, prefix="card-")
    with devices_on(bed, nodes[2:]) as claims:
        async with bed.auditor() as auditor:
            bed.create(
                a_job("gang", replicas=SIZE, min_available=SIZE, cpu=1, resourceClaims=claims)
            )
            await runs(bed, AGAIN_S)
            await auditor.finish()
        assert {pod["spec"]["nodeName"] for pod in bed.running("gang")} == set(nodes[2:])
