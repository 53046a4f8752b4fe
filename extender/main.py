"""
`python -m extender`: the scheduler service beside a kube-scheduler.

It serves the extender verbs and the debug pages on one loopback port, and runs the engine. One
replica; when it stops, every parked call is answered and the pods go on with the next one.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import signal
import sys
from collections.abc import Iterator, Sequence

import uvicorn
import uvloop

from extender.service import Service
from pumice.core import names
from pumice.kube import logs

KEEP_ALIVE_S = 120
BACKLOG = 8192
SWITCH_INTERVAL_S = 0.0005
"""How long the session's thread may keep the event loop waiting."""
COLLECT_AFTER = (50_000, 20, 50)
"""Rarer collections than the default: most of what is allocated is kept, in flat rows."""


class Server(uvicorn.Server):
    """uvicorn without its own signal handling: parked calls have to be answered first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to `serve`."""
        yield


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="extender", description=__doc__)
    parser.add_argument("--kubeconfig", help="credentials; in a cluster the ServiceAccount's")
    parser.add_argument("--listen", default="127.0.0.1:10270", help="address of verbs and pages")
    parser.add_argument("--scheduler-conf", help="file with actions, tiers and plugins")
    parser.add_argument(
        "--scheduler-name",
        action="append",
        help=f"scheduler name to serve, repeatable (default: {names.DEFAULT_SCHEDULER})",
    )
    parser.add_argument("--default-queue", default=names.DEFAULT_QUEUE)
    parser.add_argument("--log-level", default="info")
    parser.add_argument(
        "--barrier",
        choices=("on", "off"),
        default="on",
        help="off binds each pod as it arrives; for tests that must see gangs torn apart",
    )
    return parser.parse_args(argv)


async def serve(args: argparse.Namespace) -> None:
    """Run until a signal comes, then end in order."""
    host, _, port = args.listen.rpartition(":")
    service = await Service.connect(args)
    server = Server(
        uvicorn.Config(
            service.app,
            host=host,
            port=int(port),
            http="httptools",
            lifespan="off",
            access_log=False,
            log_config=None,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=5,
        )
    )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        async with asyncio.TaskGroup() as group:
            running = [
                group.create_task(server.serve(), name="http"),
                *service.start(group),
            ]
            await stop.wait()
            await service.stop()
            server.should_exit = True
            await running[0]
            for task in running:
                task.cancel()
    finally:
        await service.client.close()


def main(argv: Sequence[str] | None = None) -> None:
    """Start the service."""
    args = arguments(argv)
    logs.configure(args.log_level)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*COLLECT_AFTER)
    uvloop.run(serve(args))
