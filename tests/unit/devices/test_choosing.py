"""Which cards a pod gets of a node."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pumice.core.devices.asks import Ask, Step
from pumice.core.devices.cards import registered
from pumice.core.devices.choosing import NOTHING, Policy, Use, choose
from pumice.core.devices.notes import Choice
from tests.devices import A100, register

CUT = f"memory=40960 slots=7 type={A100} mode=mig"


@dataclass(frozen=True)
class Case:
    cards: list[str]
    ask: Ask
    #: names of the slices by place; None where there is no room
    want: list[list[str]] | None
    policy: Policy = ""
    held: dict[int, Use] = field(default_factory=dict)
    score: float | None = None
    hidden: int = 0


def vgpu(*steps: Step, **more: object) -> Ask:
    return Ask("vgpu", steps, max(s.place for s in steps) + 1, **more)  # type: ignore[arg-type]


QUARTER = vgpu(Step(0, 1, 6144))
HALF_USED = {1: Use(1, 12288)}

CASES = {
    "without a policy the last card": Case(["a", "b"], QUARTER, [["b"]], score=0),
    "binpack: the fullest that still has room": Case(
        ["a", "b", "c"], QUARTER, [["b"]], "binpack", {1: Use(1, 12288), 2: Use(1, 20000)}, score=75
    ),
    "binpack: the first among equals": Case(["a", "b"], QUARTER, [["a"]], "binpack", score=25),
    "spread: the least shared": Case(
        ["a", "b"], QUARTER, [["b"]], "spread", {0: Use(1, 100)}, score=100
    ),
    "spread: a shared card scores what of it is unshared": Case(
        ["a"], QUARTER, [["a"]], "spread", {0: Use(4, 100)}, score=60
    ),
    "no room in memory": Case(["a"], QUARTER, None, held={0: Use(1, 20000)}),
    "exactly the room that is left": Case(["a"], QUARTER, [["a"]], held={0: Use(1, 18432)}),
    "no slot left": Case(["a slots=2"], QUARTER, None, held={0: Use(2, 2)}),
    "compute is shared out, too": Case(
        ["a", "b"], vgpu(Step(0, 1, 1, cores=60)), [["a"]], held={1: Use(1, 1, 50)}
    ),
    "all compute wants a card of one's own": Case(
        ["a", "b"], vgpu(Step(0, 1, 1, cores=100)), [["a"]], held={1: Use(1, 1)}
    ),
    "and leaves none to those who ask for none": Case(
        ["a", "b"], vgpu(Step(0, 1, 1)), [["a"]], held={1: Use(1, 1, 100)}
    ),
    "a percentage is that of each card": Case(
        ["a memory=1000", "b memory=4000"],
        vgpu(Step(0, 2, percentage=50)),
        [["b", "a"]],
        held={0: Use(1, 500), 1: Use(1, 2000)},
    ),
    "and of one that is too full already": Case(
        ["a memory=1000", "b memory=4000"],
        vgpu(Step(0, 2, percentage=50)),
        None,
        held={1: Use(1, 2001)},
    ),
    "several cards are different ones": Case(["a"], vgpu(Step(0, 2, 10)), None),
    "containers may share a card": Case(
        ["a"], vgpu(Step(0, 1, 12288), Step(1, 1, 12288)), [["a"], ["a"]]
    ),
    "as long as it has room for both": Case(
        ["a"], vgpu(Step(0, 1, 12288), Step(1, 1, 12289)), None
    ),
    "an init container is gone when the app comes": Case(
        ["a"], vgpu(Step(0, 1, 20000, role="init"), Step(1, 1, 24576)), [["a"], ["a"]]
    ),
    "a sidecar is not": Case(
        ["a"], vgpu(Step(0, 1, 20000, role="sidecar"), Step(1, 1, 24576)), None
    ),
    "nor is it when an init container runs": Case(
        ["a"],
        vgpu(Step(0, 1, 20000, role="sidecar"), Step(1, 1, 5000, role="init"), Step(2, 1, 1)),
        None,
    ),
    "a sick card takes nobody": Case(["a sick"], QUARTER, None),
    "the mode that is asked for": Case(
        ["a mode=mps", "b"], vgpu(Step(0, 1, 1), mode="mps"), [["a"]]
    ),
    "a type": Case(["a type=NVIDIA-A30", "b"], vgpu(Step(0, 1, 1), use_types=("a30",)), [["a"]]),
    "not a type": Case(["a type=NVIDIA-A30"], vgpu(Step(0, 1, 1), avoid_types=("a30",)), None),
    "hidden cards": Case(["a", "b"], QUARTER, [["a"]], hidden=0b10),
    "the smallest instance that is large enough": Case(
        ["a " + CUT], vgpu(Step(0, 1, 5000)), [["a[group1-0]"]]
    ),
    "the first geometry that has one": Case(
        ["a " + CUT], vgpu(Step(0, 1, 9000)), [["a[group2-0]"]]
    ),
    "the geometry that the card has": Case(
        ["a " + CUT],
        vgpu(Step(0, 1, 5000)),
        [["a[group2-3]"]],
        held={0: Use(1, 10240, 0, "group2", (0,))},
    ),
    "another type of instance of the same geometry": Case(
        ["a " + CUT],
        vgpu(Step(0, 1, 9000)),
        [["a[group2-0]"]],
        held={0: Use(1, 5120, 0, "group2", (3,))},
    ),
    "no instance of another geometry": Case(
        ["a " + CUT], vgpu(Step(0, 1, 9000)), None, held={0: Use(1, 5120, 0, "group1", (0,))}
    ),
    "a place that became free": Case(
        ["a " + CUT],
        vgpu(Step(0, 1, 5000)),
        [["a[group1-1]"]],
        held={0: Use(2, 10240, 0, "group1", (0, 2))},
    ),
    "containers on instances each keep their own": Case(
        ["a " + CUT],
        vgpu(Step(0, 1, 5000, role="init"), Step(1, 1, 5000)),
        [["a[group1-1]"], ["a[group1-0]"]],
    ),
    "a whole card that is cut": Case(
        ["a " + CUT], vgpu(Step(0, 1, percentage=100)), [["a[group4-0]"]]
    ),
    "a card of which no geometry is known": Case(["a mode=mig"], QUARTER, None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_choice(case: Case) -> None:
    offer = registered(register(*case.cards), [])
    uses = tuple(case.held.get(i, NOTHING) for i in range(len(case.cards)))

    fit = choose(offer.makes, uses, case.ask, case.policy, case.hidden)

    if fit is None or case.want is None:
        assert fit is None
        assert case.want is None
        return
    choice = Choice.of(case.ask, offer, fit)
    assert [[part.name for part in place] for place in choice.places] == case.want
    assert case.score is None or fit.score == pytest.approx(case.score)
    # What the choice says that the pod holds is what is in use more than before.
    shares = choice.shares()
    for i, uuid in enumerate(offer.uuids):
        assert fit.after[i] == uses[i].plus(shares.get(uuid, NOTHING))
        assert fit.after[i].minus(shares.get(uuid, NOTHING)) == uses[i]
