"""What the process says about itself: /healthz, /readyz and /metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from pumice.kube.metrics import CONTENT_TYPE, Metrics


@asynccontextmanager
async def serving(
    address: str,
    is_ready: Callable[[], bool],
    metrics: Metrics,
    *,
    is_alive: Callable[[], bool] = lambda: True,
    report: Callable[[], str] = lambda: "",
) -> AsyncIterator[None]:
    """
    Answer at `host:port` while the block runs; without a host, on every address of this one.

    `report` says more about being ready or not, for people.

    Healthy is a process that answers at all, where `is_alive` does not know better: one that
    loses a part of itself ends as a whole.
    """

    async def healthz(_: web.Request) -> web.Response:
        if is_alive():
            return web.Response(text="ok")
        return web.Response(status=500, text="not alive")

    async def readyz(_: web.Request) -> web.Response:
        ready = is_ready()
        text = "\n".join(filter(None, ["ok" if ready else "not ready", report()]))
        return web.Response(status=200 if ready else 503, text=text)

    async def render(_: web.Request) -> web.Response:
        return web.Response(body=await metrics.render(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.add_routes(
        [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", render)]
    )
    host, _, port = address.rpartition(":")
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, int(port)).start()
        yield
    finally:
        await runner.cleanup()
