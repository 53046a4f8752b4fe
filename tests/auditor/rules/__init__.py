"""
The rules: pure functions from a history to violations, one module each.

A  gangs      a gang stays partly bound
B  room       a node holds more than it can
C  binders    a pod of ours is bound by somebody else
D  evictions  the extender removes a pod that no session decided to remove
E  ledgers    the extender's ledger and the API disagree while nothing happens
F  noops      a write changes nothing
"""

from __future__ import annotations

from tests.auditor.facts import Violation
from tests.auditor.history import History, Settings
from tests.auditor.rules import binders, evictions, gangs, ledgers, noops, room

JUDGES = {
    "A": gangs.judge,
    "B": room.judge,
    "C": binders.judge,
    "D": evictions.judge,
    "E": ledgers.judge,
    "F": noops.judge,
}


def judge(history: History, settings: Settings) -> list[Violation]:
    """Return every violation of the rules asked for, rule by rule."""
    return [found for rule in settings.rules for found in JUDGES[rule](history, settings)]
