"""The verbs on the wire: what kube-scheduler sends, and exactly what it gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender import wire
from extender.hot import BAD_REQUEST, BODY_LIMIT, VERBS, HotPath, Message, Receive, Scope, Send
from pumice.core.ids import PodUid
from tests.effort import examples
from tests.fakeapi import eventually

BINDING = {"PodName": "p", "PodNamespace": "ns", "PodUID": "u1", "Node": "n1"}
UNREADABLE = {"error": "the body is not what the verb takes"}
EXAMPLES = examples(600, enduring=10_000)


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

    async def filter(self, args: wire.Args) -> wire.FilterResult:
        names = args.node_names
        return wire.FilterResult(
            node_names=names[:1], failed_and_unresolvable_nodes=dict.fromkeys(names[1:], "no room")
        )

    async def prioritize(self, args: wire.Args) -> list[wire.HostPriority]:
        return [wire.HostPriority(host=name, score=7) for name in args.node_names]

    def preempt(self, args: wire.PreemptionArgs) -> wire.PreemptionResult:
        return wire.PreemptionResult(node_name_to_meta_victims={})


async def the_rest(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b"rest"})


@dataclass(frozen=True)
class Answer:
    """What came back of a request."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask(
    app: HotPath, path: str, *parts: bytes, method: str = "POST", **scope: Any
) -> Answer | None:
    """Send a request whose body comes in parts; None where it was not answered."""
    rest = [
        {"type": "http.request", "body": part, "more_body": i < len(parts)}
        for i, part in enumerate(parts, start=1)
    ]
    asked: Iterator[Message] = iter(rest or [{"type": "http.request"}])
    sent: list[Message] = []

    async def receive() -> Message:
        return next(asked, {"type": "http.disconnect"})

    async def send(message: Message) -> None:
        sent.append(message)

    await app({"type": "http", "method": method, "path": path, **scope}, receive, send)
    if not sent:
        return None
    start, body = sent
    return Answer(start["status"], dict(start["headers"]), body["body"])


async def answered(app: HotPath, path: str, *parts: bytes, **more: Any) -> Answer:
    answer = await ask(app, path, *parts, **more)
    assert answer is not None
    return answer


def body(value: Any) -> bytes:
    return json.dumps(value).encode()


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


@pytest.mark.parametrize(("path", "asked", "want"), EXCHANGES.values(), ids=EXCHANGES.keys())
async def test_wire_form(path: str, asked: Any, want: Any) -> None:
    answer = await answered(HotPath(Recorded(), the_rest), path, body(asked))

    assert (answer.status, answer.json) == (200, want)
    assert int(answer.headers[b"content-length"]) == len(answer.body)


async def test_bind_passes_uid_and_node() -> None:
    verbs = Recorded(answer="not planned")

    answer = await answered(HotPath(verbs, the_rest), "/bind", body(BINDING))

    assert verbs.asked == [("u1", "n1")]
    assert answer.json == {"Error": "not planned"}


WHOLE_NODES = {"Pod": POD, "Nodes": {"items": []}, "NodeNames": None}
UNDERSTOOD_BY_NAME: dict[str, tuple[str, Any, Any]] = {
    "filter": (
        "/filter",
        WHOLE_NODES,
        {"NodeNames": [], "FailedAndUnresolvableNodes": {}, "Error": BAD_REQUEST},
    ),
    "prioritize": ("/prioritize", WHOLE_NODES, UNREADABLE),
    "preempt": (
        "/preempt",
        {"Pod": POD, "NodeNameToVictims": {}, "NodeNameToMetaVictims": None},
        UNREADABLE,
    ),
}


@pytest.mark.parametrize(
    ("path", "asked", "want"), UNDERSTOOD_BY_NAME.values(), ids=UNDERSTOOD_BY_NAME.keys()
)
async def test_a_request_with_whole_nodes_is_an_error_and_no_verdict(
    path: str, asked: Any, want: Any
) -> None:
    answer = await answered(HotPath(Recorded(), the_rest), path, body(asked))
    assert answer.json == want


async def test_a_body_may_come_in_parts() -> None:
    whole = body(BINDING)
    answer = await answered(HotPath(Recorded(), the_rest), "/bind", whole[:7], whole[7:])
    assert answer.json == {"Error": ""}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.text(max_size=5) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
)
GARBAGE = st.binary(max_size=200) | ANYTHING.map(body)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """A loop for many short questions: to make one takes longer than they do."""
    with asyncio.Runner() as made:
        yield made


@given(garbage=GARBAGE)
@settings(max_examples=EXAMPLES)
def test_garbage_crashes_nothing_binds_nothing_and_lets_nothing_through(
    runner: asyncio.Runner, garbage: bytes
) -> None:
    app = HotPath(Recorded(), the_rest)

    async def ask_all() -> dict[str, Answer]:
        return {path: await answered(app, path, garbage) for path in VERBS}

    got = runner.run(ask_all())

    assert (got["/bind"].status, bool(got["/bind"].json["Error"])) == (200, True)
    assert (got["/filter"].status, got["/filter"].json["NodeNames"]) == (200, [])
    assert {got["/prioritize"].status, got["/preempt"].status} <= {200, 400}


async def test_a_body_over_the_limit_is_refused() -> None:
    app = HotPath(Recorded(), the_rest)
    answer = await answered(app, "/bind", b" " * BODY_LIMIT, b" ")
    assert answer.status == 413


async def test_other_methods_are_refused() -> None:
    answer = await answered(HotPath(Recorded(), the_rest), "/bind", method="GET")
    assert answer.status == 405


async def test_other_paths_go_to_the_rest() -> None:
    answer = await answered(HotPath(Recorded(), the_rest), "/healthz", method="GET")
    assert (answer.status, answer.body) == (404, b"rest")


CLIENTS: dict[str, tuple[dict[str, Any], int]] = {
    "one without TLS": ({}, 401),
    "one that shows no certificate": ({"tls": {"client_cert_name": None}}, 401),
    "one that shows a certificate": ({"tls": {"client_cert_name": "kube-scheduler"}}, 200),
    "one whose certificate names nobody": ({"tls": {"client_cert_name": ""}}, 200),
}


@pytest.mark.parametrize(("extensions", "want"), CLIENTS.values(), ids=CLIENTS.keys())
@pytest.mark.parametrize(
    ("path", "asked"),
    [(path, asked) for path, asked, _ in EXCHANGES.values()],
    ids=EXCHANGES.keys(),
)
async def test_a_guarded_verb_answers_holders_of_a_certificate_alone(
    path: str, asked: Any, extensions: dict[str, Any], want: int
) -> None:
    verbs = Recorded()
    app = HotPath(verbs, the_rest, guarded=True)

    answer = await answered(app, path, body(asked), extensions=extensions)

    assert answer.status == want
    assert bool(verbs.asked) == (want == 200 and path == "/bind")


async def test_what_is_no_verb_needs_no_certificate() -> None:
    answer = await answered(HotPath(Recorded(), the_rest, guarded=True), "/healthz", method="GET")
    assert answer.body == b"rest"


async def test_a_caller_that_hangs_up_ends_the_wait() -> None:
    verbs = Recorded(wait=True)
    assert await ask(HotPath(verbs, the_rest), "/bind", body(BINDING)) is None
    assert verbs.lost.is_set()


async def test_a_request_that_the_server_ends_ends_the_wait() -> None:
    verbs = Recorded(wait=True)
    never = asyncio.Event()
    sent: list[Message] = []
    asked: Iterator[Message] = iter([{"type": "http.request", "body": body(BINDING)}])

    async def receive() -> Message:
        if (request := next(asked, None)) is None:
            await never.wait()
        return request or {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    app = HotPath(verbs, the_rest)
    scope = {"type": "http", "method": "POST", "path": "/bind"}
    request = asyncio.create_task(app(scope, receive, send))
    await eventually(lambda: _has(verbs.asked))
    request.cancel()
    await asyncio.wait({request})

    assert request.cancelled()
    assert verbs.lost.is_set()
    assert sent == []


async def _has(things: list[tuple[str, str]]) -> bool:
    return bool(things)
