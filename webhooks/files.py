"""
Files that others write and we read again: the certificate of a mounted Secret, resource groups.

A mounted Secret or ConfigMap changes all its files at once, by a link; so they are simply read
every few seconds, and what they hold is compared. They are small and in memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pumice.core.admission.resource_groups import ResourceGroup, ResourceGroupsError, parse
from pumice.kube.certs import Pair
from pumice.kube.clock import Clock
from pumice.kube.tls import BadPairError
from webhooks import material as m
from webhooks.keeper import Adopt
from webhooks.material import Material

log = logging.getLogger(__name__)

CHECK_S: Final = 5.0


class CertificateFilesError(Exception):
    """The certificate cannot be read at the start; the text says which file and why."""


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Where certificate, key and authority are."""

    certificate: Path
    key: Path
    authority: Path

    def read(self) -> Material:
        """Return what they hold; raise CertificateFilesError."""
        read: list[bytes] = []
        for what, path in (("CA", self.authority), ("cert", self.certificate), ("key", self.key)):
            try:
                read.append(path.read_bytes())
            except OSError as error:
                text = f"failed to read {what.lower()} file ({path}): {error.strerror}"
                raise CertificateFilesError(text) from error
        bundle, certificate, key = read
        return Material(bundle, b"", Pair(certificate, key))


class FileKeeper:
    """Keeps in force what the files hold; `run` works until it is cancelled."""

    def __init__(self, files: CertificateFiles, adopt: Adopt, clock: Clock) -> None:
        self._files = files
        self._adopt = adopt
        self._clock = clock
        self._told: Material | None = None
        #: what is in force
        self.material: Material | None = None
        #: set once something is in force
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Read the files again and again; raise CertificateFilesError where they cannot be used."""
        await self._adopt_or_raise(self._files.read())
        while True:
            await self._clock.sleep(CHECK_S)
            try:
                found = self._files.read()
                if found not in (self.material, self._told):
                    self._told = found
                    await self._adopt_or_raise(found)
            except CertificateFilesError as error:
                log.error("%s; the old certificate stays in force", error)

    async def _adopt_or_raise(self, found: Material) -> None:
        try:
            await self._adopt(found)
        except BadPairError as error:
            raise CertificateFilesError(f"certificate and key do not work: {error}") from error
        self.material = found
        self.ready.set()
        log.info("certificate in force until %s", m.expiry(found))


class GroupsFile:
    """Follows the file of resource groups; `run` works until it is cancelled."""

    def __init__(
        self, path: Path, changed: Callable[[list[ResourceGroup]], None], clock: Clock
    ) -> None:
        self._path = path
        self._changed = changed
        self._clock = clock
        self._seen: str | None = None
        self._told = ""

    async def run(self) -> None:
        """Tell of the groups at the start and whenever they change."""
        while True:
            self._look()
            await self._clock.sleep(CHECK_S)

    def _look(self) -> None:
        """Take a new content into use; one that cannot be used leaves the old one."""
        try:
            text = self._path.read_text()
            if text != self._seen:
                self._changed(parse(text))
                self._seen = text
            self._told = ""
        except (OSError, UnicodeDecodeError, ResourceGroupsError) as error:
            self._tell(f"{self._path}: {error}; pods are changed as before")

    def _tell(self, wrong: str) -> None:
        """Log once what keeps a content from being used."""
        if wrong != self._told:
            log.error(wrong)
        self._told = wrong
