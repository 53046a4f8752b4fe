"""
Ask pods whether they are ready: HTTP answered with a status from 200 to 399, or a port open.

Addresses come from the API server at the time of asking. An answer is read no further than its
status, a redirection is not followed, and nothing of it is told to anybody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import aiohttp
import msgspec
from yarl import URL

from pumice.core import names
from pumice.core.api.meta import Struct
from pumice.core.flows.types import Check
from pumice.core.jobs.membership import owner_uid
from pumice.kube.client import Client, Selector
from pumice.kube.resources import PODS, Plain, Resource

TIMEOUT_S: Final = 1.0
IN_FLIGHT: Final = 128

Ask = Callable[[str, Check], Awaitable[bool]]
"""Make a check at an address; tell whether the answer is as it should be."""


class PodAddress(Struct):
    """What of a pod's status says how to reach it."""

    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")


class Reachable(Plain):
    """A pod, as far as one wants to talk to it."""

    status: PodAddress = msgspec.field(default_factory=PodAddress)


ADDRESSES: Final = Resource(PODS.api_version, PODS.kind, PODS.plural, Reachable)


async def ask(address: str, check: Check) -> bool:
    """Make a check over the network."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            if check.path is None:
                return await _is_open(address, check.port)
            return await _answers(address, check.port, check.path, check.header)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return False  # ValueError: a path or a header that HTTP cannot carry.


async def _is_open(address: str, port: int) -> bool:
    _, writer = await asyncio.open_connection(address, port)
    writer.close()
    return True


async def _answers(address: str, port: int, path: str, header: tuple[str, str] | None) -> bool:
    # Built of its parts: a path may not name another host.
    place, _, query = path.partition("?")
    url = URL.build(
        scheme="http", host=address, port=port, path=f"/{place.lstrip('/')}", query_string=query
    )
    headers = dict([header]) if header else {}
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, headers=headers, allow_redirects=False) as response,
    ):
        return 200 <= response.status < 400


class Prober:
    """Makes checks of many pods at once."""

    def __init__(self, client: Client, send: Ask = ask) -> None:
        self._client = client
        self._send = send
        self._slots = asyncio.Semaphore(IN_FLIGHT)

    async def count(self, namespace: str, check: Check) -> int:
        """Return how many running pods of the check's task answer as they should."""
        labels = f"{names.JOB_NAME}={check.job},{names.TASK_SPEC}={check.task}"
        pods = await self._client.list(ADDRESSES, Selector(namespace, labels=labels))
        answers = await asyncio.gather(
            *(self._one(pod, check) for pod in _running(pods, check.uid))
        )
        return sum(answers)

    async def _one(self, pod: Reachable, check: Check) -> bool:
        async with self._slots:
            return await self._send(pod.status.pod_ip, check)


def _running(pods: Sequence[Reachable], job_uid: str) -> list[Reachable]:
    """Return those pods of a Job that run; whoever else has its labels is not asked."""
    return [
        pod
        for pod in pods
        if pod.status.phase == "Running"
        and pod.status.pod_ip
        and pod.metadata.deletion_timestamp is None
        and owner_uid(pod.metadata) == job_uid
    ]
