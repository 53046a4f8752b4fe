"""How the answers of plugins become one answer, and in which order they are asked."""

from __future__ import annotations

import pytest

from pumice.core.extension import Point, Victims, Vote
from pumice.core.ids import PodUid
from pumice.core.model.tasks import Task
from pumice.core.voting import accepted, first_tier, union_of_first, victims
from tests.builders import a_cluster, a_plugin, a_pod

CLUSTER = a_cluster([a_pod(uid, node="n") for uid in "abc"])


def some(uids: str) -> list[Task]:
    found = (CLUSTER.task(PodUid(uid)) for uid in uids)
    return [task for task in found if task is not None]


def offers(text: str) -> Victims:
    """Return a plugin's answer: uids that it offers, or `-` where it abstains."""
    return ([], Vote.ABSTAIN) if text == "-" else (some(text), Vote.PERMIT)


VICTIMS = {
    "nobody has a say": ([], ""),
    "one plugin offers": ([["ab"]], "ab"),
    "plugins of a tier must agree": ([["ab", "bc"]], "b"),
    "the first plugin's order stands": ([["ba", "ab"]], "ba"),
    "a plugin that abstains is passed over": ([["-", "a"]], "a"),
    "a tier that all abstain from says nothing": ([["-"], ["a"]], "a"),
    "the first tier that offers anybody decides": ([["a"], ["ab"]], "a"),
    "who offers nobody ends its tier": ([["", "a"], ["b"]], "b"),
    "who offers nobody undoes what was agreed": ([["a", ""], ["b"]], "b"),
    "an empty agreement starts anew with the next plugin": ([["ab", "c", "bc"]], "bc"),
    "an empty agreement at the end leaves it to the next tier": ([["ab", "c"], ["a"]], "a"),
}


@pytest.mark.parametrize(("tiers", "want"), VICTIMS.values(), ids=VICTIMS.keys())
def test_victims(tiers: list[list[str]], want: str) -> None:
    assert "".join(task.uid for task in victims(tiers, offers).victims) == want


P, A, R = Vote.PERMIT, Vote.ABSTAIN, Vote.REJECT
ACCEPTED = {
    "nobody has a say": ([], True),
    "all abstain": ([[A, A], [A]], True),
    "one permits": ([[A, P]], True),
    "one rejects": ([[P, R]], False),
    "a rejection below a permission is not heard": ([[P], [R]], True),
    "a rejection below abstentions is": ([[A], [R]], False),
    "a permission below a rejection does not help": ([[R], [P]], False),
}


@pytest.mark.parametrize(("tiers", "want"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(tiers: list[list[Vote]], want: bool) -> None:
    assert accepted(tiers, lambda vote: vote) is want


STARVING = {
    "nobody has a say": ([], False),
    "all of the first tier say so": ([[True, True], [False]], True),
    "one of the first tier does not": ([[True, False], [True]], False),
    "an empty tier is passed over": ([[], [True]], True),
}


@pytest.mark.parametrize(("tiers", "want"), STARVING.values(), ids=STARVING.keys())
def test_the_first_tier_decides(tiers: list[list[bool]], want: bool) -> None:
    assert first_tier(tiers, lambda answer: answer) is want


UNIONS = {
    "plugins of a tier add up": ([["ab", "bc"]], "abc"),
    "the first tier with anybody wins": ([["", ""], ["b"], ["c"]], "b"),
    "nobody": ([[""], []], ""),
}


@pytest.mark.parametrize(("tiers", "want"), UNIONS.values(), ids=UNIONS.keys())
def test_union_of_the_first_tier(tiers: list[list[str]], want: str) -> None:
    assert "".join(task.uid for task in union_of_first(tiers, some).victims) == want


def test_functions_are_asked_in_the_order_of_the_tiers() -> None:
    point: Point[str] = Point("enableJobOrder", "enableTaskOrder")
    for name in ("late", "early", "off", "absent", "half"):
        point[name] = name
    both = ("enableJobOrder", "enableTaskOrder")
    point.arrange(
        [
            [a_plugin("unknown", *both), a_plugin("early", *both)],
            [a_plugin("off", "enableJobReady")],
            [a_plugin("half", "enableTaskOrder"), a_plugin("late", *both)],
        ]
    )
    assert (point.tiers, point.all) == ((("early",), ("half", "late")), ("early", "half", "late"))
    assert (bool(point), list(point)) == (True, ["early", "half", "late"])


def test_points_without_a_flag_are_always_on() -> None:
    point: Point[str] = Point()
    point["p"] = "p"
    point.arrange([[a_plugin("p", "enableJobReady")]])
    assert point.all == ("p",)
