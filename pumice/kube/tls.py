"""
TLS whose certificate changes while connections are served.

uvicorn keeps one context for its life. Ours has no certificate: its only work is to hand each
handshake to the context in force, which is made whole before it is put there. Loading another
pair into a live context has two traps that this avoids: a pair that does not belong together
leaves a context that refuses every handshake, and a pair of another kind of key leaves the old
one in use beside it. Connections that exist keep what they began with.

With an authority for clients, a client may show a certificate, and one that is not good ends the
handshake. Whether one was shown is seen in the connection (see `pumice.kube.connections`): what
needs one is for the application to say.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from pumice.kube.certs import Pair


class BadPairError(Exception):
    """A certificate and a key that do not make a server, or an authority that is none."""


class Tls:
    """The context to serve with, and the pair in force."""

    def __init__(self, *, clients: bool = False) -> None:
        """Prepare it; with `clients`, certificates of clients are asked for."""
        self._verify = ssl.CERT_OPTIONAL if clients else ssl.CERT_NONE
        self.context = self._made()
        self.context.sni_callback = self._choose
        self._in_force: ssl.SSLContext | None = None

    def load(self, pair: Pair, authority: bytes = b"") -> None:
        """
        Put a pair in force for new handshakes, and the authority that signs clients' certificates.

        Raise BadPairError, and keep what was in force.
        """
        made = self._made()
        with tempfile.TemporaryDirectory(prefix="pumice-") as directory:
            try:
                made.load_cert_chain(*pair.write(Path(directory), "tls"))
                if self._verify is not ssl.CERT_NONE:
                    made.load_verify_locations(cadata=authority.decode("ascii"))
            except (ssl.SSLError, ValueError) as error:
                raise BadPairError(str(error)) from error
        self._in_force = made

    def _made(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # A handshake keeps how strict it began and takes the rest of the context in force.
        context.verify_mode = self._verify
        return context

    def _choose(
        self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext
    ) -> int | None:
        """Give a handshake the pair in force; the callback comes with and without a name."""
        if self._in_force is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._in_force
        return None
