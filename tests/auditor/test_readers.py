"""The auditor's readers: a watch that breaks or ages, a log that grows and is rotated."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.auditor import watch
from tests.auditor.audit import AuditLog
from tests.auditor.facts import Node, Sighting
from tests.auditor.kubeconfig import Access
from tests.auditor.run import ROOT
from tests.auditor.watch import Reflector
from tests.auditor.wire import NODES

Script = list[tuple[int, list[dict[str, Any]]]]


def a_node(name: str, version: int) -> dict[str, Any]:
    """A node as the API server writes it."""
    return {"metadata": {"name": name, "uid": name, "resourceVersion": str(version)}}


def event(kind: str, name: str, version: int) -> dict[str, Any]:
    """A line of a watch."""
    return {"type": kind, "object": a_node(name, version)}


class Server:
    """Answers lists and watches from scripts, in turn; the last watch stays open."""

    def __init__(self, lists: Script, watches: Script) -> None:
        self.lists = lists
        self.watches = watches
        self.asked_from: list[str] = []
        self.told: list[tuple[str, int, bool]] = []
        self.done = asyncio.Event()

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Play the next part."""
        if "watch" in request.query:
            return await self._watch(request)
        status, items = self.lists.pop(0)
        version = max((int(i["metadata"]["resourceVersion"]) for i in items), default=1)
        meta = {"resourceVersion": str(version)}
        return web.json_response({"metadata": meta, "items": items}, status=status)

    def tell(self, seen: Sighting[Node]) -> None:
        """Keep what the reflector says."""
        self.told.append((seen.object.name, seen.rv, seen.gone))

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked_from.append(request.query["resourceVersion"])
        status, events = self.watches.pop(0)
        response = web.StreamResponse(status=status)
        await response.prepare(request)
        for item in events:
            await response.write(json.dumps(item).encode() + b"\n")
        if not self.watches:
            self.done.set()
            await asyncio.Event().wait()
        return response


async def played(lists: Script, watches: Script) -> Server:
    """Run a reflector through the script and return what came of it."""
    server = Server(lists, watches)
    runner = web.ServerRunner(web.Server(server.serve, handler_cancellation=True))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    access = Access(f"http://127.0.0.1:{runner.addresses[0][1]}", None, {})
    async with aiohttp.ClientSession() as session:
        reflector = Reflector(session, access, NODES, server.tell)
        task = asyncio.create_task(reflector.run())
        await asyncio.wait_for(server.done.wait(), 10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await runner.cleanup()
    return server


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "RETRY_S", 0.01)


async def test_a_watch_that_ends_is_taken_up_where_it_ended() -> None:
    server = await played(
        [(200, [a_node("a", 5)])],
        [
            (200, [event("ADDED", "b", 6), event("BOOKMARK", "", 9)]),
            (200, [event("DELETED", "b", 10)]),
            (200, []),
        ],
    )

    assert server.asked_from == ["5", "9", "10"]
    assert server.told == [("a", 5, False), ("b", 6, False), ("b", 10, True)]


@pytest.mark.parametrize(
    "too_old",
    [(410, []), (200, [{"type": "ERROR", "object": {"kind": "Status", "code": 410}}])],
    ids=["as an answer", "as an event"],
)
async def test_a_version_too_old_means_listing_anew_and_telling_of_what_is_gone(
    too_old: tuple[int, list[dict[str, Any]]],
) -> None:
    server = await played(
        [(200, [a_node("a", 5), a_node("b", 4)]), (200, [a_node("b", 7)])], [too_old, (200, [])]
    )

    assert server.asked_from == ["5", "7"]
    assert server.told == [("a", 5, False), ("b", 4, False), ("b", 7, False), ("a", 7, True)]


async def test_a_resource_that_is_not_there_yet_is_waited_for() -> None:
    server = await played([(404, []), (503, []), (200, [a_node("a", 5)])], [(200, [])])

    assert server.told == [("a", 5, False)]


def line(name: str) -> str:
    """A line of the audit log: somebody deleted this pod."""
    event = {
        "stage": "ResponseComplete",
        "verb": "delete",
        "user": {"username": "u"},
        "objectRef": {"resource": "pods", "name": name},
        "requestReceivedTimestamp": "1970-01-01T00:00:10.000000Z",
        "stageTimestamp": "1970-01-01T00:00:10.250000Z",
    }
    return json.dumps(event) + "\n"


@pytest.fixture
async def follower(tmp_path: Path) -> AsyncIterator[tuple[Path, asyncio.Queue[str]]]:
    """A log with one old line, and the names that its reader hands over."""
    path, names = tmp_path / "audit.jsonl", asyncio.Queue[str]()
    path.write_text(line("old"))
    log = AuditLog(path, lambda request: names.put_nowait(request.name))
    task = asyncio.create_task(log.run())
    yield path, names
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_only_what_is_appended_is_read_and_only_whole_lines(
    follower: tuple[Path, asyncio.Queue[str]],
) -> None:
    path, names = follower
    with path.open("a") as log:
        log.write(line("first") + line("second")[:40])
        log.flush()
        assert await asyncio.wait_for(names.get(), 5) == "first"
        log.write(line("second")[40:])

    assert await asyncio.wait_for(names.get(), 5) == "second"


async def test_a_log_that_is_rotated_is_read_to_its_end_and_then_its_successor(
    follower: tuple[Path, asyncio.Queue[str]],
) -> None:
    path, names = follower
    with path.open("a") as log:
        path.rename(path.with_suffix(".1"))
        log.write(line("last of the old"))
    path.write_text(line("first of the new"))

    got = [await asyncio.wait_for(names.get(), 5) for _ in range(2)]
    assert got == ["last of the old", "first of the new"]


def test_the_auditor_shares_nothing_with_what_it_judges() -> None:
    code = (
        "import sys, tests.auditor.__main__, tests.auditor.run\n"
        "ours = {'pumice', 'extender', 'controllers', 'webhooks'}\n"
        "print(sorted(ours & {name.partition('.')[0] for name in sys.modules}))"
    )
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    assert (answer.stdout, answer.stderr) == ("[]\n", "")
