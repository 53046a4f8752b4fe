"""
The outcome of a run: violations, notes and figures, as JSON and in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tests.auditor.facts import Violation
from tests.auditor.history import History, Settings
from tests.auditor.rules import judge
from tests.auditor.statistics import Statistics, statistics

SHOWN = 20


@dataclass(frozen=True, slots=True)
class Report:
    """What the auditor has to say, and how much it saw."""

    started: float = 0.0
    ended: float = 0.0
    rules: str = ""
    violations: list[Violation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    statistics: Statistics = field(default_factory=Statistics)

    @property
    def sentences(self) -> list[str]:
        """The violations in words, each with the letter of its rule."""
        return [f"({v.rule}) {v.sentence}" for v in self.violations]

    def of(self, rule: str) -> list[Violation]:
        """Return the violations of one rule."""
        return [v for v in self.violations if v.rule == rule]

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1))

    @classmethod
    def read(cls, path: Path) -> Report:
        """Read what `write` wrote."""
        return msgspec.json.decode(path.read_bytes(), type=cls)


def report(history: History, settings: Settings, notes: list[str]) -> Report:
    """Judge a history and count in it."""
    return Report(
        started=history.started,
        ended=history.ended,
        rules=settings.rules,
        violations=judge(history, settings),
        notes=notes,
        seen={
            "pod sightings": len(history.pods),
            "node sightings": len(history.nodes),
            "gang sightings": len(history.gangs),
            "writes": len(history.requests),
            "ledger dumps": len(history.dumps),
        },
        statistics=statistics(history, settings),
    )


def summary(outcome: Report) -> Iterator[str]:
    """Yield the lines that a person reads."""
    figures = outcome.statistics
    seconds = outcome.ended - outcome.started
    yield f"auditor: {seconds:.0f} s, " + ", ".join(
        f"{n} {what}" for what, n in outcome.seen.items()
    )
    yield f"auditor: {figures.pods_bound} of {figures.pods_created} pods bound" + (
        "" if figures.writes_per_pod is None else f", {figures.writes_per_pod:.2f} writes a pod"
    )
    yield from (f"auditor: note: {note}" for note in outcome.notes)
    if not outcome.violations:
        yield f"auditor: no violation of {', '.join(outcome.rules)}"
        return
    counts = Counter(v.rule for v in outcome.violations)
    yield "auditor: VIOLATIONS: " + ", ".join(f"{n} of {r}" for r, n in sorted(counts.items()))
    yield from (f"  {sentence}" for sentence in outcome.sentences[:SHOWN])
    if len(outcome.sentences) > SHOWN:
        yield f"  and {len(outcome.sentences) - SHOWN} more, see the report"
