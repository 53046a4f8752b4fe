"""What a process says about itself."""

from __future__ import annotations

import socket

import aiohttp

from pumice.kube.health import serving
from pumice.kube.metrics import Metrics


async def test_ready_only_when_the_process_says_so() -> None:
    ready = False
    address = f"127.0.0.1:{free_port()}"
    metrics = Metrics("volcano_")
    metrics.gauge("thing", "A thing.").set(3)

    async with (
        serving(address, lambda: ready, metrics),
        aiohttp.ClientSession(f"http://{address}") as session,
    ):
        assert await status(session, "/healthz") == 200
        assert await status(session, "/readyz") == 503
        ready = True
        assert await status(session, "/readyz") == 200
        assert await status(session, "/other") == 404
        async with session.get("/metrics") as answer:
            assert answer.content_type == "text/plain"
            assert "volcano_thing 3.0" in await answer.text()


async def test_a_process_may_know_that_it_is_not_well() -> None:
    alive = True
    address = f"127.0.0.1:{free_port()}"
    async with (
        serving(address, lambda: True, Metrics(), is_alive=lambda: alive),
        aiohttp.ClientSession(f"http://{address}") as session,
    ):
        assert await status(session, "/healthz") == 200
        alive = False
        assert await status(session, "/healthz") == 500


async def test_what_is_waited_for_may_be_told() -> None:
    ready = False
    address = f"127.0.0.1:{free_port()}"
    async with (
        serving(address, lambda: ready, Metrics(), report=lambda: "[-] pods"),
        aiohttp.ClientSession(f"http://{address}") as session,
    ):
        async with session.get("/readyz") as answer:
            assert await answer.text() == "not ready\n[-] pods"
        ready = True
        async with session.get("/readyz") as answer:
            assert await answer.text() == "ok\n[-] pods"


async def status(session: aiohttp.ClientSession, path: str) -> int:
    async with session.get(path) as answer:
        return answer.status


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
