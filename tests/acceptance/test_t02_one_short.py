"""T2: a gang that is one place short costs kube-scheduler nothing, and starts with the room."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.acceptance.bed import Bed
from tests.acceptance.figures import ledger, scheduling_attempts
from tests.acceptance.length import patient
from tests.acceptance.objects import Object, a_job, a_pod
from tests.acceptance.timeline import lives

pytestmark = pytest.mark.cluster
LAYOUTS = ("own", "shared")

SIZE = 8
CPU = 4
SHORT_S = 30.0
ROOM_TO_BOUND_S = 1.0
NOWHERE = "0/8 nodes are unavailable: 8 Insufficient cpu."


async def test_a_gang_that_is_one_short_waits_untouched_and_starts_with_the_room(bed: Bed) -> None:
    nodes = bed.nodes(SIZE, cpu=CPU)
    filler = a_pod("filler", scheduler="nobody", node=nodes[0], cpu=1)
    bed.create(filler)
    async with bed.auditor() as auditor:
        before = (scheduling_attempts(bed), ledger(bed).calls)
        bed.create(a_job("gang", replicas=SIZE, cpu=CPU, min_available=SIZE))
        await bed.until(lambda: len(bed.pods_of("gang")) == SIZE, 5, "the pods are there")
        await bed.never(lambda: bed.bound("gang"), SHORT_S, "a pod was bound without room for all")
        assert (scheduling_attempts(bed), ledger(bed).calls) == before
        assert_says_why(bed)

        bed.delete(filler, grace_s=0)
        await bed.until(lambda: len(bed.bound("gang")) == SIZE, 10, "the gang is bound")
        await bed.until(lambda: bed.job_phase("gang") == "Running", 10, "the Job is Running")
        await auditor.finish()

    (gone,) = [life.gone for life in lives(bed) if life.name == "filler"]
    assert max(life.bound for life in lives(bed, "gang")) - gone <= patient(ROOM_TO_BOUND_S)


def assert_says_why(bed: Bed) -> None:
    """Check that PodGroup and pods say in numbers what is missing."""
    group = bed.pod_group("gang") or {}
    (condition,) = [c for c in group["status"]["conditions"] if c["type"] == "Unschedulable"]
    message = condition["message"]
    assert (condition["status"], condition["reason"]) == ("True", "NotEnoughResources")
    assert message.startswith("1/8 tasks in gang unschedulable: pod group is not ready, 8 Pending")
    assert NOWHERE in message
    reasons = Counter(scheduled(pod)["reason"] for pod in bed.pods_of("gang"))
    assert reasons == {"Schedulable": 7, "Unschedulable": 1}
    assert NOWHERE in {scheduled(pod)["message"] for pod in bed.pods_of("gang")}


def scheduled(pod: Object) -> Object:
    """Return a pod's PodScheduled condition."""
    (condition,) = [c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled"]
    return dict(condition)
