"""
Connections that are slow, or say nothing, are cut; and it is known who a client is.

A client sends a question at once or not at all. Whoever is slower holds a connection for
nothing: the head of a request must be there within 5 s, the whole of it within 30 s. Between
requests a connection may rest for as long as Go's client keeps it, and longer, so that it is
never the server that closes it in the middle of a question.

A client that has shown a certificate is named in the request's scope, as the ASGI extension `tls`
has it. It may be silent from the start: Go's client opens connections that it uses only later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

log = logging.getLogger(__name__)

HEAD_S = 5.0
BODY_S = 30.0
KEEP_ALIVE_S = 120


class Connection(HttpToolsProtocol):
    """uvicorn's connection with deadlines."""

    head_s = HEAD_S
    body_s = BODY_S

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._client_name: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._client_name = common_name(transport.get_extra_info("peercert"))
        if self._client_name is None:
            self._expect(self.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self.scheme == "https":
            tls = {"client_cert_name": self._client_name}
            self.scope["extensions"] = {"tls": tls}  # type: ignore[dict-item]
        self._expect(self.head_s)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._expect(self.body_s)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._expect(None)

    def _expect(self, seconds: float | None) -> None:
        """Wait so long for what comes next; None ends the waiting."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._cut)

    def _cut(self) -> None:
        log.info("%s: too slow, cut", self.client)
        self.transport.abort()


def common_name(certificate: Mapping[str, Any] | None) -> str | None:
    """Return whom a client's certificate names, as `ssl` decodes it; None without one."""
    if not certificate:
        return None
    subject: Iterable[Iterable[tuple[str, str]]] = certificate.get("subject", ())
    names = (value for part in subject for key, value in part if key == "commonName")
    return next(names, "")


def client_of(scope: Mapping[str, Any]) -> str | None:
    """Return whom the client's certificate names; None where it has shown none."""
    name: str | None = scope.get("extensions", {}).get("tls", {}).get("client_cert_name")
    return name
