"""Geometries of MIG cards as a ConfigMap lists them."""

from __future__ import annotations

import pytest

from pumice.core import names
from pumice.core.devices.geometries import KEY, GeometryError, geometries_in
from pumice.core.devices.mig import KNOWN, Group, Profile, geometry_of
from pumice.core.devices.sharing import Sharing
from pumice.core.ids import PodUid
from tests.builders import a_cluster
from tests.devices import A100, a_card_pod, a_vgpu_node, vgpu

LISTED = """
nvidia:
  resourceCountName: volcano.sh/vgpu-number
  knownMigGeometries:
  - models: [NEW-96GB]
    allowedGeometries:
    - group: group1
      geometries:
      - {name: 1g.24gb, memory: 24576, count: 2}
      - {name: 2g.48gb, memory: 49152, count: 1}
"""
NEW = (Group("group1", (Profile("1g.24gb", 24576, 2), Profile("2g.48gb", 49152, 1))),)


def test_what_is_listed_takes_the_place_of_what_is_built_in() -> None:
    known = geometries_in({KEY: LISTED})

    assert geometry_of("NVIDIA-NEW-96GB", known) == NEW
    assert geometry_of(A100, known) == ()


@pytest.mark.parametrize("data", [None, {}, {KEY: ""}, {KEY: "nvidia: {}"}, {"other": LISTED}])
def test_without_a_list_the_one_holds_that_is_built_in(data: dict[str, str] | None) -> None:
    assert geometries_in(data) == KNOWN


MALFORMED = {
    "no YAML": ("nvidia: [", "device-config.yaml: while parsing"),
    "no mapping": ("[1]", "Expected `object`, got `array`"),
    "no instances": (LISTED.replace("count: 2", "count: 0"), r"knownMigGeometries\[0\]"),
    "no memory": (LISTED.replace("memory: 24576, ", ""), "missing required field `memory`"),
}


@pytest.mark.parametrize(("text", "why"), MALFORMED.values(), ids=MALFORMED.keys())
def test_what_cannot_be_used_is_told_with_its_place(text: str, why: str) -> None:
    with pytest.raises(GeometryError, match=why):
        geometries_in({KEY: text})


def test_cards_that_are_there_already_can_be_cut_from_then_on() -> None:
    cluster = a_cluster(a_vgpu_node("n", "c type=NVIDIA-NEW-96GB memory=98304 mode=mig", "d"))
    cluster.devices.sharing = Sharing(frozenset({"vgpu"}))
    uid, notes = PodUid("p"), {names.VGPU_MODE: "mig"}
    cluster.set_pod(a_card_pod(uid, vgpu(1, 30000), annotations=notes))
    assert cluster.choose_cards(uid, "n") is None
    unknown = dict(cluster.faults)

    cluster.set_device_config("kube-system/config", {KEY: LISTED})
    choice = cluster.choose_cards(uid, "n")
    assert choice is not None
    assert choice.places[0][0].name == "c[group1-2]"
    assert unknown.keys() == {"cards of node n"}
    assert cluster.faults == {}
    cluster.assume(uid, "n", choice)

    cluster.set_device_config("kube-system/config", {KEY: "nvidia: ["})
    assert list(cluster.faults) == ["configmap kube-system/config"]
    assert cluster.devices.nodes["n"].offers[0].makes[0].geometry == NEW, "the last good one"

    cluster.set_device_config("kube-system/config", None)
    assert cluster.faults == unknown
    assert cluster.check() == []
    cluster.set_node(a_vgpu_node("m", "e type=NVIDIA-NEW-96GB mode=mig"))
    assert cluster.devices.nodes["m"].offers[0].makes[0].geometry == ()
