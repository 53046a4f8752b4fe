"""Ask a Unified Fabric Manager for its ports."""

from __future__ import annotations

import base64

import aiohttp

from pumice.core.hypernodes.configuration import UfmSource
from pumice.core.hypernodes.ufm import UfmError

PORTS = "/ufmRest/resources/ports"
TIMEOUT_S = 30.0
MAX_BODY = 100 * 2**20


async def ports(source: UfmSource, username: str, password: str) -> bytes:
    """Return the body of the answer; raise UfmError where there is none that can be used."""
    token = base64.b64encode(f"{username}:{password}".encode()).decode()
    headers = {"Authorization": f"Basic {token}"}
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    url = source.endpoint.rstrip("/") + PORTS
    try:
        async with (
            aiohttp.ClientSession(headers=headers, timeout=timeout) as session,
            session.get(url, ssl=source.is_verified) as answer,
        ):
            if answer.status != 200:
                raise UfmError(f"{url} answered {answer.status}")
            body = await answer.content.read(MAX_BODY + 1)
            while len(body) <= MAX_BODY and (more := await answer.content.read(MAX_BODY)):
                body += more
    except (aiohttp.ClientError, TimeoutError) as error:
        raise UfmError(f"{url}: {str(error) or type(error).__name__}") from error
    if len(body) > MAX_BODY:
        raise UfmError(f"{url}: the answer is longer than {MAX_BODY} bytes")
    return body
