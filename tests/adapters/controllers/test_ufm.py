"""Asking a fabric manager, against a server that plays one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import encode_basic_auth, web
from aiohttp.test_utils import TestServer

from controllers import ufm
from pumice.core.hypernodes.configuration import UfmSource
from pumice.core.hypernodes.ufm import UfmError

BODY = b'[{"description": "Computer", "system_name": "n", "peer_node_name": "l"}]'


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    async def ports(request: web.Request) -> web.Response:
        allowed = encode_basic_auth("u", "p") == request.headers.get("Authorization")
        return web.Response(body=BODY) if allowed else web.Response(status=401)

    app = web.Application()
    app.add_routes([web.get(ufm.PORTS, ports)])
    running = TestServer(app)
    async with running:
        yield running


def a_source(server: TestServer) -> UfmSource:
    return UfmSource(str(server.make_url("")), ("ns", "secret"))


async def test_the_ports_are_asked_for_with_name_and_password(server: TestServer) -> None:
    assert await ufm.ports(a_source(server), "u", "p") == BODY


async def test_an_answer_that_is_no_success_is_told(server: TestServer) -> None:
    with pytest.raises(UfmError, match="/ufmRest/resources/ports answered 401"):
        await ufm.ports(a_source(server), "u", "wrong")


async def test_a_server_that_is_away_is_told(server: TestServer) -> None:
    source = a_source(server)
    await server.close()
    with pytest.raises(UfmError, match="/ufmRest/resources/ports: "):
        await ufm.ports(source, "u", "p")


async def test_an_answer_without_end_is_refused(
    server: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ufm, "MAX_BODY", 10)
    with pytest.raises(UfmError, match="longer than 10 bytes"):
        await ufm.ports(a_source(server), "u", "p")
