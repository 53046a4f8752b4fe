"""What the sources of figures have in common."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import aiohttp
import msgspec

from pumice.core.model.inputs import Load

TIMEOUT_S = 10.0
PERIOD = "10m"
"""What the figures are averages of."""

Figures = Mapping[str, tuple[float, float]]
"""Node, as the source calls it -> percent, and when that was measured, in seconds since 1970."""


class SourceError(Exception):
    """There are no figures; the text says where and why."""


class Source(Protocol):
    """Somebody who knows how busy nodes are."""

    async def read(self) -> dict[str, Load]:
        """Return the figures by node; raise SourceError where there are none to be had."""


def joined(cpu: Figures, memory: Figures) -> dict[str, Load]:
    """Return the loads of the nodes of which both figures are known."""
    loads = {}
    for node in cpu.keys() & memory.keys():
        (busy, at), (full, then) = cpu[node], memory[node]
        if math.isfinite(busy) and math.isfinite(full):
            loads[node] = Load(busy, full, min(at, then))
    return loads


@dataclass(frozen=True, slots=True)
class JsonServer:
    """A server that answers in JSON."""

    address: str
    #: False where its certificate is not looked at
    verify: bool = True
    user: str = ""
    password: str = ""

    async def ask(
        self, path: str, query: Mapping[str, str] | None = None, body: Any = None
    ) -> dict[str, Any]:
        """Return the answer to a GET, or to a POST where there is a body."""
        url = self.address.rstrip("/") + path
        headers = {"Content-Type": "application/json"}
        if self.user:
            pair = f"{self.user}:{self.password}".encode()
            headers["Authorization"] = f"Basic {b64encode(pair).decode()}"
        data = None if body is None else msgspec.json.encode(body)
        try:
            async with (
                aiohttp.ClientSession() as http,
                http.request(
                    "GET" if data is None else "POST",
                    url,
                    params=query,
                    data=data,
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
                    ssl=self.verify,
                ) as response,
            ):
                content = await response.read()
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise SourceError(f"{url}: {str(error) or type(error).__name__}") from error
        if response.status != 200:
            raise SourceError(f"{url}: status {response.status}")
        try:
            return msgspec.json.decode(content, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise SourceError(f"{url}: {error}") from error
