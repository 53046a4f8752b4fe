"""
MIG: cards that are cut into instances of fixed sizes.

Which instances a card can have at the same time depends on its model: a geometry lists them, and a
model has several geometries, of which a card takes one while any of its instances is in use. An
instance is named by the group and its position among all instances of the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

GB: Final = 1024


@dataclass(frozen=True, slots=True)
class Profile:
    """So many instances of one size; the memory is in the unit of the registration."""

    name: str
    memory: int
    count: int


@dataclass(frozen=True, slots=True)
class Group:
    """One geometry: the instances that a card has at the same time."""

    name: str
    profiles: tuple[Profile, ...]

    def find(self, memory: int, taken: Sequence[int]) -> tuple[int, int] | None:
        """Return position and memory of the smallest free instance with that much memory."""
        best: tuple[int, int] | None = None
        first = 0
        for profile in self.profiles:
            if profile.memory >= memory and (best is None or profile.memory < best[1]):
                free = next((p for p in range(profile.count) if first + p not in taken), None)
                if free is not None:
                    best = (first + free, profile.memory)
            first += profile.count
        return best


Geometry = tuple[Group, ...]
Known = tuple[tuple[tuple[str, ...], Geometry], ...]
"""Models, of which any may stand in a card's type, and their geometries."""


def find_instance(
    geometry: Geometry, group: str, taken: Sequence[int], memory: int
) -> tuple[str, int, int] | None:
    """
    Return group, position and memory of an instance; None where the card has none to give.

    A card that is in use stays with its group; another one takes the first that has an instance.
    """
    for candidate in geometry:
        if group in ("", candidate.name):
            found = candidate.find(memory, taken)
            if found is not None:
                return (candidate.name, *found)
    return None


def _geometry(*groups: str) -> Geometry:
    """Return a geometry of texts such as `2g.10gb*3 1g.5gb*1`."""
    return tuple(
        Group(f"group{number}", tuple(_profile(word) for word in text.split()))
        for number, text in enumerate(groups, start=1)
    )


def _profile(word: str) -> Profile:
    name, count = word.split("*")
    size = int(name.split(".")[1].removesuffix("gb"))
    return Profile(name, size * GB, int(count))


KNOWN: Final[Known] = (
    (("A30",), _geometry("1g.6gb*4", "2g.12gb*2", "4g.24gb*1")),
    (
        ("A100-SXM4-40GB", "A100-40GB-PCIe", "A100-PCIE-40GB", "A100-SXM4-40G"),
        _geometry("1g.5gb*7", "2g.10gb*3 1g.5gb*1", "3g.20gb*2", "7g.40gb*1"),
    ),
    (
        ("A100-SXM4-80GB", "A100-80GB-PCIe", "A100-PCIE-80GB", "H100", "H800"),
        _geometry("1g.10gb*7", "2g.20gb*3 1g.10gb*1", "3g.40gb*2", "7g.79gb*1"),
    ),
    (
        ("H200", "H20-141GB"),
        _geometry("1g.18gb*7", "2g.35gb*3 1g.18gb*1", "3g.71gb*2", "7g.141gb*1"),
    ),
)


def geometry_of(card: str, known: Known = KNOWN) -> Geometry:
    """Return the geometry of a type of card; none where the model is not known."""
    for models, geometry in known:
        if any(model in card for model in models):
            return geometry
    return ()
