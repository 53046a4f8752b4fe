"""
`python -m webhooks admission-init`: writes the Secret with the certificate, and exits.

For installations that make the certificate before the webhooks start, by a hook of Helm, and
mount the Secret. Nobody may come to renew it, so it lives for ten years. One that is in the first
two thirds of its life is left as it is: an upgrade does not change what the API server trusts.
One that is empty, spoilt, due, or for other names is written anew.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from pumice.kube import logs
from pumice.kube.client import Client, Preconditions
from pumice.kube.clock import Clock, SystemClock
from pumice.kube.config import connect
from pumice.kube.patches import ApplyPatch, MergePatch
from pumice.kube.resources import SECRETS
from webhooks import material as m
from webhooks.keeper import Place

log = logging.getLogger(__name__)

COMMAND: Final = "admission-init"


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog=f"webhooks {COMMAND}", description=__doc__)
    parser.add_argument("--service", required=True, help="the Service in front of the webhooks")
    parser.add_argument("--secret", required=True, help="the Secret that is written")
    parser.add_argument("--namespace", default="default", help="where both are")
    parser.add_argument("--kubeconfig", help="credentials; in a cluster the ServiceAccount's")
    parser.add_argument("--log-level", default="info")
    return parser.parse_args(argv)


def hosts(service: str, namespace: str) -> tuple[str, ...]:
    """Return the names that the API server may call a Service by."""
    return (f"{service}.{namespace}.svc", f"{service}.{namespace}", service)


async def write(client: Client, place: Place, names: tuple[str, ...], clock: Clock) -> bool:
    """Make the Secret good for these names; return whether it had to be written."""
    now = datetime.fromtimestamp(clock.now(), UTC)
    body = {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {"name": place.name},
        "type": "Opaque",
    }
    secret = await client.patch(SECRETS, place.namespace, place.name, ApplyPatch(body))
    found = m.read(secret.data)
    wrong = m.fault(found, names, now) if found else "it is empty"
    if not wrong:
        log.info("secret %s is good", place.key)
        return False
    log.info("secret %s: %s; writing a new certificate", place.key, wrong)
    life = m.AUTHORITY_LIFE
    if found and found.ours:
        new = m.renew(found, names, now, life=life)
    else:
        new = m.make(names, now, life=life)
    meta = secret.metadata
    given = Preconditions(uid=meta.uid, resource_version=meta.resource_version)
    patch = MergePatch({"data": m.written(new)})
    await client.patch(SECRETS, place.namespace, place.name, patch, given=given)
    return True


async def _run(args: argparse.Namespace) -> None:
    place = Place(args.namespace, args.secret)
    async with await connect(args.kubeconfig, component=COMMAND) as client:
        await write(client, place, hosts(args.service, args.namespace), SystemClock())


def main(argv: Sequence[str]) -> None:
    """Write the Secret and exit."""
    args = arguments(argv)
    logs.configure(args.log_level)
    asyncio.run(_run(args))
