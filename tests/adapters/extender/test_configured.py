"""The whole extender with plugins that need more than it watches by default."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from extender import configuration
from pumice.core import names
from pumice.kube.resources import POD_GROUPS, PODS, QUEUES, QUOTAS
from tests.adapters.extender.bed import Bed, Json

GATE = names.QUEUE_ALLOCATION_GATE
CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: {plugin}
"""


class File:
    """The configuration file, which the extender looks at all the time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, text: str) -> None:
        self.path.write_text(text)

    def options(self) -> tuple[str, str]:
        return ("--scheduler-conf", str(self.path))


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> File:
    monkeypatch.setattr(configuration, "LOOK_S", 0.01)
    return File(tmp_path / "scheduler.conf")


def limit_queue(bed: Bed, cpu: str) -> None:
    queue = bed.api.get(QUEUES, "", "default")
    assert queue is not None
    bed.api.put(QUEUES, {**queue, "spec": {"capability": {"cpu": cpu}}})


def at_gate(bed: Bed, name: str, **more: Any) -> None:
    """Create a group of one pod that stands behind the gate of its queue."""
    bed.gang(name, 1, gates=[{"name": GATE}], owner=None, **more)
    pod = bed.stored(f"{name}-0")
    pod["metadata"]["annotations"][GATE] = "true"
    bed.api.put(PODS, pod)


def gates(bed: Bed, name: str) -> list[Json]:
    found: list[Json] = bed.stored(name)["spec"].get("schedulingGates", [])
    return found


async def test_a_pod_goes_from_the_gate_of_its_queue_to_its_node(conf: File) -> None:
    conf.write(CONF.format(plugin="capacity"))
    bed = Bed()
    bed.nodes(1)
    limit_queue(bed, "1")
    at_gate(bed, "first")
    async with bed.extender(*conf.options()), bed.scheduler():
        await bed.until(lambda: bed.bound() == {"first-0": "n0"})
        at_gate(bed, "second")
        await bed.until(lambda: _phase(bed, "second") == "Inqueue")
        assert [gate["name"] for gate in gates(bed, "second-0")] == [GATE]

        bed.delete("first-0")
        bed.api.finish_pods()
        await bed.until(lambda: bed.bound() == {"second-0": "n0"})
        await bed.quiet()

    patches = [call for call in bed.writes("/pods/") if call.method == "PATCH"]
    taken_off = [call for call in patches if b"schedulingGates" in call.body]
    assert len(taken_off) == 2


async def test_a_pod_without_a_node_that_is_through_keeps_its_room_until_it_goes(
    conf: File,
) -> None:
    conf.write(CONF.format(plugin="capacity"))
    bed = Bed()
    bed.nodes(1)
    limit_queue(bed, "1")
    at_gate(bed, "nowhere", spec={"nodeSelector": {"no": "such"}})
    async with bed.extender(*conf.options()), bed.scheduler() as scheduler:
        scheduler.blind_to = lambda name: name == "nowhere-0"
        await bed.until(lambda: not gates(bed, "nowhere-0"))
        at_gate(bed, "next")
        await bed.until(lambda: _phase(bed, "next") == "Inqueue")
        assert gates(bed, "next-0") != []

        bed.delete("nowhere-0")
        await bed.until(lambda: bed.bound() == {"next-0": "n0"})
        await bed.quiet()


async def test_a_quota_keeps_a_group_out_until_it_is_raised(conf: File) -> None:
    conf.write(CONF.format(plugin="resourcequota"))
    bed = Bed()
    bed.nodes(1)
    quota = bed.api.add(QUOTAS, a_quota("1"), "ns")
    spec = {"minMember": 1, "queue": "default", "minResources": {"cpu": "2"}}
    bed.api.add(POD_GROUPS, {"metadata": {"name": "g"}, "spec": spec}, "ns")
    bed.pod("g-0", group="g", cpu="2")
    async with bed.extender(*conf.options()), bed.scheduler():
        await bed.until(lambda: "resource quota insufficient" in _condition(bed, "g"))
        assert bed.bound() == {}
        bed.api.put(QUOTAS, {**quota, "status": a_quota("2")["status"]})
        await bed.until(lambda: bed.bound() == {"g-0": "n0"})
        await bed.quiet()


async def test_a_policy_server_is_asked_and_obeyed(conf: File) -> None:
    refused = {"g-0"}

    async def predicate(request: web.Request) -> web.Response:
        body = msgspec.json.decode(await request.read())
        why = "not today" if body["task"]["name"] in refused else ""
        return web.json_response({"status": why})

    async with a_policy_server(predicate) as address:
        conf.write(CONF.format(plugin="extender") + ARGUMENTS.format(address=address))
        bed = Bed()
        bed.nodes(1)
        bed.gang("g", 1)
        bed.gang("h", 1)
        async with bed.extender(*conf.options()) as extender, bed.scheduler():
            await bed.until(lambda: bed.bound() == {"h-0": "n0"})
            assert extender.engine.latest is not None
            await bed.until(lambda: "not today" in _condition(bed, "g"))
            refused.clear()
            extender.engine.wake()
            await bed.until(lambda: set(bed.bound()) == {"g-0", "h-0"})
            await bed.quiet()


async def test_a_configuration_that_changes_is_in_force_at_once(conf: File) -> None:
    conf.write(CONF.format(plugin="nodeorder").replace("enqueue, allocate", "enqueue"))
    bed = Bed()
    bed.nodes(1)
    bed.gang("g", 1)
    async with bed.extender(*conf.options()) as extender, bed.scheduler():
        await bed.until(lambda: _phase(bed, "g") == "Inqueue")
        conf.write(CONF.format(plugin="nodeorder"))
        await bed.until(lambda: bed.bound() == {"g-0": "n0"})
        conf.write("actions: [")
        await bed.until(lambda: extender.configuration.refused)
        bed.gang("h", 1)
        await bed.until(lambda: set(bed.bound()) == {"g-0", "h-0"})
        await bed.quiet()


ARGUMENTS = """\
    arguments:
      extender.urlPrefix: {address}
      extender.predicateVerb: predicate
"""


@asynccontextmanager
async def a_policy_server(predicate: Any) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/predicate", predicate)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def a_quota(cpu: str) -> Json:
    status = {"hard": {"cpu": cpu}, "used": {"cpu": "0"}}
    return {"metadata": {"name": "q"}, "status": status}


def _group(bed: Bed, name: str) -> Json:
    return bed.api.get(POD_GROUPS, "ns", name) or {}


def _phase(bed: Bed, name: str) -> str:
    return str(_group(bed, name).get("status", {}).get("phase", ""))


def _condition(bed: Bed, name: str) -> str:
    conditions = _group(bed, name).get("status", {}).get("conditions", [])
    return " ".join(c.get("message", "") for c in conditions)
