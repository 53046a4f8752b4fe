"""
The scheduler configuration as a file that may change under us.

The file is looked at once a second (a mounted ConfigMap changes by a swapped link, so it is the
content that counts). One that does not parse, or names a plugin that cannot be made of its
arguments, is refused with a message, and the last good one stays in force; at start there is
Volcano's default to fall back on.

Which plugins it may name is settled once, when the process starts: the built-in ones, and those
that installed packages offer as entry points of the group `pumice.plugins`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from pumice.core.catalog import plugin_named
from pumice.core.conf import DEFAULT, Configuration, ConfigurationError, parse
from pumice.core.guarding import describe
from pumice.kube.clock import Clock

log = logging.getLogger(__name__)

LOOK_S = 1.0


def _try_plugins(conf: Configuration) -> None:
    """Make every plugin once; raise ConfigurationError where one cannot be made."""
    for option in (option for tier in conf.tiers for option in tier):
        build = plugin_named(option.name)
        if build is None:
            continue  # Sessions go on without it, and say so.
        try:
            build(option.arguments)
        except Exception as error:
            raise ConfigurationError(f"plugin {option.name}: {describe(error)}") from error


class ConfigurationFile:
    """Holds the configuration in force."""

    def __init__(self, path: str | None, clock: Clock) -> None:
        self._path = Path(path) if path else None
        self._clock = clock
        self._text: str | None = None
        self.current: Configuration = DEFAULT
        #: what is wrong with the file as it stands now, "" when nothing is
        self.refused = ""
        #: called with each configuration that comes into force after the first
        self.listeners: list[Callable[[Configuration], None]] = []
        self.look()

    def look(self) -> bool:
        """Read the file again; return whether the configuration in force changed."""
        if self._path is None:
            return False
        try:
            text = self._path.read_text(encoding="utf-8")
        except OSError as error:
            return self._refuse(f"{self._path}: {error.strerror}")
        except UnicodeDecodeError as error:
            return self._refuse(f"{self._path}: {error.reason}")
        if text == self._text:
            return False
        self._text = text
        try:
            conf = parse(text)
            _try_plugins(conf)
        except ConfigurationError as error:
            return self._refuse(f"{self._path}: {error}")
        self.current = conf
        self.refused = ""
        log.info("configuration in force: %s", self._path)
        for listener in self.listeners:
            listener(self.current)
        return True

    def _refuse(self, why: str) -> bool:
        if why != self.refused:
            self.refused = why
            log.error("configuration refused, the last good one stays in force: %s", why)
        return False

    async def watch(self) -> None:
        """Look for changes until cancelled."""
        while True:
            await self._clock.sleep(LOOK_S)
            self.look()
