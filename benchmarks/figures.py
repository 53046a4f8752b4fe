"""A figure, its goal, and the table and file that figures end in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

Better = Literal["less", "more"]


class Figure(msgspec.Struct, frozen=True):
    """One measured value; `met` is null where there is no goal."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    better: Better = "less"
    met: bool | None = None

    @classmethod
    def of(
        cls,
        name: str,
        value: float,
        unit: str,
        goal: float | None = None,
        better: Better = "less",
    ) -> Figure:
        """Make a figure and judge it."""
        met = None
        if goal is not None:
            met = value <= goal if better == "less" else value >= goal
        return cls(name, round(value, 6), unit, goal, better, met)

    def line(self) -> str:
        """Return the figure's row in the table."""
        goal = ""
        if self.goal is not None:
            goal = f"{'≤' if self.better == 'less' else '≥'} {self.goal:g}"
        met = {None: "", True: "met", False: "missed"}[self.met]
        return f"{self.name:<64} {self.value:>12.4g} {self.unit:<10} {goal:>9} {met}"


def table(figures: Iterable[Figure]) -> str:
    """Return all figures as a table."""
    head = f"{'what':<64} {'value':>12} {'unit':<10} {'goal':>9}"
    return "\n".join([head, "-" * len(head), *(figure.line() for figure in figures)])


def write(figures: list[Figure], path: Path) -> None:
    """Write the figures for programs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=2))
