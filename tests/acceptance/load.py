"""
Calls made over and over by several threads, and how each of them went.

A test does something to a component while they go on, and says afterwards whose calls may have
failed, when, and with which words.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Self

from pumice.local.watching import wait_for

TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """When a call began and ended, and what it raised; empty where it raised nothing."""

    began: float
    ended: float
    error: str = ""


class Load:
    """Each call is made by a thread of its own, without a pause; a context manager."""

    def __init__(self, calls: Mapping[str, Callable[[], object]]) -> None:
        self.outcomes: dict[str, list[Outcome]] = {name: [] for name in calls}
        self._changed = threading.Condition()
        self._ends = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=call, name=call[0]) for call in calls.items()
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def wait_for_more(self, count: int, names: Iterable[str] = ()) -> None:
        """Wait until each of the calls, or each of these, was begun and ended so often from now."""
        # What goes on now was begun before.
        wanted = {n: len(self.outcomes[n]) + 1 + count for n in names or self.outcomes}
        wait_for(
            self._changed,
            lambda: all(len(self.outcomes[name]) >= n for name, n in wanted.items()),
            TIMEOUT_S,
            f"{count} more calls of each",
        )

    def between(self, name: str, since: float, until: float = inf) -> list[Outcome]:
        """Return the calls that began and ended within a time, by `time.monotonic`."""
        return [o for o in self.outcomes[name] if o.began >= since and o.ended <= until]

    @property
    def failures(self) -> dict[str, set[str]]:
        """What calls raised, for those that did."""
        found = {name: {o.error for o in made if o.error} for name, made in self.outcomes.items()}
        return {name: errors for name, errors in found.items() if errors}

    def _repeat(self, name: str, call: Callable[[], object]) -> None:
        while not self._ends.is_set():
            began = monotonic()
            error = ""
            try:
                call()
            except Exception as raised:
                error = str(raised) or repr(raised)
            with self._changed:
                self.outcomes[name].append(Outcome(began, monotonic(), error))
                self._changed.notify_all()
