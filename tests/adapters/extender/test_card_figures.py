"""What the metrics say of shared cards, and to whom of single pods."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from prometheus_client.core import Metric

from extender.card_figures import of_cards, of_pods
from pumice.core.devices.sharing import Sharing
from pumice.core.ids import PodUid
from tests.adapters.extender.bed import Bed
from tests.adapters.extender.pages import Pages
from tests.adapters.extender.test_cards import CONF, asking
from tests.adapters.extender.test_debug_readers import TLS
from tests.builders import a_cluster
from tests.devices import a_card_pod, a_gpu_node, a_vgpu_node, vgpu

Samples = dict[tuple[str, ...], float]


def samples(families: Iterable[Metric]) -> Samples:
    """Return the values by name and labels, without what all names begin with."""
    return {
        (s.name.removeprefix("volcano_vgpu_device_"), *s.labels.values()): s.value
        for family in families
        for s in family.samples
    }


def test_figures_are_of_the_cards_that_there_are_and_of_those_in_use() -> None:
    cluster = a_cluster(a_vgpu_node("n0", "a", "b memory=1000"), a_gpu_node("old", 2, 1000))
    cluster.devices.sharing = Sharing(frozenset({"vgpu"}))
    uid = PodUid("p")
    cluster.set_pod(a_card_pod(uid, vgpu(1, 2000, cores=30), vgpu(1, 3000)))
    cluster.assume(uid, "n0", cluster.choose_cards(uid, "n0"))
    cluster.set_node(a_vgpu_node("n0", "b memory=1000"))

    assert samples(of_cards(cluster.devices.nodes)) == {
        ("shared_number", "a", "n0"): 2,
        ("allocated_memory", "a", "n0"): 5000,
        ("allocated_cores", "a", "n0"): 30,
        ("memory_limit", "a", "n0"): 0,
        ("shared_number", "b", "n0"): 0,
        ("allocated_memory", "b", "n0"): 0,
        ("allocated_cores", "b", "n0"): 0,
        ("memory_limit", "b", "n0"): 1000,
    }
    assert samples(of_pods(cluster.devices.nodes, {uid: "ns/p"})) == {
        ("memory_allocation_for_a_certain_pod", "a", "n0", "ns/p"): 5000,
        ("core_allocation_for_a_certain_pod", "a", "n0", "ns/p"): 30,
    }


READERS = {
    "on loopback": ((), "", True),
    "elsewhere": (TLS, "", False),
    "elsewhere, with rights in one namespace": (TLS, "ann", False),
    "elsewhere, with rights everywhere": (TLS, "admin", True),
    "elsewhere, with a token that is none": (TLS, "nobody", False),
}


@pytest.mark.parametrize(("options", "who", "named"), READERS.values(), ids=READERS.keys())
async def test_single_pods_are_named_to_those_who_may_list_all(
    options: tuple[str, ...], who: str, named: bool, tmp_path: Path
) -> None:
    conf = tmp_path / "conf"
    conf.write_text(CONF)
    bed = Bed()
    bed.node(a_vgpu_node("n0", "a"))
    bed.gang("g", 1, **asking(6144))
    tokens = {
        "ann": bed.api.reviews.let("ann", "list pods", namespace="ns"),
        "admin": bed.api.reviews.let("admin", "list pods"),
    }
    async with bed.extender(f"--scheduler-conf={conf}", *options) as extender:
        await bed.until(lambda: bed.released() == ["g-0"])
        answer = await Pages(extender, tokens.get(who, who)).answer("/metrics")

    assert answer.status_code == 200
    lines = answer.text.splitlines()
    assert 'volcano_vgpu_device_allocated_memory{NodeName="n0",devID="a"} 6144.0' in lines
    assert "pumice_sessions_failed_total 0.0" in lines
    of_pod = '_for_a_certain_pod{NodeName="n0",devID="a",podName="ns/g-0"} '
    assert any(f"memory_allocation{of_pod}6144.0" in line for line in lines) is named
    assert ("podName" in answer.text) is named
