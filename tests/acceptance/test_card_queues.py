"""Shares of cards are what queues have limits and dues of, and what is taken back from others."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.core import names
from tests.acceptance.bed import Bed
from tests.acceptance.cards import card_nodes, device_plugins, sharing
from tests.acceptance.objects import Object, a_job, a_queue
from tests.acceptance.pages import Pages
from tests.acceptance.test_bad_input import IN_FORCE, put
from tests.acceptance.test_evictions import evicted
from tests.acceptance.test_shared_layout import priority_class
from tests.deviceplugin import DevicePlugins

pytestmark = pytest.mark.cluster

MEMORY = 24576
HALF = MEMORY // 2
WHOLE = sharing(memory=MEMORY)
PATIENCE_S = 30.0


def sharing_by(plugin: str) -> str:
    """Return the configuration in which a plugin says what queues may have."""
    return f"""
actions: "allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins:
  - {{name: predicates}}
  - {{name: {plugin}}}
  - name: deviceshare
    arguments: {{deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: binpack}}
"""


@pytest.fixture(scope="module")
def configuration() -> str:
    """Queues have what they deserve by their spec."""
    return sharing_by("capacity")


LIMITS = {
    "memory": ("capacity", {names.VGPU_MEMORY: f"{MEMORY}"}, f"{MEMORY} of the {MEMORY}"),
    "number": ("proportion", {names.VGPU_NUMBER: "2"}, "2 of the 2"),
}


@pytest.mark.parametrize(("plugin", "limit", "told"), LIMITS.values(), ids=LIMITS.keys())
async def test_a_queue_gets_no_more_of_cards_than_it_may_have(
    bed: Bed, plugin: str, limit: dict[str, str], told: str
) -> None:
    await shared_by(bed, plugin)
    card_nodes(bed, 1, "a", "b")
    bed.create(a_queue("few", capability=limit))
    jobs = [f"half-{i}" for i in range(3)]
    with device_plugins(bed) as plugins:
        async with bed.auditor() as auditor:
            *two, last = (a_job(name, queue="few", **sharing(memory=HALF)) for name in jobs)
            bed.create(*two)
            await bed.until(lambda: plugins.served == 2, PATIENCE_S, "two have their half")
            bed.create(last)
            [name] = limit
            await bed.until(
                lambda: f"{told} {name}" in waits(bed, jobs[-1]), PATIENCE_S, "it is told why"
            )
            await bed.until(lambda: bed.running(jobs[0]), PATIENCE_S, "the first runs")
            assert plugins.served == 2
            await bed.aside(bed.end, *bed.running(jobs[0]))
            await bed.until(lambda: plugins.served == 3, PATIENCE_S, "the third has its half")
            await auditor.finish()


async def test_a_queue_takes_back_the_card_that_it_deserves(bed: Bed) -> None:
    await shared_by(bed, "capacity")
    (node,) = card_nodes(bed, 1, "a", "b")
    due = {names.VGPU_MEMORY: f"{MEMORY}"}
    bed.create(a_queue("rich", deserved=due), a_queue("poor", deserved=due))
    with device_plugins(bed) as plugins:
        async with bed.auditor() as auditor:
            await uses_all(bed, plugins, a_job("wide", queue="rich", **halves()))
            bed.create(*(a_job(f"whole-{i}", queue="poor", **WHOLE) for i in range(2)))
            await has_a_card(bed, plugins, node)
            # The other one would be more than is due.
            assert len(evicted(bed, "wide")) == 2
            await auditor.finish()


async def test_a_job_of_higher_priority_takes_the_shares_of_one_card(bed: Bed) -> None:
    await shared_by(bed, "capacity")
    (node,) = card_nodes(bed, 1, "a", "b")
    with priority_class(bed, "urgent"), device_plugins(bed) as plugins:
        async with bed.auditor() as auditor:
            await uses_all(bed, plugins, a_job("wide", **halves()))
            bed.create(a_job("whole", priority_class="urgent", **WHOLE))
            await has_a_card(bed, plugins, node)
            assert len(evicted(bed, "wide")) == 2
            await auditor.finish()


def halves() -> Object:
    """Return what makes a Job one of four pods with half a card each, of which one will do."""
    return {"replicas": 4, "min_available": 1, **sharing(memory=HALF)}


async def uses_all(bed: Bed, plugins: DevicePlugins, job: Object) -> None:
    """Let a Job use both cards."""
    bed.create(job)
    name = job["metadata"]["name"]
    await bed.until(lambda: len(bed.running(name)) == 4, PATIENCE_S, "all is in use")
    await bed.until(lambda: plugins.served == 4, PATIENCE_S, "all is handed out")


async def has_a_card(bed: Bed, plugins: DevicePlugins, node: str) -> None:
    """Wait until somebody has one of the two cards whole; the other is shared as before."""
    await bed.until(lambda: plugins.served == 5, PATIENCE_S, "somebody has a whole card")
    assert sorted(plugins.used(node).values()) == [(1, MEMORY, 0), (2, MEMORY, 0)]


async def shared_by(bed: Bed, plugin: str) -> None:
    """Have a plugin say what queues may have."""
    file, text, log = bed.cluster.extender.configuration, sharing_by(plugin), Pages(bed).log
    assert isinstance(file, Path)
    if file.read_text() != text:
        put(file, text)
        await log.shows(lambda seen: IN_FORCE in seen, PATIENCE_S, "it is read")


def waits(bed: Bed, job: str) -> str:
    """Return why a Job waits."""
    conditions = (bed.pod_group(job) or {}).get("status", {}).get("conditions", [])
    return " ".join(c["message"] for c in conditions if c["type"] == "Unschedulable")
