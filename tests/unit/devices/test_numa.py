"""Cards of one NUMA node, for pods that ask for several."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.devices.asks import Ask, Role, Step
from pumice.core.devices.cards import NO_NUMA, Offer, registered
from pumice.core.devices.choosing import NOTHING, Policy, Use, Uses, admits, choose
from pumice.core.devices.notes import Choice
from tests.devices import register
from tests.effort import examples

MEMORY = 24576
FULL = Use(1, MEMORY)


@dataclass(frozen=True)
class Case:
    """The cards are named by NUMA node and number: `0b` is the second one of node 0."""

    cards: str
    ask: Ask
    #: the cards of each container; None where there is no room
    want: list[str] | None
    policy: Policy = ""
    held: dict[str, Use] = field(default_factory=dict)
    hidden: str = ""


def vgpu(*steps: Step) -> Ask:
    return Ask("vgpu", steps, max(s.place for s in steps) + 1)


def whole(number: int, place: int = 0, role: Role = "app") -> Step:
    return Step(place, number, percentage=100, role=role)


TWO = "0a 0b 0c 0d 1e 1f 1g 1h"
QUARTERS = vgpu(Step(0, 2, MEMORY // 4))
TWO_QUARTERS = vgpu(Step(0, 1, MEMORY // 4), Step(1, 1, MEMORY // 4))

CASES = {
    "two cards come from the NUMA node where fewer will do": Case(
        TWO, vgpu(whole(2)), ["1g 1f"], held={"1h": FULL}
    ),
    "whichever node comes first": Case(TWO, vgpu(whole(2)), ["0d 0c"], held={"0a": FULL}),
    "but one that has enough": Case(
        TWO, vgpu(whole(3)), ["0d 0c 0b"], held={"1f": FULL, "1h": FULL}
    ),
    "among equal nodes that of the card that is tried first": Case(TWO, vgpu(whole(2)), ["1h 1g"]),
    "which is the fullest by binpack": Case(
        TWO, QUARTERS, ["1f 1e"], "binpack", {"1f": Use(1, 100)}
    ),
    "and the least shared by spread": Case(
        TWO, QUARTERS, ["0b 0c"], "spread", {"0a": Use(1, 1), "1e": Use(2, 2)}
    ),
    "NUMA nodes go before binpack": Case(
        TWO,
        QUARTERS,
        ["1e 1f"],
        "binpack",
        {"0a": Use(1, 12288), "0b": Use(1, 12288), "1h": FULL},
    ),
    "and before spread": Case(
        TWO, QUARTERS, ["1g 1e"], "spread", {"1e": Use(1, 1), "1f": Use(2, 2), "1h": FULL}
    ),
    "one card is none of this": Case(
        TWO, vgpu(Step(0, 1, 1)), ["0a"], "binpack", {"0a": Use(1, 1), "1h": FULL}
    ),
    "more cards than a node has are of as few nodes as can be": Case(
        "0a 1b 1c 2d 2e 2f", vgpu(whole(5)), ["2f 2e 2d 1c 1b"]
    ),
    "the rest of the node where fewer will do": Case(
        "0a 1b 1c 2d 2e 2f", vgpu(whole(4)), ["2f 2e 2d 0a"]
    ),
    "all containers of a pod are at one node": Case(
        TWO, vgpu(whole(2), whole(2, 1)), ["0d 0c", "0b 0a"], held={"1h": FULL}
    ),
    "also those that ask for one card each": Case(
        "0a 0b 1c 1d", TWO_QUARTERS, ["0b", "0b"], held={"1d": FULL, "1c": Use(9, 0)}
    ),
    "else each container is at one": Case(
        TWO, vgpu(whole(3), whole(2, 1)), ["1g 1f 1e", "0d 0c"], held={"1h": FULL}
    ),
    "init containers are where the apps are": Case(
        TWO,
        vgpu(whole(1, role="init"), whole(4, 1)),
        ["0d", "0d 0c 0b 0a"],
        held={"1h": FULL},
    ),
    "what fits only across nodes fits": Case(
        "0a 0b 1c 1d", vgpu(whole(2)), ["1d 0b"], held={"0a": FULL, "1c": FULL}
    ),
    "what does not fit does not": Case("0a 1b", vgpu(whole(3)), None),
    "hidden cards do not count": Case(TWO, vgpu(whole(2)), ["0d 0c"], hidden="0a"),
    "nor do sick ones": Case("0a 0b 0c 1d 1e 1f-sick", vgpu(whole(2)), ["1e 1d"]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_choice(case: Case) -> None:
    cards = case.cards.split()
    offer = registered(register(*(a_card(card) for card in cards)), [])
    uses = tuple(case.held.get(card, NOTHING) for card in cards)
    hidden = sum(1 << cards.index(card) for card in case.hidden.split())

    fit = choose(offer.makes, uses, case.ask, case.policy, hidden)

    if fit is None or case.want is None:
        assert fit is None
        assert case.want is None
        return
    assert [" ".join(cards[p.card] for p in picks) for picks in fit.picks] == case.want


def a_card(text: str) -> str:
    name, _, health = text.partition("-")
    return f"{name} numa={name[0]} {health}"


@dataclass(frozen=True)
class World:
    offer: Offer
    uses: Uses
    ask: Ask
    policy: Policy
    hidden: int


@st.composite
def worlds(draw: st.DrawFn) -> World:
    numas = draw(st.lists(st.sampled_from(["", "0", "1", "2"]), min_size=1, max_size=7))
    cards = [
        f"c{i} memory={draw(st.sampled_from([4, 8]))} slots=3" + (f" numa={numa}" if numa else "")
        for i, numa in enumerate(numas)
    ]
    uses = [
        draw(st.sampled_from([NOTHING, NOTHING, Use(1, 2), Use(2, 4, 50), Use(3, 3)]))
        for _ in numas
    ]
    steps = [
        Step(
            i,
            draw(st.integers(1, 3)),
            memory=draw(st.sampled_from([1, 2, 4, 8])),
            cores=draw(st.sampled_from([0, 0, 30, 100])),
            role=draw(st.sampled_from(["app", "app", "sidecar", "init"])),
        )
        for i in range(draw(st.integers(1, 3)))
    ]
    policy: Policy = draw(st.sampled_from(["", "binpack", "spread"]))
    hidden = draw(st.integers(0, (1 << len(numas)) - 1)) & draw(st.sampled_from([0, -1]))
    return World(registered(register(*cards), []), tuple(uses), vgpu(*steps), policy, hidden)


@settings(max_examples=examples(900), deadline=None)
@given(world=worlds())
def test_what_one_numa_node_can_hold_is_at_one_and_never_more_than_there_is(world: World) -> None:
    makes, uses, ask = world.offer.makes, world.uses, world.ask
    numas = {make.numa for make in makes}
    outside = {n: sum(1 << i for i, m in enumerate(makes) if m.numa != n) for n in numas}

    fit = choose(makes, uses, ask, world.policy, world.hidden)

    alone = [n for n in numas if choose(makes, uses, ask, world.policy, world.hidden | outside[n])]
    if fit is None:
        assert not alone
        return
    for step, picks in zip(ask.steps, fit.picks, strict=True):
        assert len({pick.card for pick in picks}) == step.number
    assert not fit.cards & world.hidden
    if alone and sum(step.number for step in ask.steps) > 1:
        assert len({makes[p.card].numa for picks in fit.picks for p in picks}) == 1
    for uuid, share in Choice.of(ask, world.offer, fit).shares().items():
        i = world.offer.uuids.index(uuid)
        assert admits(makes[i], uses[i], share, "vgpu")


@settings(max_examples=examples(300), deadline=None)
@given(world=worlds())
def test_cards_at_one_numa_node_are_chosen_as_those_of_which_nothing_is_known(
    world: World,
) -> None:
    plain, same = ([replace(m, numa=numa) for m in world.offer.makes] for numa in (NO_NUMA, 1))

    chosen = [
        choose(makes, world.uses, world.ask, world.policy, world.hidden) for makes in (plain, same)
    ]

    assert chosen[0] == chosen[1]
    here = choose(world.offer.makes, world.uses, world.ask, world.policy, world.hidden)
    assert here is not None or chosen[0] is None, "topology alone refused it"
