"""
`python -m extender`: the scheduler service beside a kube-scheduler.

It serves the extender verbs and the debug pages on one port, and runs the engine. The port is on
loopback, or is TLS and takes verbs only from holders of a client certificate. One replica; when it
stops, every parked call is answered and the pods go on with the next one.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn
import uvloop

from extender.addresses import is_loopback, split
from extender.hot import App
from extender.logbook import KEPT
from extender.service import Service
from extender.tls import TlsFiles
from pumice.core import names
from pumice.installed import add_installed_plugins
from pumice.kube import logs
from pumice.kube.clock import SystemClock
from pumice.kube.connections import KEEP_ALIVE_S, Connection
from pumice.kube.health import serving
from pumice.kube.serving import Server
from pumice.kube.tls import BadPairError

BACKLOG = 8192
SWITCH_INTERVAL_S = 0.0005
"""How long the session's thread may keep the event loop waiting."""
COLLECT_AFTER = (2_000, 10, 10)
"""
Rarer collections than the default, as most of what is allocated is kept, in flat rows; but kube-
scheduler opens a connection for nearly every pod, and one that is closed is garbage in circles.
"""


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line; end the process where it would not be safe to do as it says."""
    parser = argparse.ArgumentParser(prog="extender", description=__doc__)
    parser.add_argument("--kubeconfig", help="credentials; in a cluster the ServiceAccount's")
    parser.add_argument("--listen", default="127.0.0.1:10270", help="address of verbs and pages")
    parser.add_argument("--tls-cert", type=Path, help="certificate of that address, PEM")
    parser.add_argument("--tls-key", type=Path, help="its private key, PEM")
    parser.add_argument(
        "--client-ca",
        type=Path,
        help="authority of those who may call the verbs, PEM; whoever it signs for binds pods",
    )
    parser.add_argument(
        "--healthz", default="", help="address of /healthz, /readyz and /metrics alone"
    )
    parser.add_argument("--scheduler-conf", help="file with actions, tiers and plugins")
    parser.add_argument(
        "--scheduler-name",
        action="append",
        help=f"scheduler name to serve, repeatable (default: {names.DEFAULT_SCHEDULER})",
    )
    parser.add_argument("--default-queue", default=names.DEFAULT_QUEUE)
    parser.add_argument(
        "--decision-log", type=Path, help="directory for records of sessions that decided something"
    )
    parser.add_argument(
        "--decision-log-files",
        type=int,
        default=KEPT,
        help="how many are kept (default: %(default)s)",
    )
    parser.add_argument("--log-level", default="info")
    parser.add_argument(
        "--barrier",
        choices=("on", "off"),
        default="on",
        help="off binds each pod as it arrives; for tests that must see gangs torn apart",
    )
    args = parser.parse_args(argv)
    if wrong := _fault(args):
        parser.error(wrong)
    return args


def _fault(args: argparse.Namespace) -> str:
    """Return what is wrong with where to listen, "" when nothing is."""
    try:
        host, _ = split(args.listen)
    except ValueError:
        return f"--listen is host:port, not {args.listen!r}"
    given = [args.tls_cert, args.tls_key, args.client_ca]
    if any(given) and not all(given):
        return "--tls-cert, --tls-key and --client-ca belong together"
    if not any(given) and not is_loopback(host):
        return (
            f"whoever reaches {args.listen} could bind pods: give --tls-cert, --tls-key and"
            " --client-ca, or listen on loopback"
        )
    return ""


def pages(address: str, service: Service) -> contextlib.AbstractAsyncContextManager[None]:
    """Serve health and figures where others reach them, who must not reach the verbs."""
    if not address:
        return contextlib.nullcontext()
    return serving(
        address,
        lambda: not service.watching.missing(),
        service.metrics.made,
        is_alive=service.engine.alive,
    )


def tls_files(args: argparse.Namespace) -> TlsFiles | None:
    """Return the files to serve TLS with, if any; end the process where they are no good."""
    if args.tls_cert is None:
        return None
    try:
        return TlsFiles(args.tls_cert, args.tls_key, args.client_ca, SystemClock())
    except (OSError, BadPairError) as error:
        sys.exit(f"extender: error: --tls-cert, --tls-key, --client-ca: {error}")


def listener(app: App, address: str, files: TlsFiles | None) -> uvicorn.Config:
    """Return how to serve verbs and pages."""
    host, port = split(address)
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http="httptools" if files is None else Connection,
        ssl_context_factory=None if files is None else lambda *_: files.tls.context,
        lifespan="off",
        ws="none",
        access_log=False,
        proxy_headers=False,
        log_config=None,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=5,
    )


async def serve(args: argparse.Namespace) -> None:
    """Run until a signal comes, then end in order."""
    files = tls_files(args)
    service = await Service.connect(args)
    server = Server(listener(service.app, args.listen, files))
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        async with pages(args.healthz, service), asyncio.TaskGroup() as group:
            running = [
                group.create_task(server.serve(), name="http"),
                *service.start(group),
            ]
            if files is not None:
                running.append(group.create_task(files.watch(), name="certificate"))
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
    add_installed_plugins()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*COLLECT_AFTER)
    uvloop.run(serve(args))
