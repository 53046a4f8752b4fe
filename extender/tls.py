"""
The listener's certificate, its key and the authority of its clients: files that change under us.

The files are looked at every few seconds (a mounted Secret changes by a swapped link, so it is
the content that counts). New ones are for new connections; what does not work is refused with a
message, and the last good ones stay in force.
"""

from __future__ import annotations

import logging
from pathlib import Path

from pumice.kube.certs import Pair
from pumice.kube.clock import Clock
from pumice.kube.tls import BadPairError, Tls

log = logging.getLogger(__name__)

LOOK_S = 5.0


class TlsFiles:
    """Keeps in force what the files say."""

    def __init__(self, cert: Path, key: Path, clients: Path, clock: Clock) -> None:
        """Read them; raise OSError or BadPairError where they are no good to begin with."""
        self.tls = Tls(clients=True)
        self._paths = (cert, key, clients)
        self._clock = clock
        self._content: tuple[bytes, ...] = ()
        #: what is wrong with the files as they stand now, "" when nothing is
        self.refused = ""
        self._load(self._read())

    def look(self) -> None:
        """Read the files again, and put them in force where they changed."""
        try:
            content = self._read()
            if content != self._content:
                self._load(content)
        except (OSError, BadPairError) as error:
            self._refuse(str(error))
        else:
            self.refused = ""

    async def watch(self) -> None:
        """Look for changes until cancelled."""
        while True:
            await self._clock.sleep(LOOK_S)
            self.look()

    def _read(self) -> tuple[bytes, ...]:
        return tuple(path.read_bytes() for path in self._paths)

    def _load(self, content: tuple[bytes, ...]) -> None:
        cert, key, clients = content
        self.tls.load(Pair(cert, key), clients)
        self._content = content
        log.info("certificate in force: %s", self._paths[0])

    def _refuse(self, why: str) -> None:
        if why != self.refused:
            self.refused = why
            log.error("certificate refused, the last good one stays in force: %s", why)
