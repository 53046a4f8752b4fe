"""T1: a gang on free nodes starts, all at once, and with few writes."""

from __future__ import annotations

import pytest

from tests.acceptance.bed import Bed
from tests.acceptance.length import patient
from tests.acceptance.objects import a_job

pytestmark = pytest.mark.cluster
LAYOUTS = ("own", "shared")


async def test_a_gang_starts_at_once_and_with_few_writes(bed: Bed) -> None:
    bed.nodes(10)
    async with bed.auditor() as auditor:
        bed.create(a_job("gang", replicas=8, cpu=4, min_available=8))
        await bed.until(lambda: bed.job_phase("gang") == "Running", 10, "the Job is Running")
        await bed.until(lambda: len(bed.running("gang")) == 8, 10, "its pods are Running")
        await bed.until(lambda: bed.group_phase("gang") == "Running", 10, "so is the PodGroup")
        report = await auditor.finish()

    figures = report.statistics
    (times,) = figures.gangs.values()
    assert (figures.pods_created, times.bound) == (8, 8)
    assert times.spread_s <= patient(1)
    assert figures.writes_per_pod is not None
    assert figures.writes_per_pod <= 3.3, figures.writes
