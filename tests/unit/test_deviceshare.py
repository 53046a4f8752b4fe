"""deviceshare in sessions: who gets which cards of which node."""

from __future__ import annotations

from itertools import takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core import names
from pumice.core.api.core import Node, Pod
from pumice.core.api.scheduling import PodGroup
from pumice.core.conf import Configuration, ConfigurationError, parse
from pumice.core.cycle import run_session
from pumice.core.devices.asks import asks_of
from pumice.core.devices.choosing import choose
from pumice.core.devices.sharing import Sharing
from pumice.core.ids import PodUid
from pumice.core.plan import Plan
from pumice.core.room import lacking
from tests.builders import (
    a_cluster,
    a_conf,
    a_group,
    a_plan,
    a_plugin,
    a_priority_class,
    a_queue,
    a_session,
    placements,
    waits,
)
from tests.devices import A100, a_card_pod, a_container, a_gpu_node, a_vgpu_node, vgpu
from tests.effort import examples

Asks = dict[str, str]


def conf(
    actions: str = "enqueue allocate backfill",
    policy: str = "binpack",
    weight: int = 10,
    kind: str = "VGPUEnable",
    queues: str = "proportion",
    **more: object,
) -> Configuration:
    arguments = {
        f"deviceshare__{kind}": True,
        "deviceshare__SchedulePolicy": policy,
        "deviceshare__ScheduleWeight": weight,
        **more,
    }
    shared = a_plugin("deviceshare", **arguments)
    return a_conf(actions, ["priority", "gang", "conformance"], ["predicates", queues, shared])


def job(
    name: str,
    n: int,
    *asks: Asks,
    least: int | None = None,
    queue: str = "default",
    **facts: object,
) -> list[PodGroup | Pod]:
    """Return a gang of pods that ask alike."""
    group = a_group(name, least=n if least is None else least, queue=queue)
    pods = [
        a_card_pod(f"{name}-{i}", *asks, job=name, **facts)  # type: ignore[arg-type]
        for i in range(n)
    ]
    return [group, *pods]


def on(pod: Pod, node: str, *cards: str) -> Pod:
    """Return a pod as it runs on these cards of a node."""
    taken = pod.metadata.annotations or {}
    [ask] = asks_of(pod)
    ids = "".join(f"{card},NVIDIA,{ask.steps[0].memory},{ask.steps[0].cores}:" for card in cards)
    pod.metadata.annotations = {**taken, names.VGPU_NODE: node, names.VGPU_IDS: ids}
    pod.spec.node_name, pod.status.phase = node, "Running"
    return pod


def cards(plan: Plan) -> dict[str, str]:
    """Return the names of the slices that each pod gets, containers with `;` between."""
    return {
        p.uid: ";".join(",".join(part.name for part in place) for place in p.cards.places)
        for a in plan.allocations
        for p in a.placements
        if p.cards is not None
    }


def test_binpack_fills_a_card_then_a_node_then_the_next() -> None:
    nodes = [a_vgpu_node("n1", "a", "b"), a_vgpu_node("n2", "c")]

    plan = a_plan(conf(), *nodes, job("j", 5, vgpu(1, 12288)))

    assert cards(plan) == {"j-0": "a", "j-1": "a", "j-2": "b", "j-3": "b", "j-4": "c"}
    assert placements(plan) == {"j-0": "n1", "j-1": "n1", "j-2": "n1", "j-3": "n1", "j-4": "n2"}


def test_spread_goes_round_nodes_and_cards() -> None:
    nodes = [a_vgpu_node("n1", "a", "b"), a_vgpu_node("n2", "c", "d")]

    plan = a_plan(conf(policy="spread"), *nodes, job("j", 6, vgpu(1, 100)))

    assert [cards(plan)[f"j-{i}"] for i in range(6)] == ["a", "b", "c", "d", "a", "b"]


def test_a_gang_that_does_not_fit_on_the_cards_gets_nothing_and_says_why() -> None:
    nodes = [a_vgpu_node("n1", "a memory=16384", "b memory=16384")]
    running = [a_group("two", least=2, phase="Running")]
    running += [on(a_card_pod("two-0", vgpu(1, 12288), job="two"), "n1", "a")]  # type: ignore[list-item]
    running += [on(a_card_pod("two-1", vgpu(1, 12288), job="two"), "n1", "b")]  # type: ignore[list-item]

    plan = a_plan(conf(), *nodes, *running, job("j", 1, vgpu(1, 8192)))

    assert placements(plan) == {}
    assert "1 hami-vgpuDeviceSharing error: no cards with enough left" in waits(plan)["j"]


def test_memory_is_that_of_single_cards_not_of_the_node() -> None:
    asks = {names.GPU_MEMORY: "3000"}
    jobs = [job(f"s{i:02}", 1, asks) for i in range(16)]

    plan = a_plan(conf(kind="GPUSharingEnable"), a_gpu_node("g", 2, 46000), *jobs)

    assert sorted(cards(plan).values()) == ["0"] * 7 + ["1"] * 7


def test_cards_for_oneself() -> None:
    node = a_gpu_node("g", 4, 40000, sick="1")

    plan = a_plan(conf(kind="GPUNumberEnable"), node, job("j", 1, {names.GPU_NUMBER: "2"}))

    assert cards(plan) == {"j-0": "0,2"}


def test_containers_and_init_containers_of_one_pod() -> None:
    init = a_container(vgpu(1, 20000))
    nodes = [a_vgpu_node("n1", "a", "b")]
    pods = job("j", 1, vgpu(2, 12288), {}, vgpu(1, 12288), inits=(init,))

    plan = a_plan(conf(), *nodes, *pods)

    assert cards(plan) == {"j-0": "a;a,b;;a"}


def test_percentages_are_of_cards_of_unlike_size() -> None:
    nodes = [a_vgpu_node("n1", "a memory=10000", "b memory=40000")]

    plan = a_plan(conf(), *nodes, job("j", 2, vgpu(2, percentage=50)))

    [first, second] = [p.cards for a in plan.allocations for p in a.placements]
    assert first is not None
    assert [(part.card, part.memory) for part in first.places[0]] == [("a", 5000), ("b", 20000)]
    assert second is not None
    assert second.shares().keys() == {"a", "b"}


def test_instances_of_all_types_of_a_cut_card() -> None:
    nodes = [a_vgpu_node("n1", f"a memory=40960 slots=7 type={A100} mode=mig")]
    small, large = vgpu(1, 5000), vgpu(1, 10000)

    plan = a_plan(
        conf(), *nodes, job("large", 1, large), job("small", 1, small), job("x", 2, large)
    )

    assert cards(plan) == {
        "large-0": "a[group2-0]",
        "small-0": "a[group2-3]",
        "x-0": "a[group2-1]",
        "x-1": "a[group2-2]",
    }


def test_single_cards_may_be_named() -> None:
    nodes = [a_vgpu_node("n1", "a", "b"), a_vgpu_node("n2", "c", "d")]
    want = {names.USE_GPU_UUID: "b,d"}
    avoid = {names.AVOID_GPU_UUID: "a, b, c"}

    plan = a_plan(
        conf(),
        *nodes,
        job("j", 3, vgpu(1, 20000), least=1, annotations=want),
        job("k", 1, vgpu(1, 2000), annotations=avoid),
    )

    assert cards(plan) == {"j-0": "b", "j-1": "d", "k-0": "d"}


def test_pods_of_a_group_that_spread_share_no_card() -> None:
    nodes = [a_vgpu_node("n1", "a", "b")]
    spread = {names.VGPU_GROUP_POLICY: "spread"}

    plan = a_plan(
        conf(),
        *nodes,
        job("j", 3, vgpu(1, 100), least=2, annotations=spread),
        job("k", 1, vgpu(1, 100), annotations=spread),
    )

    assert cards(plan) == {"j-0": "a", "j-1": "b", "k-0": "a"}


def test_pods_that_match_one_rule_share_no_card() -> None:
    nodes = [a_vgpu_node("n1", "a", "b")]
    rules = [{"app": "training"}]
    held = on(a_card_pod("old", vgpu(1, 100), labels={"app": "training"}), "n1", "a")

    plan = a_plan(
        conf(deviceshare__GPUExclusiveRules=rules),
        *nodes,
        held,
        job("j", 2, vgpu(1, 100), least=1, labels={"app": "training"}),
        job("k", 1, vgpu(1, 100), labels={"app": "serving"}),
    )

    assert cards(plan) == {"j-0": "b", "k-0": "a"}


def test_a_sick_card_is_not_used_and_who_is_there_stays_counted() -> None:
    nodes = [a_vgpu_node("n1", "a sick", "b")]
    running = on(a_card_pod("r", vgpu(1, 100)), "n1", "a")

    plan = a_plan(conf(), *nodes, running, job("j", 2, vgpu(1, 20000), least=1))

    assert cards(plan) == {"j-0": "b"}


def test_without_the_plugin_they_are_amounts_like_others() -> None:
    plain = a_conf("enqueue allocate", ["priority", "gang"], ["predicates", "proportion"])

    plan = a_plan(plain, a_vgpu_node("n1", "a"), job("j", 1, vgpu(1, 100)))

    assert placements(plan) == {"j-0": "n1"}
    assert cards(plan) == {}


def test_a_percentage_counts_nowhere_but_on_cards() -> None:
    queue = a_queue("default", capability="100 100Gi")
    group = a_group("j", resources=f"1 1Gi {names.VGPU_MEMORY_PERCENTAGE}=30", phase="Pending")
    pod = a_card_pod("j-0", vgpu(1, percentage=30), job="j")

    plan = a_plan(conf(), a_vgpu_node("n1", "a"), queue, group, pod)

    assert [e.job for e in plan.enqueued] == ["ns/j"]
    assert cards(plan) == {"j-0": "a"}


@pytest.mark.parametrize("queues", ["proportion", "capacity"])
def test_queues_have_shares_of_shared_resources(queues: str) -> None:
    limit = f"100 100Gi {names.VGPU_MEMORY}=8000 {names.VGPU_NUMBER}=10"
    queue = a_queue("small", capability=limit)
    jobs = [job(f"j{i}", 1, vgpu(1, 4000), queue="small") for i in range(3)]

    plan = a_plan(conf(queues=queues), a_vgpu_node("n1", "a"), queue, *jobs)

    assert cards(plan) == {"j0-0": "a", "j1-0": "a"}


def test_the_shares_of_victims_are_given_back_and_no_more_go_than_must() -> None:
    low = [
        on(a_card_pod("low-0", vgpu(1, 12288), job="low", priority=1), "n1", "a"),
        on(a_card_pod("low-1", vgpu(1, 12288), job="low", priority=1), "n1", "a"),
        on(a_card_pod("low-2", vgpu(1, 20000), job="low", priority=1), "n1", "b"),
    ]
    group = a_group("urgent", least=1, priority="urgent")
    pod = a_card_pod("urgent-0", vgpu(1, 16000), job="urgent", priority=10)
    cluster = a_cluster(
        a_priority_class("urgent", 10),
        a_vgpu_node("n1", "a", "b"),
        a_group("low", least=0, phase="Running"),
        low,
        group,
        pod,
    )
    actions = conf("enqueue allocate preempt backfill")

    plan = run_session(cluster.snapshot(), actions, 0.0, "s1")

    [evicted] = plan.evictions
    victims = [v.uid for v in evicted.victims]
    assert victims == ["low-2"]

    # Once it is on its way out the room is the other one's, and nobody else goes.
    cluster.dismiss(PodUid("low-2"))
    cluster.promise(PodUid("urgent-0"), "n1")
    again = run_session(cluster.snapshot(), actions, 0.0, "s2")
    assert again.evictions == ()
    assert cards(again) == {}

    cluster.remove_pod(PodUid("low-2"))
    assert cards(run_session(cluster.snapshot(), actions, 0.0, "s3")) == {"urgent-0": "b"}


def test_what_leaves_a_card_is_nobodys_yet() -> None:
    leaving = on(a_card_pod("old", vgpu(1, 20000), deleting=True), "n1", "a")
    other = a_vgpu_node("n2", "b", cpu="0")

    plan = a_plan(
        conf(),
        a_vgpu_node("n1", "a", "z memory=10000"),
        other,
        leaving,
        job("j", 1, vgpu(1, 12000)),
    )

    assert cards(plan) == {}


def test_ways_of_sharing_that_exclude_each_other_are_refused() -> None:
    text = """
    actions: allocate
    tiers:
    - plugins:
      - name: deviceshare
        arguments: {deviceshare.GPUSharingEnable: true, deviceshare.VGPUEnable: true}
    """
    with pytest.raises(ConfigurationError, match="only one of them can be in force"):
        parse(text)


def test_what_is_not_served_is_said() -> None:
    ssn = a_session(conf(deviceshare__NodeLockEnable=True), a_cluster())

    assert ssn.findings.warnings == [
        "argument deviceshare.NodeLockEnable: no node is ever locked: "
        "a choice is written with the binding, ignored"
    ]


CARDS = st.sampled_from(
    ["memory=1000", "memory=4000 slots=3", f"memory=40960 slots=7 type={A100} mode=mig", "sick"]
)
ASKS = st.sampled_from(
    [
        (vgpu(1, 300),),
        (vgpu(1, percentage=25),),
        (vgpu(2, percentage=30, cores=40),),
        (vgpu(1, 600), vgpu(1, 300, cores=20)),
        (vgpu(1, cores=100),),
        (vgpu(1, 9000),),
    ]
)


@settings(max_examples=examples(150), deadline=None)
@given(
    fleet=st.lists(st.lists(CARDS, min_size=1, max_size=3), min_size=1, max_size=4),
    asks=st.lists(ASKS, min_size=1, max_size=3),
    n=st.integers(1, 12),
    policy=st.sampled_from(["binpack", "spread", ""]),
    weight=st.sampled_from([0, 1, 10]),
    apart=st.booleans(),
)
def test_placing_many_at_once_is_placing_one_after_the_other(
    fleet: list[list[str]],
    asks: list[tuple[Asks, ...]],
    n: int,
    policy: str,
    weight: int,
    apart: bool,
) -> None:
    nodes = [
        a_vgpu_node(f"n{i}", *(f"c{i}{k} {card}" for k, card in enumerate(row)))
        for i, row in enumerate(fleet)
    ]
    spread = {names.VGPU_GROUP_POLICY: "spread"} if apart else {}
    reference = Reference(nodes, policy, weight)
    gangs: list[list[PodGroup | Pod]] = []
    for k, asked in enumerate(asks):
        pods = [
            a_card_pod(f"j{k}-{i:02}", *asked, job=f"j{k}", annotations=spread) for i in range(n)
        ]
        placed = list(takewhile(reference.place, pods))
        if placed:
            gangs.append([a_group(f"j{k}", least=len(placed), created=2 * k), *placed])
        if len(placed) < n:
            beyond = a_card_pod(f"x{k}", *asked, job=f"x{k}", annotations=spread)
            if not apart:
                gangs.append([a_group(f"x{k}", created=2 * k + 1), beyond])

    plan = a_plan(conf(policy=policy, weight=weight), *nodes, *gangs)

    assert cards(plan) == reference.chosen


class Reference:
    """Places pod after pod, each on the best node, by the rules of one node."""

    def __init__(self, nodes: list[Node], policy: str, weight: int) -> None:
        self.cluster = a_cluster(nodes)
        self.cluster.devices.sharing = Sharing(frozenset({"vgpu"}), policy, weight)  # type: ignore[arg-type]
        self.chosen: dict[str, str] = {}

    def place(self, pod: Pod) -> bool:
        uid = PodUid(pod.metadata.uid)
        self.cluster.set_pod(pod)
        scores = {
            node: score
            for node in self.cluster.nodes.names
            if not lacking(self.cluster, uid, node) and (score := self.score(uid, node)) is not None
        }
        if not scores:
            return False
        best = max(scores, key=lambda node: scores[node])
        choice = self.cluster.choose_cards(uid, best)
        assert choice is not None
        self.cluster.assume(uid, best, choice)
        self.chosen[uid] = ";".join(",".join(s.name for s in place) for place in choice.places)
        return True

    def score(self, uid: PodUid, node: str) -> int | None:
        sharing, entry = self.cluster.devices.sharing, self.cluster.devices.nodes[node]
        task, ask, [offer] = self.cluster.task(uid), self.cluster.ask(uid), entry.offers
        assert task is not None
        assert ask is not None
        hidden = sharing.hidden(ask, offer, entry, task.job, ())
        fit = choose(offer.makes, entry.uses(offer), ask, sharing.policy, hidden)
        return None if fit is None else int(fit.score + 0.5) * sharing.weight
