"""An allowance: so many at once, and after that so many a second."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Allowance:
    """What is not taken is saved up, but never more than `at_once`; times are monotonic."""

    at_once: float
    a_second: float
    _at: float
    _saved: float = field(init=False)

    def __post_init__(self) -> None:
        self._saved = self.at_once

    def left(self, now: float) -> bool:
        """Tell whether one may be taken."""
        self._saved = min(self._saved + (now - self._at) * self.a_second, self.at_once)
        self._at = now
        return self._saved >= 1

    def take(self, now: float) -> bool:
        """Take one, if it may be taken; return whether it was."""
        if not self.left(now):
            return False
        self._saved -= 1
        return True
