"""
A small synchronous client of the local API server.

It is for setting the scene (nodes, manifests) and for looking at it from tests and the command
line: plain JSON, one kept-alive connection per thread, no caches. The services use `pumice.kube`.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from pumice.local.certs import Pair
from pumice.local.errors import ApiError

Object = dict[str, Any]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

TIMEOUT_S = 30.0


class Api:
    """Requests as one user; safe to use from several threads."""

    def __init__(self, server: str, authority: bytes, pair: Pair, directory: Path) -> None:
        parts = urlsplit(server)
        self.server = server
        self._address = (parts.hostname or "127.0.0.1", parts.port or 443)
        self._tls = ssl.create_default_context(cadata=authority.decode())
        # The ssl module takes client certificates from files only.
        self._tls.load_cert_chain(*pair.write(directory, "api-client"))
        self._local = threading.local()

    def get(self, path: str, **query: str) -> Any:
        """Return the decoded answer of a GET."""
        return self.request("GET", _with_query(path, query))

    def post(self, path: str, body: Object) -> Any:
        """Create an object, or post to a subresource."""
        return self.request("POST", path, body)

    def put(self, path: str, body: Object) -> Any:
        """Replace an object."""
        return self.request("PUT", path, body)

    def patch(self, path: str, body: Any, kind: str = MERGE_PATCH) -> Any:
        """Patch an object."""
        return self.request("PATCH", path, body, kind)

    def apply(self, path: str, body: Object, manager: str = "pumice") -> Any:
        """Apply an object on the server's side, taking conflicting fields over."""
        query = {"fieldManager": manager, "force": "true"}
        return self.request("PATCH", _with_query(path, query), body, APPLY_PATCH)

    def delete(self, path: str, body: Object | None = None) -> Any:
        """Delete an object or a collection; an object already gone is no error."""
        try:
            return self.request("DELETE", path, body)
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def exists(self, path: str) -> bool:
        """Tell whether a GET finds something."""
        try:
            self.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return True

    def text(self, path: str) -> str:
        """Return the answer of a GET as it is; health checks and metrics are no JSON."""
        return self._exchange("GET", path, None, JSON).decode()

    def request(self, method: str, path: str, body: Any = None, kind: str = JSON) -> Any:
        """Send one request and return the decoded answer."""
        payload = None if body is None else json.dumps(body).encode()
        answer = self._exchange(method, path, payload, kind)
        return json.loads(answer) if answer else None

    def watch(self, path: str, version: str, timeout_s: int = 300) -> Iterator[Object]:
        """Yield watch events from a resource version on, until the server ends the stream."""
        connection = self._connect(timeout_s + TIMEOUT_S)
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(timeout_s),
        }
        try:
            connection.request("GET", _with_query(path, query), headers={"Accept": JSON})
            answer = connection.getresponse()
            if answer.status >= 400:
                raise _error("GET", path, answer.status, answer.read())
            for line in answer:
                yield json.loads(line)
        finally:
            connection.close()

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            del self._local.connection

    def _exchange(self, method: str, path: str, payload: bytes | None, kind: str) -> bytes:
        fresh = not hasattr(self._local, "connection")
        if fresh:
            self._local.connection = self._connect(TIMEOUT_S)
        connection: http.client.HTTPSConnection = self._local.connection
        try:
            headers = {"Content-Type": kind, "Accept": JSON}
            connection.request(method, path, payload, headers)
            answer = connection.getresponse()
            content = answer.read()
        except (http.client.HTTPException, OSError) as error:
            self.close()
            # A connection closed while it was idle: the request never reached the server.
            if not fresh and isinstance(error, (http.client.RemoteDisconnected, BrokenPipeError)):
                return self._exchange(method, path, payload, kind)
            raise
        if answer.status >= 400:
            raise _error(method, path, answer.status, content)
        return content

    def _connect(self, timeout_s: float) -> http.client.HTTPSConnection:
        host, port = self._address
        connection = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self._tls)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def _with_query(path: str, query: dict[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _error(method: str, path: str, status: int, content: bytes) -> ApiError:
    try:
        message = json.loads(content)["message"]
    except (ValueError, KeyError, TypeError):
        message = content.decode(errors="replace")
    return ApiError(method, path, status, str(message))
