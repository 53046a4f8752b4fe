"""A choice as annotations, and back."""

from __future__ import annotations

import pytest

from pumice.core import names
from pumice.core.devices.asks import Ask, Step
from pumice.core.devices.cards import UNLIMITED
from pumice.core.devices.notes import Choice, Slice, choice_of, notes_of, order_of

TWO = Ask("vgpu", (Step(0, 2, 100, cores=30), Step(2, 1, 50)), places=3)
CHOICE = Choice(
    TWO,
    (
        (Slice("GPU-a", 100, 30), Slice("GPU-b", 100, 30)),
        (),
        (Slice("GPU-a", 5120, 0, "group1", 6),),
    ),
)


def test_vgpu_annotations() -> None:
    assert notes_of(CHOICE, "uid", "n1", 1000.7, 1003) == {
        "pumice.dev/device-allocation": "uid",
        "volcano.sh/vgpu-node": "n1",
        "volcano.sh/vgpu-time": "1003",
        "volcano.sh/vgpu-ids-new": (
            "GPU-a,NVIDIA,100,30:GPU-b,NVIDIA,100,30:;;GPU-a[group1-6],NVIDIA,5120,0:"
        ),
        "volcano.sh/devices-to-allocate": (
            "GPU-a,NVIDIA,100,30:GPU-b,NVIDIA,100,30:;;GPU-a[group1-6],NVIDIA,5120,0:"
        ),
        "volcano.sh/bind-phase": "allocating",
        "volcano.sh/bind-time": "1000",
    }


ORDERS = {
    "a choice": ("1003", 1003),
    "none": (None, 0),
    "no number": ("soon", 0),
    "a pod that has been served": ("18446744073709551615", 0),
}


@pytest.mark.parametrize(("time", "want"), ORDERS.values(), ids=ORDERS.keys())
def test_orders(time: str | None, want: int) -> None:
    assert order_of({} if time is None else {"volcano.sh/vgpu-time": time}) == want


def test_gpu_annotations() -> None:
    choice = Choice(Ask("number", (Step(0, 2),)), ((Slice("0", UNLIMITED), Slice("3", UNLIMITED)),))

    assert notes_of(choice, "uid", "n1", 1000.5, 1) == {
        "pumice.dev/device-allocation": "uid",
        "volcano.sh/gpu-index": "0,3",
        "volcano.sh/predicate-time": "1000500000000",
    }


MEMORY = Ask("memory", (Step(0, 1, 3000),))
ROUND_TRIPS = {
    "vgpu": CHOICE,
    "cards for oneself": Choice(
        Ask("number", (Step(0, 2),)), ((Slice("0", UNLIMITED), Slice("3", UNLIMITED)),)
    ),
    "memory of a card": Choice(MEMORY, ((Slice("1", 3000),),)),
}


@pytest.mark.parametrize("choice", ROUND_TRIPS.values(), ids=ROUND_TRIPS.keys())
def test_what_is_written_is_read_back(choice: Choice) -> None:
    notes = notes_of(choice, "uid", "n1", 1000.0, 1000)
    # A device plugin has handed the cards out.
    notes |= (
        {names.VGPU_TO_ALLOCATE: "", names.BIND_PHASE: "success"} if names.VGPU_IDS in notes else {}
    )

    assert choice_of(notes, "uid", "n1", (choice.ask,)) == choice


FOREIGN = {
    "copied from another pod": {names.ALLOCATION: "other"},
    "of another node": {names.VGPU_NODE: "n2"},
    "malformed": {names.VGPU_IDS: "GPU-a,NVIDIA,much,30:"},
    "cut short": {names.VGPU_IDS: "GPU-a:"},
    "none": {names.VGPU_IDS: ""},
}


@pytest.mark.parametrize("notes", FOREIGN.values(), ids=FOREIGN.keys())
def test_what_is_not_a_choice_of_this_pod(notes: dict[str, str]) -> None:
    written = notes_of(CHOICE, "uid", "n1", 1000.0, 1000) | notes

    assert choice_of(written, "uid", "n1", (TWO,)) is None


def test_a_choice_of_another_scheduler_counts_without_our_id() -> None:
    written = notes_of(CHOICE, "uid", "n1", 1000.0, 1000)
    del written[names.ALLOCATION]

    assert choice_of(written, "uid", "n1", (TWO,)) == CHOICE
