"""Bad input: a clear word where the owner looks, and the others go on."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.acceptance.bed import Bed
from tests.acceptance.garbage import HALF_A_REQUEST, REQUESTS, ask, half_open
from tests.acceptance.objects import Object, a_job, a_queue
from tests.acceptance.pages import Pages

pytestmark = pytest.mark.cluster


async def goes_on(bed: Bed, name: str = "good") -> set[str]:
    """See that an ordinary Job of two pods starts and ends; return where it ran."""
    bed.create(a_job(name, replicas=2, min_available=2, command=["sleep", "0"]))
    await bed.until(lambda: bed.job_phase(name) == "Completed", 20, f"Job {name} is through")
    return {pod["spec"]["nodeName"] for pod in bed.pods_of(name)}


# Jobs.

MALFORMED = {
    "a number that is none": (
        {"tasks": [{"name": "w", "replicas": "many", "template": {}}]},
        'spec.tasks[0].replicas: Invalid value: "string"',
    ),
    "a minimum above the number of pods": (
        {"minAvailable": 9},
        "job 'minAvailable' should not be greater than total replicas in tasks",
    ),
    "a policy for an event that there is not": (
        {"policies": [{"event": "FullMoon", "action": "RestartJob"}]},
        "spec.policies[0].event",
    ),
    "a misspelt field": ({"minAvailabel": 1}, 'unknown field "spec.minAvailabel"'),
}


async def test_a_malformed_job_is_refused_and_the_others_go_on(bed: Bed) -> None:
    bed.nodes(2)
    async with bed.auditor():
        for change, message in MALFORMED.values():
            job = a_job("bad", replicas=2)
            job["spec"] |= change
            with pytest.raises(AssertionError) as refused:
                await bed.aside(bed.kubectl, "create", "-f-", input_text=json.dumps(job))
            assert message in str(refused.value)
        await goes_on(bed)


async def test_a_template_that_makes_no_pod_is_told_on_the_job(bed: Bed) -> None:
    bed.nodes(2)
    async with bed.auditor():
        bed.create(a_job("bad", replicas=2, cpu="lots"))
        await goes_on(bed)
        assert any("task worker: not a quantity: 'lots'" in text for text in warnings(bed, "bad"))


async def test_an_unknown_queue_is_told_on_the_job_which_starts_once_it_is_there(bed: Bed) -> None:
    bed.nodes(2)
    async with bed.auditor():
        job = a_job("lost", replicas=2, min_available=2, queue="nowhere")
        bed.create(job)
        await goes_on(bed)
        assert warnings(bed, "lost") == ["queue nowhere is not found"]

        bed.create(a_queue("nowhere"))
        await bed.until(lambda: len(bed.running("lost")) == 2, 20, "it starts")


async def test_an_impossible_request_is_told_in_numbers_on_the_group(bed: Bed) -> None:
    bed.nodes(2)
    bed.create(a_job("huge", replicas=1, cpu=1000), a_job("wide", replicas=1, cpu=40))
    async with bed.auditor():
        await bed.until(lambda: messages(bed, "huge") and messages(bed, "wide"), 20, "both told")
        await goes_on(bed)
    (huge,), (wide,) = messages(bed, "huge"), messages(bed, "wide")
    assert huge.startswith("resource in cluster is overused: overused cpu")
    assert "1k cpu asked for, 64 in the cluster" in huge
    assert "wide-worker-0: 0/2 nodes are unavailable: 2 Insufficient cpu." in wide


def warnings(bed: Bed, name: str) -> list[str]:
    """Return the messages of the warnings about an object of the test."""
    found = bed.api.get(f"/api/v1/namespaces/{bed.namespace}/events")["items"]
    mine = (e for e in found if e["involvedObject"]["name"] == name)
    return [e["message"] for e in mine if e["type"] == "Warning"]


def messages(bed: Bed, job: str) -> list[str]:
    """Return what the conditions of a Job's PodGroup say."""
    found: list[Object] = (bed.pod_group(job) or {}).get("status", {}).get("conditions", [])
    return [condition["message"] for condition in found if condition["status"] == "True"]


# The scheduler configuration.

PACKING = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: binpack
"""
UNUSABLE = {
    "unknown-action": ("actions: enqueue, dance", "failed to find Action dance"),
    "no-yaml": ("actions: [", "not YAML:"),
    "nameless-plugin": ("actions: allocate\ntiers: [{plugins: [{}]}]", "a plugin needs a name"),
}
ODD = (
    PACKING
    + """  - name: crystal-ball
  - name: nodeorder
    arguments: {leastrequested.weight: heavy}
"""
)
IN_FORCE = "configuration in force"
REFUSED = "configuration refused, the last good one stays in force"


async def test_a_configuration_that_cannot_be_used_changes_nothing(
    bed: Bed, tmp_path: Path
) -> None:
    bed.nodes(4)
    file = tmp_path / "scheduler.conf"
    put(file, PACKING)
    async with configured(bed, file) as pages, bed.auditor():
        assert len(await goes_on(bed, "packed")) == 1
        for name, (text, why) in UNUSABLE.items():
            put(file, text)
            await refuses(pages, file, why)
            assert len(await goes_on(bed, name)) == 1


async def test_a_plugin_or_an_argument_that_makes_no_sense_is_left_out(
    bed: Bed, tmp_path: Path
) -> None:
    bed.nodes(4)
    file = tmp_path / "scheduler.conf"
    put(file, ODD)
    async with configured(bed, file) as pages, bed.auditor():
        await goes_on(bed)
        log = pages.log.text()
    for warning in (
        "plugin crystal-ball is not available, it is left out",
        "argument leastrequested.weight: 'heavy' is not an integer, ignored",
    ):
        assert log.count(warning) == 1


async def test_a_start_on_an_unusable_configuration_is_one_on_the_default(
    bed: Bed, tmp_path: Path
) -> None:
    bed.nodes(4)
    file = tmp_path / "scheduler.conf"
    put(file, "actions: dance")
    async with configured(bed, file) as pages, bed.auditor():
        assert f"{REFUSED}: {file}: failed to find Action dance" in pages.log.text()
        assert len(await goes_on(bed)) == 2


async def refuses(pages: Pages, file: Path, why: str) -> None:
    """Wait until the log says that the file is refused, and why."""
    refusal = re.compile(rf"{REFUSED}: {re.escape(str(file))}: .*{re.escape(why)}")
    await pages.log.shows(refusal.search, 10, why)


def put(file: Path, text: str) -> None:
    """Replace a file in one step, as a mounted ConfigMap changes."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(file)


@asynccontextmanager
async def configured(bed: Bed, file: Path) -> AsyncIterator[Pages]:
    """Run the extender with a configuration file; afterwards without one again."""
    extender, pages = bed.cluster.extender, Pages(bed)
    extender.configuration = file
    try:
        await bed.aside(extender.start)
        yield pages
    finally:
        extender.configuration = None
        await bed.aside(extender.start)


# The extender's port.


async def test_garbage_on_the_extenders_port_is_answered_and_harms_nobody(bed: Bed) -> None:
    bed.nodes(2)
    port = bed.cluster.extender.port
    async with bed.auditor(), half_open(port, HALF_A_REQUEST):
        for what, request in REQUESTS.items():
            assert await ask(port, request.body) == request.answer, what
        await goes_on(bed)
