"""Bad input and broken parts: a clear word where the owner looks, and others go on."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from pumice.local.services import Extender
from tests.acceptance.bed import Bed
from tests.acceptance.length import Length
from tests.acceptance.objects import Object, a_job, a_queue
from tests.acceptance.pages import Pages
from tests.acceptance.parked import NODE_CPU, behind_proxy, park

pytestmark = pytest.mark.cluster


async def goes_on(bed: Bed, name: str = "good") -> None:
    """See that an ordinary Job starts and ends."""
    bed.create(a_job(name, replicas=2, min_available=2, command=["sleep", "0"]))
    await bed.until(lambda: bed.job_phase(name) == "Completed", 20, f"Job {name} is through")


MALFORMED = {
    "a number that is none": (
        {"tasks": [{"name": "w", "replicas": "many", "template": {}}]},
        "spec.tasks[0].replicas",
    ),
    "a minimum above the number of pods": (
        {"minAvailable": 9},
        "'minAvailable' should not be greater than total replicas",
    ),
    "a policy for an event that there is not": (
        {"policies": [{"event": "FullMoon", "action": "RestartJob"}]},
        "spec.policies[0].event",
    ),
}


async def test_a_malformed_job_is_refused_and_the_others_go_on(bed: Bed) -> None:
    bed.nodes(2)
    async with bed.auditor():
        for change, word in MALFORMED.values():
            job = a_job("bad", replicas=2)
            job["spec"] |= change
            with pytest.raises(AssertionError) as refused:
                await bed.aside(bed.kubectl, "create", "-f-", input_text=json.dumps(job))
            assert word in str(refused.value)
        await goes_on(bed)


async def test_a_job_whose_pods_are_refused_says_so_and_the_others_go_on(bed: Bed) -> None:
    bed.nodes(2)
    async with bed.auditor():
        bed.create(a_job("bad", replicas=2, cpu="lots"))
        await goes_on(bed)
        await bed.until(lambda: events(bed, "bad"), 20, "an event on the Job")
    print(events(bed, "bad"), bed.job("bad"))


async def test_a_job_of_an_unknown_queue_says_so_and_starts_once_it_is_there(bed: Bed) -> None:
    bed.nodes(2)
    async with bed.auditor():
        bed.create(a_job("lost", replicas=2, min_available=2, queue="nowhere"))
        await bed.until(lambda: events(bed, "lost"), 20, "an event on the Job")
        await goes_on(bed)
        print(events(bed, "lost"), bed.job("lost"))
        bed.create(a_queue("nowhere"))
        await bed.until(lambda: bed.job_phase("lost") == "Running", 20, "it starts")
        bed.delete(a_job("lost"))


async def test_an_impossible_request_says_so_in_numbers(bed: Bed) -> None:
    bed.nodes(2)
    async with bed.auditor():
        bed.create(a_job("huge", replicas=1, cpu=1000))
        await bed.until(lambda: conditions(bed, "huge"), 20, "a condition on the PodGroup")
        await goes_on(bed)
    print(conditions(bed, "huge"))


def events(bed: Bed, name: str) -> list[str]:
    """Return the messages of the events about an object of the test."""
    found = bed.api.get(f"/api/v1/namespaces/{bed.namespace}/events")["items"]
    return [e["message"] for e in found if e["involvedObject"]["name"] == name and e["type"] == "Warning"]


def conditions(bed: Bed, job: str) -> list[Object]:
    """Return the conditions of a Job's PodGroup."""
    found: list[Object] = (bed.pod_group(job) or {}).get("status", {}).get("conditions", [])
    return found
