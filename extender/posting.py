"""
Posting bindings: at most `SLOTS` at a time, retried inside the open call.

A binding carries the pod's uid, so it can be sent again: a pod that is on the node already is a
success, whoever's answer was lost. The API server being away is waited out for as long as the
call is open; what it refuses for good is told to the caller in a text that names no internals.
"""

from __future__ import annotations

import asyncio
import logging

from pumice.core.ledger import Entry
from pumice.kube.client import Client
from pumice.kube.clock import Clock
from pumice.kube.errors import (
    ApiError,
    Conflict,
    Disconnected,
    NotFound,
    ServerError,
    TooManyRequests,
)
from pumice.kube.resources import PODS

log = logging.getLogger(__name__)

SLOTS = 64
FIRST_WAIT_S = 0.05
LAST_WAIT_S = 2.0
REFUSED = "the API server refused the binding"
GONE = "the pod is gone"


class Poster:
    """Posts bindings with the client's rights."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._slots = asyncio.Semaphore(SLOTS)

    async def post(self, entry: Entry, node: str) -> str:
        """Bind a pod to a node; return "" once it is, else what is wrong."""
        wait_s = FIRST_WAIT_S
        while True:
            try:
                async with self._slots:
                    await self._client.bind(entry.namespace, entry.name, uid=entry.uid, node=node)
            except (TooManyRequests, ServerError, Disconnected) as error:
                log.info("binding of %s/%s: %s", entry.namespace, entry.name, error)
                await self._clock.sleep(wait_s)
                wait_s = min(2 * wait_s, LAST_WAIT_S)
            except Conflict:
                answer = await self._after_conflict(entry, node)
                if answer is not None:
                    return answer
                await self._clock.sleep(wait_s)
            except NotFound:
                return GONE
            except ApiError as error:
                log.warning("binding of %s/%s: %s", entry.namespace, entry.name, error)
                return REFUSED
            else:
                return ""

    async def _after_conflict(self, entry: Entry, node: str) -> str | None:
        """Look where the pod is: a binding that was accepted, its answer lost, also conflicts."""
        try:
            pod = await self._client.get(PODS, entry.namespace, entry.name)
        except NotFound:
            return GONE
        except (TooManyRequests, ServerError, Disconnected):
            return None
        if pod.metadata.uid != entry.uid or pod.metadata.deletion_timestamp:
            return GONE
        return "" if pod.spec.node_name == node else REFUSED
