"""
`python -m webhooks`: defaults and validation of Volcano's kinds, over TLS.

The certificate is made here and kept in a Secret; the registration with the API server is kept
right. Replicas need no leader: they agree by the Secret. When the process ends, the registration
stays: Jobs are refused until another one answers, and nobody else notices.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
from collections.abc import Sequence

import uvloop

from pumice.core import names
from pumice.core.admission.queues import Rules
from pumice.kube import logs
from pumice.kube.clock import SystemClock
from pumice.kube.config import connect
from pumice.kube.health import serving
from webhooks.metrics import Metrics
from webhooks.register import Endpoint
from webhooks.reviews import Options
from webhooks.service import Service, Settings

log = logging.getLogger(__name__)

COMPONENT = "pumice-webhooks"


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="webhooks", description=__doc__)
    parser.add_argument("--kubeconfig", help="credentials; in a cluster the ServiceAccount's")
    parser.add_argument("--listen", default="0.0.0.0:8443", help="address of the webhooks, TLS")
    parser.add_argument("--namespace", default=names.NAMESPACE, help="where Service and Secret are")
    parser.add_argument("--service", default=COMPONENT, help="the Service in front, port 443")
    parser.add_argument(
        "--url", default="", help="where the API server finds us, instead of the Service"
    )
    parser.add_argument("--secret", default=f"{COMPONENT}-tls", help="keeps the certificate")
    parser.add_argument(
        "--healthz", default="127.0.0.1:11252", help="address of /healthz, /readyz and /metrics"
    )
    parser.add_argument(
        "--scheduler-name",
        action="append",
        help=f"scheduler name to serve, repeatable; new Jobs get the first"
        f" (default: {names.DEFAULT_SCHEDULER})",
    )
    parser.add_argument(
        "--gate",
        choices=("auto", "on", "off"),
        default="auto",
        help="put the gate on pods; auto: where the admission policy is not there",
    )
    parser.add_argument("--max-queue-depth", type=int, default=5)
    parser.add_argument(
        "--enable-root-queue-protection", action=argparse.BooleanOptionalAction, default=True
    )
    parser.add_argument(
        "--enable-queue-allocated-pods-check", action=argparse.BooleanOptionalAction, default=False
    )
    parser.add_argument("--log-level", default="info")
    return parser.parse_args(argv)


def settings(args: argparse.Namespace) -> Settings:
    """Return what the command line says."""
    host, _, port = args.listen.rpartition(":")
    rules = Rules(
        max_depth=args.max_queue_depth,
        protects_root=args.enable_root_queue_protection,
        keeps_allocated=args.enable_queue_allocated_pods_check,
    )
    return Settings(
        host=host,
        port=int(port),
        endpoint=Endpoint(args.namespace, args.service, args.url),
        secret=args.secret,
        options=Options(tuple(args.scheduler_name or [names.DEFAULT_SCHEDULER]), rules),
        gate=args.gate,
    )


async def serve(args: argparse.Namespace) -> None:
    """Run until SIGTERM or SIGINT, then end in order."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    metrics = Metrics()
    async with await connect(args.kubeconfig, component=COMPONENT) as client:
        service = Service(client, settings(args), metrics, SystemClock())
        async with (
            serving(args.healthz, lambda: service.is_ready, metrics.made),
            asyncio.TaskGroup() as group,
        ):
            running = group.create_task(service.run(), name="webhooks")
            await stop.wait()
            log.info("stopping")
            await service.stop()
            running.cancel()


def main(argv: Sequence[str] | None = None) -> None:
    """Start the process."""
    args = arguments(argv)
    logs.configure(args.log_level)
    uvloop.run(serve(args))
