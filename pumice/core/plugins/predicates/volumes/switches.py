"""The arguments about volumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pumice.core.conf import Arguments

FULL: Final = 100
MAX_POINT: Final = 10
SHAPE: Final = "volumebinding.shape"
Shape = tuple[tuple[int, int], ...]
"""Points (percentage in use, score up to 100), percentages ascending."""

TIGHTEST: Final[Shape] = ((0, 0), (FULL, FULL))


@dataclass(frozen=True, slots=True)
class VolumeSwitches:
    """Which filters are on, and how much the score counts."""

    binding: bool
    zones: bool
    limits: bool
    weight: int
    shape: Shape

    @classmethod
    def parse(cls, args: Arguments) -> VolumeSwitches:
        """Read the arguments; every filter is on unless it is switched off."""
        return cls(
            binding=args.boolean("predicate.VolumeBindingEnable", True),
            zones=args.boolean("predicate.VolumeZoneEnable", True),
            limits=args.boolean("predicate.NodeVolumeLimitsEnable", True),
            weight=args.integer("volumebinding.weight", 1),
            shape=parse_shape(args),
        )


def parse_shape(args: Arguments) -> Shape:
    """Read the points, `[{utilization: 0, score: 0}, ...]`; what is none counts as absent."""
    raw = args.raw.get(SHAPE)
    if raw is None:
        return TIGHTEST
    points = tuple(map(_point, raw)) if isinstance(raw, list) and raw else (None,)
    found = tuple(point for point in points if point is not None)
    rises = all(a[0] < b[0] for a, b in pairwise(found))
    if len(found) < len(points) or not rises:
        wanted = "points with a rising utilization of 0 to 100 and a score of 0 to 10"
        args.faults[SHAPE] = f"argument {SHAPE}: {raw!r} is not {wanted}, ignored"
        return TIGHTEST
    return found


def _point(raw: object) -> tuple[int, int] | None:
    if not isinstance(raw, Mapping):
        return None
    at, score = _within(raw.get("utilization"), FULL), _within(raw.get("score"), MAX_POINT)
    if at is None or score is None:
        return None
    return at, score * (FULL // MAX_POINT)


def _within(raw: object, most: int) -> int | None:
    if isinstance(raw, bool) or not isinstance(raw, int):
        return None
    return raw if 0 <= raw <= most else None
