"""How long to wait before the next try: doubling, capped, and spread so that none collide."""

from __future__ import annotations

import random


class Backoff:
    """The waits of one series of failures; `reset` after a success."""

    def __init__(self, rng: random.Random, *, base_s: float, cap_s: float) -> None:
        self._rng = rng
        self._base_s = base_s
        self._cap_s = cap_s
        self._failures = 0

    def next_s(self) -> float:
        """Return the next wait: half of it certain, half by chance."""
        wait = wait_s(self._failures, base_s=self._base_s, cap_s=self._cap_s)
        self._failures += 1
        return wait * (0.5 + self._rng.random() / 2)

    def reset(self) -> None:
        """Begin again with the shortest wait."""
        self._failures = 0


def wait_s(failures: int, *, base_s: float, cap_s: float) -> float:
    """Return base * 2^failures, at most the cap."""
    # The exponent is bounded first: 2.0 ** 1024 overflows.
    return float(min(cap_s, base_s * 2.0 ** min(failures, 60)))
