"""The table of devices: whatever happens, it is what nodes and pods say."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core import names
from pumice.core.api.core import Node, Pod
from pumice.core.cluster import Cluster
from pumice.core.devices.choosing import Use
from pumice.core.devices.notes import Choice, notes_of
from pumice.core.devices.sharing import Sharing
from pumice.core.ids import PodUid
from tests.builders import a_cluster
from tests.devices import A100, a_card_pod, a_container, a_vgpu_node, vgpu
from tests.effort import examples

CUT = f"memory=40960 slots=7 type={A100} mode=mig"
NODES = {
    "n1": [
        a_vgpu_node("n1", "a", "b memory=8000 slots=3"),
        a_vgpu_node("n1", "a memory=6000"),
        a_vgpu_node("n1", "b sick", "a"),
    ],
    "n2": [a_vgpu_node("n2", f"c {CUT}"), a_vgpu_node("n2", f"c {CUT}", f"d {CUT}")],
}
ASKS = [
    (vgpu(1, 6144),),
    (vgpu(2, percentage=40, cores=30),),
    (vgpu(1, 4000), vgpu(1, 9000)),
    (vgpu(1, cores=100),),
]
Op = tuple[str, int, int]
OPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["plan", "plan", "plan", "release", "bind", "bind", "end", "delete", "leave", "node"]
        ),
        st.integers(0, 7),
        st.integers(0, 2),
    ),
    max_size=40,
)


@dataclass
class World:
    """The API objects, and a cluster that hears of each change."""

    cluster: Cluster = field(default_factory=a_cluster)
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[PodUid, Pod] = field(default_factory=dict)
    chosen: dict[PodUid, tuple[str, Choice]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cluster.devices.sharing = Sharing(frozenset({"vgpu"}), "binpack")
        for versions in NODES.values():
            self.show(versions[0])

    def show(self, node: Node) -> None:
        self.nodes[node.metadata.name] = node
        self.cluster.set_node(node)

    def plan(self, number: int, which: int) -> None:
        uid, node = PodUid(f"p{number}"), sorted(NODES)[which % 2]
        if uid not in self.pods:
            inits = (a_container(vgpu(1, 2000)),) if number == 5 else ()
            self.pods[uid] = a_card_pod(uid, *ASKS[number % len(ASKS)], inits=inits)
            self.cluster.set_pod(self.pods[uid])
        pod = self.pods[uid]
        if uid in self.chosen or pod.spec.node_name or pod.status.phase == "Failed":
            return
        choice = self.cluster.choose_cards(uid, node)
        if choice is not None:
            assert self.cluster.has_cards(uid, node, choice)
            self.chosen[uid] = (node, choice)
            self.cluster.assume(uid, node, choice)
            assert self.cluster.has_cards(uid, node, choice)
            self.fits(node, choice)

    def fits(self, node: str, choice: Choice) -> None:
        """Look that nothing is oversold of the cards that were just chosen."""
        entry = self.cluster.devices.nodes[node]
        for uuid, make in zip(entry.offers[0].uuids, entry.offers[0].makes, strict=True):
            if uuid in choice.shares():
                use = entry.used["vgpu", uuid]
                assert use.slots <= make.slots
                assert use.memory <= make.memory
                assert use.cores <= 100
                assert len(set(use.taken)) == len(use.taken)

    def release(self, number: int, which: int) -> None:
        uid = PodUid(f"p{number}")
        if self.chosen.pop(uid, None):
            self.cluster.forget(uid)

    def bind(self, number: int, which: int) -> None:
        uid = PodUid(f"p{number}")
        if uid in self.chosen:
            node, choice = self.chosen.pop(uid)
            self.change(uid, node=node, notes=notes_of(choice, uid, node, 1.0, 1))

    def end(self, number: int, which: int) -> None:
        if (uid := PodUid(f"p{number}")) in self.pods:
            self.chosen.pop(uid, None)
            self.change(uid, phase="Failed")

    def leave(self, number: int, which: int) -> None:
        uid = PodUid(f"p{number}")
        if uid in self.pods and self.pods[uid].spec.node_name:
            self.change(uid, deleting=True)

    def delete(self, number: int, which: int) -> None:
        uid = PodUid(f"p{number}")
        if self.pods.pop(uid, None):
            self.chosen.pop(uid, None)
            self.cluster.remove_pod(uid)

    def node(self, number: int, which: int) -> None:
        name = sorted(NODES)[number % 2]
        versions = NODES[name]
        if which < len(versions):
            self.show(versions[which])
        elif self.nodes.pop(name, None):
            self.cluster.remove_node(name)

    def change(
        self,
        uid: PodUid,
        *,
        node: str = "",
        notes: dict[str, str] | None = None,
        phase: str = "",
        deleting: bool = False,
    ) -> None:
        old = self.pods[uid]
        meta = old.metadata
        pod = a_card_pod(
            uid,
            *ASKS[int(uid[1:]) % len(ASKS)],
            inits=tuple(old.spec.init_containers or ()),
            node=node or old.spec.node_name,
            annotations={**(meta.annotations or {}), **(notes or {})},
            phase=phase or (old.status.phase if old.status.phase == "Failed" else ""),
            deleting=deleting or bool(meta.deletion_timestamp),
        )
        self.pods[uid] = pod
        self.cluster.set_pod(pod)

    def rebuilt(self) -> Cluster:
        """Return what a process would know that has just been started, and planned the same."""
        fresh = a_cluster(self.nodes.values(), self.pods.values())
        for uid, (node, choice) in self.chosen.items():
            fresh.assume(uid, node, choice)
        return fresh


@settings(max_examples=examples(200), deadline=None)
@given(ops=OPS)
def test_the_table_is_always_what_one_made_anew_would_be(ops: list[Op]) -> None:
    world = World()
    snapshot = world.cluster.snapshot()
    before = {name: (dict(n.holders), dict(n.used)) for name, n in snapshot.devices.items()}
    for op, number, which in ops:
        getattr(world, op)(number, which)

        assert world.cluster.check() == []
        fresh = world.rebuilt()
        assert dict(world.cluster.devices.nodes) == dict(fresh.devices.nodes)
    after = {name: (dict(n.holders), dict(n.used)) for name, n in snapshot.devices.items()}
    assert after == before, "a snapshot that was taken does not change"


def a_world() -> World:
    world = World()
    world.plan(0, 0)
    return world


def test_a_card_that_falls_ill_keeps_who_is_there_and_takes_nobody() -> None:
    world = a_world()
    world.bind(0, 0)

    world.show(a_vgpu_node("n1", "a sick"))

    assert world.cluster.devices.nodes["n1"].used == {("vgpu", "a"): Use(1, 6144)}
    world.plan(4, 0)
    assert PodUid("p4") not in world.chosen


def test_a_card_that_vanished_is_held_still_when_it_comes_back() -> None:
    world = a_world()
    world.bind(0, 0)
    world.show(a_vgpu_node("n1", "z"))
    world.plan(4, 0)
    assert world.chosen[PodUid("p4")][1].places[0][0].card == "z"

    world.show(a_vgpu_node("n1", "a memory=12000", "z memory=6144"))

    world.plan(8, 0)
    assert PodUid("p8") not in world.chosen, "6,144 of 12,000 are held, and all of z"


@pytest.mark.parametrize("taken_by", ["bound", "planned"])
def test_a_choice_does_not_hold_where_a_card_was_taken_meanwhile(taken_by: str) -> None:
    world = World()
    world.cluster.set_pod(a_card_pod("late", vgpu(1, 20000)))
    choice = world.cluster.choose_cards(PodUid("late"), "n1")
    assert choice is not None

    world.plan(0, 0)
    if taken_by == "bound":
        world.bind(0, 0)

    assert not world.cluster.has_cards(PodUid("late"), "n1", choice)


def test_a_pod_that_somebody_bound_without_a_choice_holds_no_card() -> None:
    world = World()
    world.cluster.set_pod(a_card_pod("p", vgpu(1, 20000), node="n1"))

    assert world.cluster.devices.nodes["n1"].used == {}


def test_spreading_is_asked_about_single_pods_too() -> None:
    world = World()
    notes = {names.VGPU_GROUP_POLICY: "spread"}
    for i in range(3):
        world.cluster.set_pod(
            a_card_pod(f"s{i}", vgpu(1, 100), job="gang", annotations=notes, labels={"i": str(i)})
        )
    cards = []
    for uid in (PodUid("s0"), PodUid("s1")):
        choice = world.cluster.choose_cards(uid, "n1")
        assert choice is not None
        cards.append(choice.places[0][0].card)
        world.cluster.assume(uid, "n1", choice)

    assert sorted(cards) == ["a", "b"]
    assert world.cluster.choose_cards(PodUid("s2"), "n1") is None
