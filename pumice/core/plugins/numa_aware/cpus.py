"""The cpus of one node, and how the kubelet's static policy hands them out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from pumice.core.api.numatopology import CpuInfo

Cpus = frozenset[int]
Unit = Callable[[CpuInfo], tuple[int, ...]]
"""Which socket, or which core, a cpu belongs to."""
NOTHING: Cpus = frozenset()


@dataclass(frozen=True, slots=True)
class Hint:
    """NUMA nodes that would do; preferred if they are as few as could ever do."""

    nodes: tuple[int, ...]
    preferred: bool


@dataclass(frozen=True)
class Layout:
    """Where each cpu is."""

    cpus: Mapping[int, CpuInfo]

    @cached_property
    def by_node(self) -> Mapping[int, Cpus]:
        """Return the cpus of each NUMA node."""
        found: dict[int, set[int]] = defaultdict(set)
        for cpu, info in self.cpus.items():
            found[info.numa].add(cpu)
        return {node: frozenset(cpus) for node, cpus in sorted(found.items())}

    def on(self, nodes: Iterable[int]) -> Cpus:
        """Return the cpus of some NUMA nodes."""
        return NOTHING.union(*(self.by_node[node] for node in nodes))

    def spanned(self, cpus: Iterable[int]) -> int:
        """Return over how many NUMA nodes these cpus lie."""
        return len({self.cpus[cpu].numa for cpu in cpus})

    def hints(self, number: int, free: Cpus) -> list[Hint]:
        """Return the sets of NUMA nodes with so many free cpus, the smallest sets first."""
        ids = list(self.by_node)
        masks = [m for size in range(1, len(ids) + 1) for m in combinations(ids, size)]
        able = (len(mask) for mask in masks if len(self.on(mask)) >= number)
        fewest = min(able, default=0)
        return [
            Hint(mask, len(mask) == fewest) for mask in masks if len(self.on(mask) & free) >= number
        ]

    def take(self, number: int, free: Cpus) -> Cpus:
        """
        Choose so many of the free cpus: whole sockets, then whole cores, then single ones.

        Of the single ones those go first whose socket, and whose core, have least left.
        """
        taken: set[int] = set()
        for unit in (_socket, _core):
            for group in self._whole(unit, free - taken):
                if len(group) <= number - len(taken):
                    taken |= group
        left = free - taken
        sockets, cores = (self._counts(unit, left) for unit in (_socket, _core))
        rest = sorted(
            left,
            key=lambda c: (sockets[_socket(self.cpus[c])], cores[_core(self.cpus[c])], c),
        )
        return frozenset(taken | set(rest[: number - len(taken)]))

    def _whole(self, unit: Unit, free: Collection[int]) -> list[set[int]]:
        """Return the sockets, or cores, of which everything is free, by number."""
        held: dict[tuple[int, ...], set[int]] = defaultdict(set)
        for cpu, info in self.cpus.items():
            held[unit(info)].add(cpu)
        return [cpus for _, cpus in sorted(held.items()) if cpus.issubset(free)]

    def _counts(self, unit: Unit, cpus: Iterable[int]) -> dict[tuple[int, ...], int]:
        counts: dict[tuple[int, ...], int] = defaultdict(int)
        for cpu in cpus:
            counts[unit(self.cpus[cpu])] += 1
        return counts

    def assign(self, policy: str, number: int, free: Cpus) -> Cpus | None:
        """Return the cpus that a container would get under a policy; None if it is refused."""
        if len(free) < number:
            return None
        hint = admit(policy, self.hints(number, free))
        if hint is None:
            return None
        aligned = self.on(hint.nodes) & free if hint.nodes else free
        first = self.take(min(number, len(aligned)), aligned)
        return first | self.take(number - len(first), free - first)


def admit(policy: str, hints: Sequence[Hint]) -> Hint | None:
    """Return the hint to follow under a topology policy; one without nodes leaves it open."""
    best = min(hints, key=lambda h: (not h.preferred, len(h.nodes)), default=Hint((), False))
    match policy:
        case "best-effort":
            return best
        case "restricted":
            return best if best.preferred else None
        case "single-numa-node":
            return best if best.preferred and len(best.nodes) == 1 else None
        case _:
            return Hint((), True)


def _socket(cpu: CpuInfo) -> tuple[int, ...]:
    return (cpu.socket,)


def _core(cpu: CpuInfo) -> tuple[int, ...]:
    return (cpu.socket, cpu.core)


def parse_cpus(text: str) -> Cpus:
    """Read a set such as `0,2-4`; raise ValueError where it is none."""
    found: set[int] = set()
    for part in filter(None, (p.strip() for p in text.split(","))):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return frozenset(found)
