"""docs/job-states.md, read back: the words of its tables become what a test expects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "job-states.md"


@dataclass(frozen=True)
class Cell:
    """What an action does in a phase."""

    #: sync, kill all, kill unfinished or kill target
    does: str
    retries: int = 0
    goto: str = ""
    rule: str = ""


def rows(heading: str) -> list[dict[str, str]]:
    """Return the table under a heading, a row as heading of the column -> text."""
    section = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line[2:-2].split(" | ") for line in section.splitlines() if line.startswith("|")]
    columns, _, *body = lines
    return [dict(zip(columns, line, strict=True)) for line in body]


def cells() -> dict[tuple[str, str], Cell]:
    """Return the table of phases by phase and action."""
    found = {}
    for row in rows("Actions by phase"):
        phase = row.pop("Phase")
        for actions, text in row.items():
            for action in actions.split(", "):
                found[phase, action] = _cell(text)
    return found


def outcomes() -> dict[str, set[str]]:
    """Return which phases each rule may leave for."""
    found: dict[str, set[str]] = {}
    for row in rows("Rules"):
        found.setdefault(row["Rule"], set()).add(row["Leaves for"])
    return found


def arrows() -> set[tuple[str, str]]:
    """Return what the diagram draws from one phase to another."""
    lines = (
        line.split(":")[0].split() for line in PAGE.read_text().splitlines() if " --> " in line
    )
    return {(before, after) for before, _, after in lines if "[*]" not in (before, after)}


def _cell(text: str) -> Cell:
    does, *more = text.split(", ")
    goto = next((word[2:] for word in more if word.startswith("→ ")), "")
    rule = next((word for word in more if len(word) == 1), "")
    assert len(more) == ("+1 retry" in more) + bool(goto) + bool(rule), text
    return Cell(does, retries=int("+1 retry" in more), goto=goto, rule=rule)
