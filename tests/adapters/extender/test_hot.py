"""The verbs on the wire: what kube-scheduler sends, and exactly what it gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender import wire
from extender.hot import BODY_LIMIT, HotPath, Message, Receive, Scope, Send
from pumice.core.ids import PodUid

BINDING = {"PodName": "p", "PodNamespace": "ns", "PodUID": "u1", "Node": "n1"}


@dataclass
class Recorded:
    """Answers from a script and remembers what it was asked."""

    answer: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    wait: bool = False

    async def bind(self, uid: PodUid, node: str) -> str:
        self.asked.append((uid, node))
        if self.wait:
            try:
                await asyncio.Event().wait()
            finally:
                self.lost.set()
        return self.answer

    def filter(self, args: wire.Args) -> wire.FilterResult:
        names = args.node_names or []
        return wire.FilterResult(
            node_names=names[:1], failed_and_unresolvable_nodes=dict.fromkeys(names[1:], "no room")
        )

    def prioritize(self, args: wire.Args) -> list[wire.HostPriority]:
        return [wire.HostPriority(host=name, score=7) for name in args.node_names or []]

    def preempt(self, args: wire.PreemptionArgs) -> wire.PreemptionResult:
        return wire.PreemptionResult(node_name_to_meta_victims={})


async def the_rest(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b"rest"})


@pytest.fixture
def verbs() -> Recorded:
    return Recorded()


@pytest.fixture
async def client(verbs: Recorded) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=HotPath(verbs, the_rest))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as made:
        yield made


POD = {"metadata": {"name": "p", "namespace": "ns", "uid": "u1"}, "spec": {}, "status": {}}
ARGS = {"Pod": POD, "Nodes": None, "NodeNames": ["n1", "n2"]}
META = {"n1": {"Pods": [{"UID": "v1"}], "NumPDBViolations": 0}}
EXCHANGES: dict[str, tuple[str, Any, Any]] = {
    "bind": ("/bind", BINDING, {"Error": ""}),
    "filter answers names, reasons and an empty error": (
        "/filter",
        ARGS,
        {
            "NodeNames": ["n1"],
            "FailedAndUnresolvableNodes": {"n2": "no room"},
            "Error": "",
        },
    ),
    "prioritize answers a bare list": (
        "/prioritize",
        ARGS,
        [{"Host": "n1", "Score": 7}, {"Host": "n2", "Score": 7}],
    ),
    "preempt answers an empty map, which is a veto": (
        "/preempt",
        {"Pod": POD, "NodeNameToVictims": None, "NodeNameToMetaVictims": META},
        {"NodeNameToMetaVictims": {}},
    ),
}


@pytest.mark.parametrize(("path", "body", "want"), EXCHANGES.values(), ids=EXCHANGES.keys())
async def test_wire_form(client: httpx.AsyncClient, path: str, body: Any, want: Any) -> None:
    response = await client.post(path, json=body)

    assert response.status_code == 200
    assert response.json() == want
    assert response.headers["content-length"] == str(len(response.content))


async def test_bind_passes_uid_and_node(client: httpx.AsyncClient, verbs: Recorded) -> None:
    verbs.answer = "not planned"

    response = await client.post("/bind", json=BINDING)

    assert verbs.asked == [("u1", "n1")]
    assert response.json() == {"Error": "not planned"}


@given(
    body=st.binary(max_size=200)
    | st.builds(
        json.dumps,
        st.recursive(
            st.none() | st.booleans() | st.text(max_size=5) | st.integers(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
        ),
    ).map(str.encode)
)
@settings(max_examples=50, deadline=None)
@pytest.mark.parametrize("path", ["/bind", "/filter", "/prioritize", "/preempt"])
def test_garbage_gets_an_error_and_no_crash(path: str, body: bytes) -> None:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=HotPath(Recorded(), the_rest))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.post(path, content=body)

    response = asyncio.run(ask())

    if path in ("/bind", "/filter"):
        assert response.status_code == 200
        assert response.json()["Error"]
    else:
        assert response.status_code in (200, 400)


async def test_a_body_over_the_limit_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.post("/bind", content=b" " * (BODY_LIMIT + 1))
    assert response.status_code == 413


async def test_other_methods_are_refused(client: httpx.AsyncClient) -> None:
    assert (await client.get("/bind")).status_code == 405


async def test_a_caller_that_hangs_up_ends_the_wait(verbs: Recorded) -> None:
    verbs.wait = True
    asked = iter([{"type": "http.request", "body": json.dumps(BINDING).encode()}])
    sent: list[Message] = []

    async def receive() -> Message:
        return next(asked, {"type": "http.disconnect"})

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/bind"}
    await HotPath(verbs, the_rest)(scope, receive, send)

    assert verbs.lost.is_set()
    assert sent == []
