"""
The way from kube-apiserver to Services, which have no network here.

kube-apiserver can be told to reach what is in the cluster through a proxy. This is that proxy: it
is asked for `CONNECT 10.96.0.7:443`, and connects to where `resolve` says that this is.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer

HOST = "127.0.0.1"
Resolve = Callable[[str, int], int | None]
"""Return the port on loopback that an address and port of the cluster stand for."""


class Tunnel(ThreadingUnixStreamServer):
    """The proxy, from `start` to `close`; it listens on a socket in a directory."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, directory: Path, resolve: Resolve) -> None:
        super().__init__(str(directory / "tunnel"), _Connection)
        self.resolve = resolve
        self._directory = directory

    def arguments(self) -> list[str]:
        """Return the arguments that make kube-apiserver use the proxy."""
        transport = {"uds": {"udsName": self.server_address}}
        selection = {
            "name": "cluster",
            "connection": {"proxyProtocol": "HTTPConnect", "transport": transport},
        }
        content = {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [selection],
        }
        file = self._directory / "egress.json"
        file.write_text(json.dumps(content))
        return [f"--egress-selector-config-file={file}"]

    def start(self) -> None:
        """Serve, in threads of its own."""
        threading.Thread(target=self.serve_forever, name="tunnel", daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self.shutdown()
        self.server_close()


class _Connection(StreamRequestHandler):
    server: Tunnel

    def handle(self) -> None:
        _, target, _ = self.rfile.readline().split()
        while self.rfile.readline().strip():
            pass
        host, _, number = target.decode().rpartition(":")
        port = self.server.resolve(host, int(number))
        if port is None:
            self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            return
        with suppress(OSError), socket.create_connection((HOST, port)) as there:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=_copy, args=[there, self.connection], daemon=True)
            back.start()
            _copy(self.connection, there)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
