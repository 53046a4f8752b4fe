"""
The phases of a Job as a page to read: docs/job-states.md, written from the tables themselves.

    python -m pumice.core.jobs.state_page docs/job-states.md

A test reads the page back and does what each of its cells says.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from pumice.core.jobs import event_table, state
from pumice.core.jobs import types as t

COLUMNS: Final[Sequence[tuple[str, str]]] = (
    (t.RESTART, t.RESTART),
    ("RestartTask, RestartPod, RestartPartition", t.RESTART_POD),
    (t.ABORT, t.ABORT),
    (t.COMPLETE, t.COMPLETE),
    (t.TERMINATE, t.TERMINATE),
    (t.RESUME, t.RESUME),
    (t.SYNC, t.SYNC),
    ("anything else", "*"),
)
"""Heading of each column, and the action whose cells it shows."""

INTRODUCTION: Final = """\
# The phases of a Job

Written by `make generate` from `pumice/core/jobs/state.py` and `event_table.py`; a test reads it
back and does what each cell says.

Something happens (an *event*), a policy or a Command names an *action*, and the phase decides what
the action does.
"""
CELLS: Final = """\
- **sync** makes the pods that are missing and removes surplus ones.
- **kill all** removes every pod, **kill unfinished** spares those that succeeded or failed, and on
  the last retry "all" spares them, too. Either raises `status.version`, and removes the PodGroup
  and what plugins made.
- **kill target** removes the pods of one task, one partition, or one pod; everything else stays. A
  partition that is not there changes nothing at all.
- **+1 retry** spends one of `maxRetry`. **→ Phase** is taken at once; a **letter** is the rule that
  settles the phase from the counters; without either the phase stays.
"""


def page() -> str:
    """Return the whole page; the same tables always give the same text."""
    parts = [
        INTRODUCTION,
        "## Events\n",
        table(("Event", "Raised when", "Policies", "Target"), _events()),
        "`*` in a policy stands for every event that a policy may answer. A policy of the pod's"
        "\ntask is asked before those of the Job; the first that matches counts.\n",
        "## Actions by phase\n",
        table(("Phase", *(heading for heading, _ in COLUMNS)), _phases()),
        CELLS,
        "## Rules\n",
        table(("Rule", "Leaves for", "When"), _rules()),
        "## Diagram\n",
        f"```mermaid\n{diagram()}```\n",
    ]
    return "\n".join(parts)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cell(step: state.Step) -> str:
    """Return a step in the words of the page."""
    words: list[str] = [step.do]
    if step.do == "kill":
        words = ["kill unfinished" if step.retain else "kill all"]
    if step.retry:
        words.append("+1 retry")
    if step.goto:
        words.append(f"→ {step.goto}")
    if step.settle:
        words.append(step.settle.letter)
    return ", ".join(words)


def diagram() -> str:
    """Return the phases and what leads from one to another, as a state diagram of Mermaid."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for before in state.TABLE:
        for heading, action in COLUMNS:
            step = state.step(before, action)
            if step.goto:
                arrows.setdefault((before, step.goto), []).append(heading)
            for after in step.settle.outcomes if step.settle else ():
                letter = step.settle.letter if step.settle else ""
                labels = arrows.setdefault((before, after), [])
                if letter not in labels:
                    labels.append(letter)
        if before in _ENDS:
            arrows[before, "[*]"] = []
    lines = ["stateDiagram-v2", "    [*] --> Pending"]
    lines += [
        f"    {before} --> {after}" + (f": {', '.join(labels)}" if labels else "")
        for (before, after), labels in arrows.items()
    ]
    return "\n".join(lines) + "\n"


_ENDS: Final = ("Completed", "Failed", "Terminated")


def _events() -> Iterator[Sequence[str]]:
    for event, kind in event_table.TABLE.items():
        policies = "of task and Job" if kind.of_pod else "of the Job"
        if kind.needs_timeout:
            policies += ", with a timeout"
        target = "the pod, its task, its partition" if kind.of_pod else "none"
        yield event, kind.when, policies if kind.answered else "none", target


def _phases() -> Iterator[Sequence[str]]:
    for phase in state.TABLE:
        yield phase, *(cell(state.step(phase, action)) for _, action in COLUMNS)


def _rules() -> Iterator[Sequence[str]]:
    steps = (step for row in state.TABLE.values() for step in row.values())
    rules = {step.settle.letter: step.settle for step in steps if step.settle}
    for letter, rule in rules.items():
        for phase, reason in rule.outcomes.items():
            yield letter, phase, reason


def main(path: str) -> None:
    """Write the page."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page())


if __name__ == "__main__":
    main(sys.argv[1])
