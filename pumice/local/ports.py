"""
Loopback ports that stay ours until we let them go.

Asking the kernel for port 0 gives an ephemeral port, and between closing it and handing it to a
child (or while a killed component waits for its restart) any outgoing connection may be given
the same number. So ports are taken from below the ephemeral range, and each is claimed by a lock
on a file of its own: two control planes side by side never choose the same one, and the claims
of a dead process vanish with it.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from itertools import chain
from pathlib import Path

LOWEST = 10_000
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


class Ports:
    """Claims free ports; `close` gives all of them back."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.gettempdir()) / f"pumice-ports-{os.getuid()}"
        self._directory.mkdir(mode=0o700, exist_ok=True)
        self._claims: dict[int, int] = {}

    def claim(self) -> int:
        """Return a port that nobody listens on and no other `Ports` holds."""
        highest = _first_ephemeral()
        (first,) = random.sample(range(LOWEST, highest), 1)
        for port in chain(range(first, highest), range(LOWEST, first)):
            if self.claim_exactly(port):
                return port
        raise OSError(f"no free port between {LOWEST} and {highest}")

    def claim_exactly(self, port: int) -> bool:
        """Claim this port; False if somebody has it."""
        if not self._lock(port):
            return False
        if _is_free(port):
            return True
        self.release(port)
        return False

    def release(self, port: int) -> None:
        """Give one port back."""
        os.close(self._claims.pop(port))

    def close(self) -> None:
        """Give every port back."""
        for port in list(self._claims):
            self.release(port)

    def _lock(self, port: int) -> bool:
        claim = os.open(self._directory / str(port), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(claim)
            return False
        self._claims[port] = claim
        return True


def _first_ephemeral() -> int:
    try:
        return int(EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError):
        return 32_768


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
