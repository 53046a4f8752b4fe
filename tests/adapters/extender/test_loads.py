"""How busy nodes are: what each source is asked, and what becomes of its answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from extender.loads import polling
from extender.loads.adaptor import Adaptor
from extender.loads.elasticsearch import Elasticsearch
from extender.loads.polling import INTERVAL_S, Polling
from extender.loads.prometheus import Prometheus
from extender.loads.source import JsonServer, SourceError
from pumice.core.conf import Configuration, parse
from pumice.core.model.inputs import Load
from tests.fakeapi import FakeApi, ManualClock, eventually

NOW = 1_700_000_000.0
Json = dict[str, Any]


@dataclass
class Asked:
    """A server that answers by path, or by query, and what it was asked."""

    answers: Mapping[str, Any]
    requests: list[web.Request] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        self.bodies.append(json.loads(await request.read() or b"null"))
        asked = request.query.get("query", request.path)
        answer = next((a for part, a in self.answers.items() if part in asked), None)
        if answer is None:
            return web.Response(status=500)
        return answer if isinstance(answer, web.Response) else web.json_response(answer)


@asynccontextmanager
async def serving(asked: Asked) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", asked.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def vector(**nodes: tuple[str, float]) -> Json:
    rows = [
        {"metric": {"instance": name.replace("__", ":")}, "value": [at, value]}
        for name, (value, at) in nodes.items()
    ]
    return {"status": "success", "data": {"resultType": "vector", "result": rows}}


async def test_prometheus_is_asked_for_all_nodes_at_once() -> None:
    cpu = vector(n0=("50.5", NOW), n1__9100=("10", NOW), n2=("1", NOW), n3=("NaN", NOW))
    memory = vector(n0=("20", NOW - 5), n1__9100=("30", NOW), n3=("3", NOW))
    asked = Asked({"node_cpu_seconds_total": cpu, "node_memory_MemTotal_bytes": memory})
    async with serving(asked) as address:
        got = await Prometheus(JsonServer(address + "/")).read()

    assert got == {"n0": Load(50.5, 20.0, NOW - 5), "n1": Load(10.0, 30.0, NOW)}
    assert [request.path for request in asked.requests] == ["/api/v1/query"] * 2


async def test_elasticsearch_is_asked_for_all_nodes_at_once() -> None:
    rows = [
        {"key": "n0", "cpu": {"value": 0.5}, "memory": {"value": 0.25}},
        {"key": "n1", "cpu": {"value": 0.5}, "memory": {"value": None}},
    ]
    asked = Asked({"/beats/_search": {"aggregations": {"nodes": {"buckets": rows}}}})
    async with serving(asked) as address:
        server = JsonServer(address, user="u", password="p")
        got = await Elasticsearch(server, ManualClock(NOW), "beats", "host.name").read()

    assert got == {"n0": Load(50.0, 25.0, NOW)}
    (body,) = asked.bodies
    assert body["aggs"]["nodes"]["terms"]["field"] == "host.name"
    assert asked.requests[0].headers["Authorization"] == "Basic dTpw"


class Metrics:
    """An API server behind which an adapter serves custom metrics."""

    def __init__(self, answers: Mapping[str, bytes]) -> None:
        self.answers = answers

    async def call(self, method: str, path: str) -> bytes:
        return self.answers[path.rpartition("/")[2]]


def metric(**nodes: str) -> bytes:
    items = [
        {"describedObject": {"name": n}, "timestamp": "2023-11-14T22:13:20Z", "value": value}
        for n, value in nodes.items()
    ]
    return json.dumps({"items": items}).encode()


async def test_custom_metrics_are_parts_of_one() -> None:
    answers = {"node_cpu_usage_avg": metric(n0="500m"), "node_memory_usage_avg": metric(n0="1")}
    client: Any = Metrics(answers)
    assert await Adaptor(client).read() == {"n0": Load(50.0, 100.0, NOW)}


async def test_a_cluster_without_custom_metrics_has_no_figures() -> None:
    with pytest.raises(SourceError, match=r"custom\.metrics"):
        await Adaptor(FakeApi().client()).read()


NO_FIGURES = {
    "an error": web.Response(status=503),
    "no JSON": web.Response(text="<html>"),
    "another shape": web.json_response({"data": {"result": [{"metric": {}}]}}),
}


@pytest.mark.parametrize("kind", NO_FIGURES)
async def test_what_is_no_answer_is_said_with_its_address(kind: str) -> None:
    response = NO_FIGURES[kind]
    asked = Asked({"": web.Response(status=response.status, body=response.body)})
    async with serving(asked) as address:
        with pytest.raises(SourceError, match=address):
            await Prometheus(JsonServer(address)).read()


def conf(plugin: str, **metrics: str) -> Configuration:
    rows = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in metrics.items())
    text = f"actions: allocate\ntiers:\n- plugins: [{{name: {plugin}}}]\n"
    return parse(text + (f"metrics:\n{rows}" if rows else ""))


WRONG = {
    "no type": (conf("usage", address="http://x"), "metrics.type"),
    "an unknown type": (conf("usage", type="crystal", address="http://x"), "'crystal'"),
    "no address": (conf("usage", type="prometheus"), "metrics.address"),
    "no section at all": (conf("usage"), "metrics.type"),
}


class Poll:
    """A poller whose source is a table."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self.loads: dict[str, Load] | None = {"n0": Load(1.0, 2.0, NOW)}
        self.taken: list[dict[str, Load]] = []
        self.polling = Polling(FakeApi().client(), ManualClock(NOW), self.taken.append)
        monkeypatch.setattr(polling, "source", lambda *_: self)

    async def read(self) -> dict[str, Load]:
        self.asked += 1
        if self.loads is None:
            raise SourceError("away")
        return self.loads

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.polling.run())
            yield
            task.cancel()

    async def until_asked(self, times: int) -> None:
        async def asked() -> bool:
            return self.asked >= times

        await eventually(asked)


@pytest.mark.parametrize("case", WRONG)
async def test_wrong_settings_are_told(case: str, caplog: pytest.LogCaptureFixture) -> None:
    wrong, word = WRONG[case]
    taken: list[dict[str, Load]] = []
    poller = Polling(FakeApi().client(), ManualClock(NOW), taken.append)
    poller.follow(wrong)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(poller.run())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
    assert word in poller.fault
    assert (word in caplog.text, taken) == (True, [])


async def test_figures_are_had_while_a_plugin_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    poll = Poll(monkeypatch)
    async with poll.running():
        await asyncio.sleep(0)
        assert (poll.asked, poll.taken) == (0, [{}])
        poll.polling.follow(conf("rescheduling", type="prometheus", address="http://x"))
        await poll.until_asked(1)
        poll.polling.follow(conf("gang", type="prometheus", address="http://x"))
        for _ in range(5):
            await asyncio.sleep(0)
    assert poll.taken == [{}, poll.loads, {}]


async def test_a_source_that_is_away_leaves_the_last_figures(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(polling, "_interval", lambda _: 0.001)
    poll = Poll(monkeypatch)
    poll.polling.follow(conf("usage", type="prometheus", address="http://x"))
    async with poll.running():
        await poll.until_asked(1)
        poll.loads = None
        await poll.until_asked(poll.asked + 3)
    assert {} not in poll.taken
    assert caplog.text.count("away") == 1


def test_intervals_are_durations() -> None:
    settings: list[dict[str, str]] = [{"interval": "1m"}, {}, {"interval": "soon"}]
    assert [polling._interval(each) for each in settings] == [60.0, INTERVAL_S, INTERVAL_S]
