"""
A tree of queues on the real control plane: what is deserved, what is guaranteed, what comes back.

    root 16 cpu ─┬─ org, of which dev deserves 8, and ops 4 and is guaranteed 2
                 └─ lab, which deserves 4
"""

from __future__ import annotations

import pytest

from tests.acceptance.bed import Bed
from tests.acceptance.length import Length
from tests.acceptance.objects import Object, a_job, a_queue
from tests.acceptance.test_evictions import evicted

pytestmark = pytest.mark.cluster

NODES, CPU = 4, 4
ROOM = NODES * CPU
GUARANTEED = 2
LIMIT_S = 30.0
QUIET_S = 3.0


@pytest.fixture(scope="module")
def configuration() -> str:
    """Room is made for every group: nobody asks who may be let in."""
    return """
actions: "allocate, reclaim, backfill"
tiers:
- plugins:
  - {name: priority}
  - {name: gang}
  - {name: conformance}
  - {name: capacity, enableHierarchy: true}
- plugins: [{name: predicates}, {name: nodeorder}]
"""


@pytest.fixture
def tree(bed: Bed) -> None:
    """Make nodes and queues."""
    bed.nodes(NODES, cpu=CPU)
    kept = {"resource": {"cpu": str(GUARANTEED)}}
    bed.patch(a_queue("root"), {"spec": {"capability": {"cpu": str(ROOM)}}})
    bed.create(
        a_queue("org", parent="root", deserved={"cpu": "12"}, guarantee=kept),
        a_queue("lab", parent="root", deserved={"cpu": "4"}),
        a_queue("dev", parent="org", deserved={"cpu": "8"}),
        a_queue("ops", parent="org", deserved={"cpu": "4"}, guarantee=kept),
    )


@pytest.mark.usefixtures("tree")
async def test_queues_below_one_take_back_what_they_deserve_each(bed: Bed, length: Length) -> None:
    async with bed.auditor() as auditor:
        bed.create(a_job("wide", replicas=2 * ROOM, min_available=1, queue="lab"))
        most = ROOM - GUARANTEED
        await bed.until(lambda: running(bed) == [most, 0, 0], LIMIT_S, "lab has all it may have")

        bed.create(*singles("dev", ROOM))
        await bed.until(lambda: running(bed) == [8, 8, 0], LIMIT_S, "dev has its due")
        bed.create(*singles("ops", ROOM))
        await bed.until(lambda: running(bed) == [4, 8, 4], LIMIT_S, "ops has its due")
        await bed.never(
            lambda: running(bed) != [4, 8, 4], QUIET_S * length.slack, "what is due moves on"
        )
        assert len(evicted(bed, "wide")) == most - 4
        assert not any(evicted(bed, f"{q}-{i}") for q in ("dev", "ops") for i in range(ROOM))
        await auditor.finish()


@pytest.mark.usefixtures("tree")
async def test_what_is_guaranteed_stays_free_and_the_rest_of_a_due_is_taken_from_kin(
    bed: Bed, length: Length
) -> None:
    async with bed.auditor() as auditor:
        bed.create(a_job("wide", replicas=ROOM, min_available=1, queue="dev"))
        most = ROOM - GUARANTEED
        await bed.until(lambda: len(bed.running("wide")) == most, LIMIT_S, "dev has what it may")
        await bed.never(
            lambda: len(bed.bound("wide")) > most, QUIET_S * length.slack, "a guarantee is broken"
        )

        bed.create(*singles("ops", GUARANTEED))
        await bed.until(lambda: running(bed)[2] == GUARANTEED, LIMIT_S, "ops has its guarantee")
        assert not evicted(bed, "wide")
        bed.create(*(a_job(f"more-{i}", queue="ops") for i in range(ROOM)))
        await bed.until(lambda: len(bed.running("wide")) == most - 2, LIMIT_S, "dev gives")
        await bed.until(lambda: ops_in_all(bed) == 4, LIMIT_S, "ops has its due")
        await bed.never(lambda: ops_in_all(bed) != 4, QUIET_S * length.slack, "it moves on")
        assert len(evicted(bed, "wide")) == 2
        await auditor.finish()


def singles(queue: str, count: int) -> list[Object]:
    """Return Jobs of one pod each, named after their queue."""
    return [a_job(f"{queue}-{i}", queue=queue) for i in range(count)]


def running(bed: Bed) -> list[int]:
    """Return how many pods run: of the wide Job, and of the single ones of dev and of ops."""
    small = [sum(len(bed.running(f"{q}-{i}")) for i in range(ROOM)) for q in ("dev", "ops")]
    return [len(bed.running("wide")), *small]


def ops_in_all(bed: Bed) -> int:
    """Return how many pods of queue ops run."""
    return running(bed)[2] + sum(len(bed.running(f"more-{i}")) for i in range(ROOM))
