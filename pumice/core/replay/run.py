"""Running a recorded session again."""

from __future__ import annotations

from dataclasses import dataclass

from pumice.core.conf import Configuration, parse
from pumice.core.cycle import run_session
from pumice.core.replay.answers import Memory
from pumice.core.replay.record import Record, encode_plan, snapshot_of


@dataclass(frozen=True, slots=True)
class Rerun:
    """What came of it."""

    #: the plan as JSON
    decisions: bytes
    #: questions that nobody had asked then, which counted as not answered
    unknown: int


def rerun(record: Record, conf: Configuration | None = None) -> Rerun:
    """Run a recorded session, under its own configuration where no other is given."""
    memory = Memory(record.answers)
    conf = conf or parse(record.configuration)
    plan = run_session(snapshot_of(record.seen), conf, record.now, record.session, ask=memory)
    return Rerun(encode_plan(plan), memory.unknown)
