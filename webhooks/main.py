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
import sys
from collections.abc import Sequence

import uvloop

from pumice.kube import logs
from pumice.kube.clock import SystemClock
from pumice.kube.config import connect
from pumice.kube.health import serving
from webhooks import flags, init
from webhooks.files import CertificateFilesError
from webhooks.flags import COMPONENT, settings
from webhooks.metrics import Metrics
from webhooks.service import Service

log = logging.getLogger(__name__)


async def serve(args: argparse.Namespace) -> None:
    """Run until SIGTERM or SIGINT, then end in order."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    metrics = Metrics()
    found = await connect(args.kubeconfig, component=COMPONENT, server=args.master)
    async with found as client:
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


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    return flags.arguments(argv, __doc__)


def main(argv: Sequence[str] | None = None) -> None:
    """Start the process."""
    given = sys.argv[1:] if argv is None else list(argv)
    if given[:1] == [init.COMMAND]:
        init.main(given[1:])
        return
    args = arguments(given)
    if files := settings(args).certificate:
        try:
            files.read()
        except CertificateFilesError as error:
            sys.exit(str(error))
    logs.configure(args.log_level)
    uvloop.run(serve(args))
