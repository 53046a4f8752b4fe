"""deviceshare: types and uuids, instances of cut cards, spreading, scores, exclusive rules."""

from __future__ import annotations

import pytest

from pumice.core import names
from pumice.core.devices.asks import Ask, Step, words
from pumice.core.devices.cards import registered
from pumice.core.devices.choosing import Policy, Use, choose
from pumice.core.devices.mig import Geometry, Group, Profile, find_instance
from pumice.core.devices.sharing import Sharing
from pumice.core.ids import PodUid
from tests.builders import a_cluster
from tests.devices import a_card_pod, a_vgpu_node, register, vgpu

TYPES = [
    ("NVIDIA", "", "NVIDIA", True),
    ("nvidia", "", "NVIDIA", True),
    ("AMD,INTEL,MLU", "", "NVIDIA", False),
    ("", "NVIDIA", "NVIDIA", False),
    ("", "AMD,INTEL", "NVIDIA", True),
    ("", "", "NVIDIA", True),
]


@pytest.mark.parametrize(("use", "avoid", "card", "want"), TYPES)
def test_types(use: str, avoid: str, card: str, want: bool) -> None:
    ask = Ask("vgpu", (), use_types=words(use.lower()), avoid_types=words(avoid.lower()))
    assert ask.takes_type(card) is want


UUIDS = [
    (" , ", "", "GPU-0", True),
    ("GPU-0, GPU-1", "", "GPU-1", True),
    ("GPU-10", "", "GPU-1", False),
    ("GPU-0,", "", "", False),
    ("GPU-1", "GPU-1", "GPU-1", False),
]


@pytest.mark.parametrize(("use", "avoid", "card", "want"), UUIDS)
def test_uuids(use: str, avoid: str, card: str, want: bool) -> None:
    ask = Ask("vgpu", (), use_uuids=words(use), avoid_uuids=words(avoid))
    assert ask.takes_uuid(card) is want


INSTANCES = {
    "the first geometry that has one large enough": (
        (
            Group("group1", (Profile("1g.10gb", 10, 1),)),
            Group("group2", (Profile("2g.20gb", 24, 1),)),
        ),
        "",
        ("group2", 0, 24),
    ),
    "a type of instance of which none is in use": (
        (Group("default", (Profile("2g.20gb", 20, 1),)),),
        "default",
        ("default", 0, 20),
    ),
}


@pytest.mark.parametrize(("geometry", "group", "want"), INSTANCES.values(), ids=INSTANCES.keys())
def test_instances(geometry: Geometry, group: str, want: tuple[str, int, int]) -> None:
    assert find_instance(geometry, group, (), 20) == want


SPREADING = {
    "one group": (2, ("job-1", "job-1"), (True, True), "other card"),
    "two groups": (1, ("job-1", "job-2"), (True, True), "same card"),
    "one group, one card": (1, ("job-1", "job-1"), (True, True), "no fit"),
    "the second one does not care": (2, ("job-1", "job-1"), (True, False), "any card"),
}


@pytest.mark.parametrize(
    ("cards", "groups", "spread", "want"), SPREADING.values(), ids=SPREADING.keys()
)
def test_spreading(
    cards: int, groups: tuple[str, str], spread: tuple[bool, bool], want: str
) -> None:
    node = a_vgpu_node("n", *(f"c{i} memory=16384 slots=4" for i in range(cards)))
    cluster = a_cluster(node)
    cluster.devices.sharing = Sharing(frozenset({"vgpu"}))
    got = []
    for i, group in enumerate(groups):
        notes = {names.VGPU_GROUP_POLICY: "spread"} if spread[i] else {}
        uid = PodUid(f"p{i}")
        cluster.set_pod(a_card_pod(uid, vgpu(1, 4096, cores=25), job=group, annotations=notes))
        choice = cluster.choose_cards(uid, "n")
        got.append(choice and choice.places[0][0].card)
        if choice is not None:
            cluster.assume(uid, "n", choice)
    first, second = got
    assert first is not None
    found = {
        "no fit": second is None,
        "same card": second == first,
        "other card": second not in (None, first),
        "any card": second is not None,
    }
    assert found[want]


SCORES: list[tuple[Policy, Use, float]] = [
    ("binpack", Use(1, 3000), 13.33),
    ("spread", Use(), 100),
]


@pytest.mark.parametrize(("policy", "used", "want"), SCORES)
def test_scores(policy: Policy, used: Use, want: float) -> None:
    offer = registered(register("c memory=30000"), [])

    fit = choose(offer.makes, (used,), Ask("vgpu", (Step(0, 1, 1000),)), policy)

    assert fit is not None
    assert fit.score == pytest.approx(want, abs=0.05)


def test_compute_alone_takes_whole_cards_of_any_size() -> None:
    sizes = ("c0 memory=30000", "c1 memory=20000", "c2 memory=30000")
    cluster = a_cluster(a_vgpu_node("n", *sizes))
    cluster.devices.sharing = Sharing(frozenset({"vgpu"}))
    cluster.set_pod(a_card_pod("p", vgpu(3, cores=100)))

    assert cluster.choose_cards(PodUid("p"), "n") is not None


RULES = ({"app": "training", "team": "ml"}, {"workload": "inference"})
EXCLUDED = [
    ({"app": "training", "team": "ml"}, {0}),
    ({"app": "serving"}, set()),
    ({"app": "training", "team": "ml", "workload": "inference"}, {0, 1}),
    ({"app": "training"}, set()),
]


@pytest.mark.parametrize(("labels", "want"), EXCLUDED)
def test_exclusive_rules(labels: dict[str, str], want: set[int]) -> None:
    sharing = Sharing(frozenset({"vgpu"}), rules=RULES)
    cluster = a_cluster(a_vgpu_node("n", "c0", "c1", "c2", "c3"))
    cluster.devices.sharing = sharing
    for card, held in enumerate(RULES):
        uid, named = PodUid(f"held{card}"), {names.USE_GPU_UUID: f"c{card}"}
        cluster.set_pod(a_card_pod(uid, vgpu(1, 1), labels=held, annotations=named))
        cluster.assume(uid, "n", cluster.choose_cards(uid, "n"))
    entry = cluster.devices.nodes["n"]

    ask, matched = Ask("vgpu", (Step(0, 1, 1),)), sharing.matching(labels)
    hidden = sharing.hidden(ask, entry.offers[0], entry, None, matched)

    assert {i for i in range(4) if hidden >> i & 1} == want
