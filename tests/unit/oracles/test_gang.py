"""gang: when a group that is short of members says nothing of it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pumice.core.plugins.gang import is_only_leaving
from tests.unit.oracles.cases import job_of


@dataclass(frozen=True)
class Case:
    least: int
    tasks: str
    silent: bool


CASES = {
    "one of two members leaves": Case(2, "running@n1 releasing@n2", True),
    "another one waits": Case(2, "running@n1 releasing@n2 pending@", False),
    "another one is promised room": Case(2, "running@n1 releasing@n2 pipelined@n3", False),
    "the one that leaves never had a node": Case(1, "releasing@", False),
    "too few even with the one that leaves": Case(3, "running@n1 releasing@n2", False),
    "nobody leaves": Case(2, "running@n1", False),
    "all leave": Case(2, "releasing@n1 releasing@n2", True),
    "the others have finished": Case(3, "succeeded@n1 failed@n1 releasing@n2", True),
    "another one is decided and not scheduled yet": Case(2, "binding@n1 releasing@n2", False),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_no_condition_while_members_merely_leave(case: Case) -> None:
    assert is_only_leaving(job_of(case.tasks, least=case.least)) is case.silent
