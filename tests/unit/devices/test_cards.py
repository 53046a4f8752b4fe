"""What nodes register."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pumice.core import names
from pumice.core.api.core import Node
from pumice.core.devices.cards import DEFAULT_MODE, Make, Offer, offers_of, registered
from pumice.core.devices.mig import geometry_of
from tests.builders import a_cluster
from tests.devices import A100, a_gpu_node, a_vgpu_node


def test_vgpu_cards() -> None:
    node = a_vgpu_node("n", "GPU-1", f"GPU-2 memory=40960 slots=7 type={A100} mode=mig sick")

    [offer], faults = offers_of(node)

    assert faults == []
    assert offer == Offer(
        "vgpu",
        ("GPU-1", "GPU-2"),
        (
            Make(10, 24576, "NVIDIA-Generic", True, "hami-core"),
            Make(7, 40960, A100, False, "mig", geometry_of(A100)),
        ),
    )


def test_a_registration_of_five_fields_is_shared_by_hami_core() -> None:
    node = a_vgpu_node("n", "GPU-1")
    notes = node.metadata.annotations = {names.VGPU_REGISTER: "GPU-1,10,24576,NVIDIA-T4,true:"}

    [offer], _ = offers_of(node)

    assert notes
    assert offer.makes == (Make(10, 24576, "NVIDIA-T4", True, "hami-core"),)


HAMI = {
    "GPU-1,10,24576,100,NVIDIA-T4,1,true:": Make(10, 24576, "NVIDIA-T4", numa=1),
    "GPU-1,10,24576,100,NVIDIA-T4,0,false,3:": Make(10, 24576, "NVIDIA-T4", healthy=False, numa=0),
    "GPU-1,10,24576,100,NVIDIA-T4,1,true,3,mps:": Make(10, 24576, "NVIDIA-T4", mode="mps", numa=1),
}


@pytest.mark.parametrize(("text", "want"), HAMI.items())
def test_registrations_in_the_form_of_hami_tell_the_numa_node(text: str, want: Make) -> None:
    faults: list[str] = []

    offer = registered(text, faults)

    assert faults == []
    assert offer == Offer("vgpu", ("GPU-1",), (replace(want, mode=want.mode or DEFAULT_MODE),))


def test_a_node_without_the_resources_has_no_cards() -> None:
    assert offers_of(a_vgpu_node("n", "GPU-1", **{names.VGPU_CORES: "0"})) == ((), [])


def test_what_is_malformed_is_left_out_and_told() -> None:
    node = a_vgpu_node("n", "GPU-1", "GPU-2 type=Strange mode=mig")
    assert node.metadata.annotations is not None
    node.metadata.annotations[names.VGPU_REGISTER] += "GPU-3,many,1,T,true,mps:x:"

    cluster = a_cluster(node)

    assert cluster.faults == {
        "cards of node n": "card GPU-2: no MIG geometry is known of a Strange, it is not used; "
        "annotation volcano.sh/node-vgpu-register: 'GPU-3,many,1,T,true,mps' is not a card,"
        " left out; annotation volcano.sh/node-vgpu-register: 'x' is not a card, left out"
    }
    assert cluster.devices.nodes["n"].offers[0].uuids == ("GPU-1", "GPU-2")


def test_older_sharing_divides_the_memory_and_knows_sick_cards() -> None:
    [offer], _ = offers_of(a_gpu_node("n", 3, 20000, sick="1, 7"))

    assert offer.uuids == ("0", "1", "2")
    assert [(make.memory, make.healthy) for make in offer.makes] == [
        (6666, True),
        (6666, False),
        (6666, True),
    ]


def test_heartbeats_of_device_plugins_change_nothing() -> None:
    def beat(text: str) -> Node:
        node = a_vgpu_node("n", "GPU-1")
        assert node.metadata.annotations is not None
        node.metadata.annotations["volcano.sh/node-vgpu-handshake"] = text
        return node

    cluster = a_cluster(beat("Reported 1"))
    columns = cluster.nodes.columns

    cluster.set_node(beat("Reported 2"))

    assert cluster.nodes.columns is columns
