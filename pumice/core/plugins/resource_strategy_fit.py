"""
resource-strategy-fit: fill some resources up, spread others out, and spare what is scarce.

`resources` gives each resource, by name or as `prefix/*`, a type and a weight; pods may bring
their own by annotation. With the task there, r used of R offered, a node scores, over the
resources w that the task asks for,

    sum(w * part) / sum(w) * 100 * resourceStrategyFitWeight
    part = r / R of MostAllocated, 1 - r / R of LeastAllocated, 0 where nothing is offered

and nothing where r exceeds R. `sra` adds, where the node offers all that is asked for,

    (1 - sum(w of the scarce resources it offers) / sum(w of all scarce ones)) * 100 * sra.weight

`proportional` keeps cpu and memory free beside idle devices: a pod that asks for none of the
listed resources goes only where afterwards at least so many cpus, and so many gigabytes, are left
for each idle device as `resourceProportion` says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec
import numpy as np

from pumice.core import names
from pumice.core.conf import Arguments
from pumice.core.extension import Code, NodeOrder, Room
from pumice.core.model.nodes import NodeTable
from pumice.core.model.tasks import TaskClass
from pumice.core.resources import CPU, MEMORY, Floats, Ints
from pumice.core.session import Session

NAME = "resource-strategy-fit"
MAX_SCORE: Final = 100.0
_DEFAULT_WEIGHT: Final = 10
_PATTERN: Final = re.compile(r"[^*]+/\*|[^*]+")
#: bytes for each thousandth of a device, at a rate of one
_GIGABYTE_MILLI: Final = 1e6


@dataclass(frozen=True, slots=True)
class Strategy:
    """How one resource counts."""

    fills: bool = False
    weight: float = 1.0

    @classmethod
    def parse(cls, args: Arguments) -> Strategy:
        """Read a strategy; another type counts as LeastAllocated, a weight below 1 as 1."""
        weight = args.integer("weight", 1)
        return cls(args.text("type") == "MostAllocated", weight if weight > 0 else 1)


@dataclass(frozen=True)
class Strategies:
    """The strategies by name and by prefix."""

    by_name: Mapping[str, Strategy]

    @classmethod
    def parse(cls, args: Arguments) -> Strategies:
        """Read the argument `resources`."""
        section = args.section("resources")
        found = {}
        for name in section.raw:
            if _PATTERN.fullmatch(name):
                found[name] = Strategy.parse(section.section(name))
            else:
                args.faults[name] = f"argument resources: {name!r} is no name and no prefix/*"
        return cls(found or {"cpu": Strategy(), "memory": Strategy()})

    @cached_property
    def prefixes(self) -> Sequence[tuple[str, Strategy]]:
        """Return the prefixes, the longest first."""
        found = [(n[:-1], s) for n, s in self.by_name.items() if n.endswith("/*")]
        return sorted(found, key=lambda row: -len(row[0]))

    def of(self, name: str) -> Strategy | None:
        """Return the strategy of a resource, None where it has none."""
        exact = self.by_name.get(name)
        if exact is not None:
            return exact
        return next((s for prefix, s in self.prefixes if name.startswith(prefix)), None)


@dataclass(frozen=True, slots=True)
class Scarce:
    """The scarce resources by row with their weights, and what sparing them counts."""

    weights: Mapping[int, float]
    weight: float

    @classmethod
    def parse(cls, args: Arguments, rows: Mapping[str, int]) -> Scarce:
        """Read the argument `sra`; nothing is scarce unless it is enabled."""
        if not args.boolean("enable", False):
            return cls({}, 0.0)
        own = args.section("resourceWeight")
        weights = {n: float(own.integer(n, 1)) for n in args.names("resources")}
        named = {rows[name]: weight for name, weight in weights.items() if name in rows}
        # A resource that nothing has or asks for is spared by all nodes alike.
        missing = {-1 - i: w for i, (n, w) in enumerate(weights.items()) if n not in rows}
        return cls(named | missing, float(args.integer("weight", 1)))

    def score(self, cls: TaskClass, alloc: Floats) -> Floats:
        """Return what nodes score by what they offer: (n,)."""
        whole = sum(self.weights.values())
        if not whole:
            return np.zeros(alloc.shape[1])
        held = sum((w * (alloc[r] > 0) for r, w in self.weights.items() if r >= 0), np.zeros(1))
        able = (alloc[list(cls.rows)] > 0).all(axis=0)
        return np.where(able, (1.0 - held / whole) * MAX_SCORE * self.weight, 0.0)


@dataclass(frozen=True, slots=True)
class Proportion:
    """How much must stay free beside each idle device: by row, rates of cpu and memory."""

    rates: Mapping[int, tuple[float, float]]

    def copies(self, nodes: NodeTable, cls: TaskClass, at: Ints) -> Floats:
        """Return how many tasks each node takes; no limit for those that ask for a device."""
        limit = np.full(at.size, np.inf)
        if any(row in self.rates for row in cls.rows):
            return limit
        idle = nodes.alloc[:, at] - nodes.used[:, at]
        for row, rates in self.rates.items():
            for other, rate in zip((CPU, MEMORY), rates, strict=True):
                unit = _GIGABYTE_MILLI if other == MEMORY else 1.0
                spare = idle[other] - idle[row] * rate * unit
                asked = float(cls.req[other]) if other < cls.req.size else 0.0
                room = np.floor(spare / asked) if asked else np.where(spare >= 0, np.inf, 0.0)
                limit = np.minimum(limit, np.maximum(room, 0.0))
        return limit


class ResourceStrategyFit:
    """The plugin."""

    name = NAME
    steady = True

    def __init__(self, args: Arguments) -> None:
        weight = args.integer("resourceStrategyFitWeight", _DEFAULT_WEIGHT)
        self.weight = weight if weight >= 0 else _DEFAULT_WEIGHT
        self.strategies = Strategies.parse(args)
        self.sra = args.section("sra")
        self.proportional = args.section("proportional")

    def on_session_open(self, ssn: Session) -> None:
        """Register the score, and the limit where it is enabled."""
        rows = {name: row for row, name in enumerate(ssn.names)}
        scarce = Scarce.parse(self.sra, rows)
        known: dict[TaskClass, Mapping[int, Strategy]] = {}

        def order(cls: TaskClass, at: Ints, alloc: Floats, used: Floats) -> Floats:
            if cls not in known:
                known[cls] = self._asked(cls, ssn.names)
            charged = used - ssn.nodes.pipelined[:, at, None]
            fit = score(known[cls], alloc, charged) * self.weight
            total: Floats = fit + scarce.score(cls, alloc[:, :, 0])[:, None]
            return total

        ssn.points.node_order[NAME] = NodeOrder(order)
        if self.proportional.boolean("enable", False):
            self._keep_free(ssn, rows)

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""

    def _asked(self, cls: TaskClass, resources: Sequence[str]) -> Mapping[int, Strategy]:
        """Return the strategies of what the class asks for, its own where it brings some."""
        traits = cls.signature.traits
        strategies = self.strategies
        if names.STRATEGY_TYPE in traits and names.STRATEGY_WEIGHT in traits:
            fills = traits[names.STRATEGY_TYPE] == "MostAllocated"
            weights = _weights(traits[names.STRATEGY_WEIGHT])
            strategies = Strategies({name: Strategy(fills, w) for name, w in weights.items()})
        found = ((row, strategies.of(resources[row])) for row in cls.rows)
        return {row: strategy for row, strategy in found if strategy is not None}

    def _keep_free(self, ssn: Session, rows: Mapping[str, int]) -> None:
        """Register the limit of `proportional`."""
        listed = self.proportional.names("resources")
        rates = self.proportional.section("resourceProportion")
        found = {
            rows[name]: (rates.number(f"{name}.cpu", 1.0), rates.number(f"{name}.memory", 1.0))
            for name in listed
            if name in rows
        }
        message = f"proportional of resource {', '.join(listed)} check failed"
        limit = Proportion(found)

        def copies(cls: TaskClass, at: Ints) -> Floats:
            return limit.copies(ssn.nodes, cls, at)

        ssn.points.room[NAME] = Room(Code.UNRESOLVABLE, message, copies)


def score(strategies: Mapping[int, Strategy], alloc: Floats, used: Floats) -> Floats:
    """Return 0..100 for nodes by their resources in rows; `used` already holds the task."""
    total = np.zeros(used.shape[1:])
    over = np.zeros(used.shape[1:], bool)
    for row, strategy in strategies.items():
        offered = alloc[row] > 0
        over |= (used[row] > alloc[row]) & offered
        part = used[row] / np.where(offered, alloc[row], np.inf)
        part = part if strategy.fills else 1.0 - part
        total += np.where(offered, part * strategy.weight, 0.0)
    if whole := sum(strategy.weight for strategy in strategies.values()):
        total /= whole
    total[over] = 0.0
    return total * MAX_SCORE


def _weights(text: str) -> dict[str, int]:
    """Read the weights that a pod brings; what is malformed counts as none."""
    try:
        return msgspec.json.decode(text, type=dict[str, int])
    except msgspec.DecodeError:
        return {}
