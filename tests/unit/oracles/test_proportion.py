"""proportion: what queues let in and what they give, by capability and by due."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pumice.core import catalog
from pumice.core.conf import Arguments
from pumice.core.extension import Vote
from pumice.core.model.jobs import JobInfo
from pumice.core.plan import Reason
from pumice.core.session import Session
from tests.builders import a_conf, a_node, a_plugin, a_queue, nodes
from tests.unit.oracles.cases import Case, World, a_job, check

BUSY: World = [
    nodes(n1="2 2G pods=10", n2="2 2G pods=10"),
    [a_queue("a", capability="2 2G"), a_queue("b", capability="3 3G")],
    a_job("in-a", gang=1, asks="1 2G", least="1 2G", queue="a", phase="Running", on=["n1"]),
    a_job("in-b", gang=1, asks="2 1G", least="2 1G", queue="b", phase="Running", on=["n2"]),
]
"""Queue `a` has all the memory that it may have, and `n1` is full of it; `b` and `n2` of cpu."""

ROOM = a_node("n3", "2 2G pods=10")
LARGER = a_queue("a", capability="4 4G")


NEW = a_job("new", gang=1, least="1 1G", queue="a", phase="Pending")
CPU_ALONE = a_job("new", gang=1, asks="1 0G", least="1 0G", queue="a", phase="Pending")
MEMORY_ALONE = a_job("new", gang=1, asks="0 1G", least="0 1G", queue="b", phase="Pending")
IN_CLOSED = a_job("new", gang=1, least="1 1G", queue="c", phase="Pending")

WHOLE = {
    "a job that asks for cpu alone passes where memory is used up": Case(
        [*BUSY, CPU_ALONE], {"new-0": "n1"}
    ),
    "a job that asks for memory alone passes where cpu is used up": Case(
        [*BUSY, MEMORY_ALONE], {"new-0": "n2"}
    ),
    "what is decided for an admitted job is not reserved once more": Case(
        [
            nodes(n1="4 8Gi pods=10"),
            a_queue("default", capability="4 8Gi"),
            a_job("first", 3, "1 1Gi", gang=3, least="3 3Gi"),
            a_job("second", gang=1, asks="1 1Gi", least="1 1Gi", phase="Pending"),
        ],
        {"second-0": "n1"},
        decided={f"first-{i}": "n1" for i in range(3)},
    ),
    "what is not decided of it yet is": Case(
        [
            nodes(n1="4 8Gi pods=10"),
            a_queue("default", capability="4 8Gi"),
            a_job("first", 2, "1 1Gi", gang=3, least="4 3Gi"),
            a_job("second", gang=1, asks="1 1Gi", least="1 1Gi", phase="Pending"),
        ],
        phases={"second": "Pending"},
        decided={f"first-{i}": "n1" for i in range(2)},
    ),
}


@pytest.mark.parametrize("case", WHOLE.values(), ids=WHOLE.keys())
def test_admission_and_due(case: Case) -> None:
    flags = ("enabledAllocatable", "enabledOverused", "enableJobEnqueued")
    check(case, a_conf("enqueue allocate", [a_plugin("proportion", *flags)]))


ADMISSION = {
    "no more is let in than the queue may have": Case([*BUSY, NEW], phases={"new": "Pending"}),
    "not even where a node has room": Case([*BUSY, ROOM, NEW], phases={"new": "Pending"}),
    "a queue that may have more lets it in": Case(
        [*BUSY, LARGER, ROOM, NEW], {"new-0": "n3"}, {"new": "Inqueue"}
    ),
    "a closed queue lets nothing in": Case(
        [nodes(n="2 2G pods=10"), a_queue("c", capability="3 3G", state="Closed"), IN_CLOSED],
        phases={"new": "Pending"},
    ),
    "nor does one that closes": Case(
        [nodes(n="2 2G pods=10"), a_queue("c", capability="3 3G", state="Closing"), IN_CLOSED],
        phases={"new": "Pending"},
    ),
    "nor a minimum of nothing": Case(
        [
            nodes(n="2 2G pods=10"),
            a_queue("c", state="Closed"),
            a_job("new", least="", queue="c", phase="Pending"),
        ],
        phases={"new": "Pending"},
    ),
    "what others are guaranteed is not let in": Case(
        [
            nodes(n="4 4G pods=10"),
            [a_queue("a"), a_queue("kept", guarantee="3 3G")],
            a_job("new", 2, gang=2, least="2 2G", queue="a", phase="Pending"),
        ],
        phases={"new": "Pending"},
    ),
}


@pytest.mark.parametrize("case", ADMISSION.values(), ids=ADMISSION.keys())
def test_admission_alone(case: Case) -> None:
    check(case, a_conf("enqueue allocate", [a_plugin("proportion", "enableJobEnqueued")]))


DUE = {
    "no more is given than the queue deserves": Case([*BUSY, NEW], phases={"new": "Inqueue"}),
    "not even where a node has room for more": Case([*BUSY, ROOM, NEW], phases={"new": "Inqueue"}),
    "a queue that may have more gets it": Case(
        [*BUSY, LARGER, ROOM, NEW], {"new-0": "n3"}, {"new": "Inqueue"}
    ),
    "a closed queue gets nothing": Case(
        [nodes(n="2 2G pods=10"), a_queue("c", state="Closed"), IN_CLOSED],
        phases={"new": "Inqueue"},
    ),
    "a device that the queue may not have is not given": Case(
        [
            nodes(n="8 8G pods=10 a.b/gpu=4"),
            a_queue("default", capability="8 8G a.b/gpu=1"),
            a_job("j", 2, "1 1G a.b/gpu=1"),
        ],
        {"j-0": "n"},
    ),
    "pods without devices pass it": Case(
        [
            nodes(n="8 8G pods=10 a.b/gpu=4"),
            a_queue("default", capability="8 8G a.b/gpu=1"),
            a_job("j", 2, "1 1G a.b/gpu=1"),
            a_job("k", 2),
        ],
        {"j-0": "n", "k-0": "n", "k-1": "n"},
    ),
}


@pytest.mark.parametrize("case", DUE.values(), ids=DUE.keys())
def test_due_alone(case: Case) -> None:
    check(case, a_conf("enqueue allocate", [a_plugin("proportion", "enabledAllocatable")]))


class Veto:
    """Rejects the group `first`."""

    name = "veto"

    def on_session_open(self, ssn: Session) -> None:
        ssn.points.job_enqueueable[self.name] = veto

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""


def veto(job: JobInfo) -> tuple[Vote, Reason | None]:
    return (Vote.REJECT if job.name == "first" else Vote.ABSTAIN), None


@pytest.fixture
def _veto() -> Iterator[None]:
    def build(args: Arguments) -> Veto:
        return Veto()

    catalog.add_plugin(Veto.name, build)
    yield
    catalog.remove_plugin(Veto.name)


@pytest.mark.usefixtures("_veto")
def test_a_group_that_another_plugin_rejects_reserves_nothing() -> None:
    flag = "enableJobEnqueued"
    case = Case(
        [
            nodes(n="4 4G pods=10"),
            a_queue("default", capability="1 4G"),
            a_job("first", gang=1, least="1 1G", phase="Pending"),
            a_job("second", gang=1, least="1 1G", phase="Pending"),
        ],
        phases={"first": "Pending", "second": "Inqueue"},
    )
    check(case, a_conf("enqueue", [a_plugin("proportion", flag), a_plugin(Veto.name, flag)]))
