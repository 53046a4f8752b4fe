"""Whatever the debug API is asked, it answers, soon, and not with a fault of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_plus

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from extender.main import arguments
from extender.service import Service
from pumice.core.api.scheduling import Queue
from tests.adapters.extender.bed import Bed
from tests.adapters.extender.pages import PAGES
from tests.adapters.extender.world import a_group, a_node, a_pod
from tests.effort import examples

ANSWER_S = 20.0
ANN = b"Bearer token-of-ann"

Headers = list[tuple[bytes, bytes]]

words = st.one_of(
    st.sampled_from(
        ["ns", "gang", "a", "n1", "default", "job", "pod", "podgroup", "", "..", "%00"]
    ),
    st.text(max_size=12),
)
paths = st.one_of(
    st.builds(
        lambda page, kind, name: page.path.format(kind=kind, namespace="ns", name=name),
        st.sampled_from(PAGES),
        st.sampled_from(["podgroup", "pod", "job"]),
        st.sampled_from(["gang", "a", "b", "c", "default"]),
    ),
    st.builds(
        lambda page, kind, namespace, name: page.path.format(
            kind=kind, namespace=namespace, name=name
        ),
        st.sampled_from(PAGES),
        words,
        words,
        words,
    ),
    st.lists(words, max_size=6).map(lambda parts: "/debug/" + "/".join(parts)),
    st.text(max_size=20).map(lambda text: f"/{text}"),
)
queries = st.lists(
    st.tuples(
        st.one_of(
            st.sampled_from(["limit", "after", "namespace", "queue", "node"]), st.text(max_size=5)
        ),
        st.one_of(words, st.integers().map(str)),
    ),
    max_size=2,
).map(lambda pairs: "&".join(f"{quote_plus(k)}={quote_plus(v)}" for k, v in pairs).encode())
tokens = st.one_of(
    st.sampled_from([b"", b"Bearer", ANN, b"bearer x", b"Basic eDp5"]),
    st.binary(max_size=20),
)
headers = st.lists(
    st.tuples(
        st.sampled_from([b"authorization", b"content-type", b"content-length", b"accept", b"host"]),
        tokens,
    ),
    max_size=2,
)
methods = st.one_of(st.just("GET"), st.sampled_from(["HEAD", "POST", "PUT", "OPTIONS", "BREW"]))


class Asked:
    """An extender in the middle of its work, and a loop to ask it on."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self.runner = runner
        bed = Bed()
        bed.api.reviews.let("ann", "get podgroups", "list pods", namespace="ns")
        self.extender = Service.assemble(bed.api.client(), arguments([]), bed.clock)
        model = self.extender.model
        model.cluster.set_queue(msgspec.convert({"metadata": {"name": "default"}}, Queue))
        model.set_node(a_node("n1"))
        model.cluster.set_pod_group(a_group(3))
        for pod in (a_pod("a"), a_pod("b", cpu="9"), a_pod("c", gates=None, node="n1")):
            model.set_pod(pod)
        runner.run(self.extender.engine.session())

    def ask(self, method: str, path: str, query: bytes, given: Headers) -> tuple[int, bytes]:
        return self.runner.run(asyncio.wait_for(self._ask(method, path, query, given), ANSWER_S))

    async def _ask(self, method: str, path: str, query: bytes, given: Headers) -> tuple[int, bytes]:
        sent: list[Any] = []
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query,
            "headers": given,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }

        asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive() -> Any:
            # The caller says what it wants, and then stays on the line.
            return next(asked, None) or await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message)

        await self.extender.app(scope, receive, send)
        start, *rest = sent
        return start["status"], b"".join(part.get("body", b"") for part in rest)


@pytest.fixture(scope="module")
def asked() -> Iterator[Asked]:
    with asyncio.Runner() as runner:
        yield Asked(runner)


@settings(max_examples=examples(300, enduring=10_000))
@given(method=methods, path=paths, query=queries, given_headers=headers)
@example("GET", "/debug/explain/podgroup/ns/gang", b"", [])
@example(
    "GET", "/debug/explain/podgroup/ns/gang", b"", [(b"authorization", b"Bearer token-of-ann")]
)
@example("GET", "/debug/explain/pod/ns/b", b"node=n1", [])
@example("GET", "/debug/podgroups/ns/gang", b"limit=999999999999999999999", [])
@example("GET", "/debug/podgroups", b"after=%FF%FE&limit=1&limit=2", [])
@example("GET", "/debug/ledger", b"namespace=" + b"n" * 100_000, [])
@example("GET", "/debug/sessions", b"namespace=ns", [(b"authorization", b"Bearer \xff\xfe\x00")])
def test_every_question_has_an_answer(
    asked: Asked, method: str, path: str, query: bytes, given_headers: Headers
) -> None:
    status, body = asked.ask(method, path, query, given_headers)
    assert status < 500, body
    if path.startswith("/debug/") and status not in (200, 307):
        problem = msgspec.json.decode(body) if body else {}
        assert set(problem) <= {"detail"}
