"""
A small synchronous client of the local API server.

It is for setting the scene (nodes, manifests) and for looking at it from tests and the command
line: plain JSON, a few kept-alive connections, no caches. The services use `pumice.kube`.
"""

from __future__ import annotations

import contextlib
import http
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from time import sleep
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

# Deleting a collection of thousands takes that long on a busy machine.
TIMEOUT_S = 120.0
WATCH_TIMEOUT_S = 600
RETRIES = 20
RETRY_S = 0.25


#: how a connection that the server closed while it was idle shows
CLOSED = (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ssl.SSLEOFError)


class Api:
    """Requests as one user; safe to use from several threads."""

    def __init__(self, server: str, authority: bytes, pair: Pair, directory: Path) -> None:
        parts = urlsplit(server)
        self.server = server
        self._address = (parts.hostname or "127.0.0.1", parts.port or 443)
        self._tls = ssl.create_default_context(cadata=authority.decode())
        # The ssl module takes client certificates from files only.
        self._tls.load_cert_chain(*pair.write(directory, "api-client"))
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPSConnection] = []

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
        return self._insist("GET", path, None, JSON).decode()

    def request(self, method: str, path: str, body: Any = None, kind: str = JSON) -> Any:
        """Send one request and return the decoded answer."""
        payload = None if body is None else json.dumps(body).encode()
        answer = self._insist(method, path, payload, kind)
        return json.loads(answer) if answer else None

    def watch(self, path: str, version: str) -> Watch:
        """Open a watch from a resource version on; see `Watch`."""
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_TIMEOUT_S),
        }
        connection = self._connect(WATCH_TIMEOUT_S + TIMEOUT_S)
        try:
            connection.request("GET", _with_query(path, query), headers={"Accept": JSON})
            answer = connection.getresponse()
            if answer.status >= 400:
                raise _error("GET", path, answer.status, answer.read())
        except BaseException:
            connection.close()
            raise
        return Watch(connection, answer)

    def close(self) -> None:
        """Close the idle connections; the client can still be used."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()

    def _insist(self, method: str, path: str, payload: bytes | None, kind: str) -> bytes:
        """Send a request again while the server says 429 (a CRD's storage is starting, say)."""
        for _ in range(RETRIES):
            try:
                return self._exchange(method, path, payload, kind)
            except ApiError as error:
                if error.status != http.HTTPStatus.TOO_MANY_REQUESTS:
                    raise
            sleep(RETRY_S)
        return self._exchange(method, path, payload, kind)

    def _exchange(self, method: str, path: str, payload: bytes | None, kind: str) -> bytes:
        with self._lock:
            used = self._idle.pop() if self._idle else None
        connection = used or self._connect(TIMEOUT_S)
        try:
            headers = {"Content-Type": kind, "Accept": JSON}
            connection.request(method, path, payload, headers)
            answer = connection.getresponse()
            content = answer.read()
        except (http.client.HTTPException, OSError) as error:
            connection.close()
            # A connection closed while it was idle: the request never reached the server.
            if used and isinstance(error, CLOSED):
                return self._exchange(method, path, payload, kind)
            raise
        with self._lock:
            self._idle.append(connection)
        if answer.status >= 400:
            raise _error(method, path, answer.status, content)
        return content

    def _connect(self, timeout_s: float) -> http.client.HTTPSConnection:
        host, port = self._address
        connection = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self._tls)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


class Watch:
    """A stream of watch events; iterate over it in one thread, close it from any."""

    def __init__(
        self, connection: http.client.HTTPSConnection, answer: http.client.HTTPResponse
    ) -> None:
        self._connection = connection
        self._answer = answer
        self._socket = connection.sock

    def __iter__(self) -> Iterator[Object]:
        """Yield events until the server ends the stream or `close` is called."""
        try:
            for line in self._answer:
                yield json.loads(line)
        except (http.client.HTTPException, OSError, ValueError):
            return
        finally:
            self._answer.close()
            self._connection.close()

    def close(self) -> None:
        """End the stream; the thread that reads it wakes up and closes the connection."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


def _with_query(path: str, query: dict[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _error(method: str, path: str, status: int, content: bytes) -> ApiError:
    try:
        message = json.loads(content)["message"]
    except (ValueError, KeyError, TypeError):
        message = content.decode(errors="replace")
    return ApiError(method, path, status, str(message))
