"""
Watches of kinds that a cluster may do without.

Where only one plugin reads the kind, its watch runs while that is configured. A cluster that does
not have the kind, or does not let the extender read it, goes on without: nothing is known of the
kind then, as if there were no such objects, and it is looked for again from time to time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from pumice.core.conf import Configuration
from pumice.kube.client import EVERYTHING, Selector
from pumice.kube.clock import Clock
from pumice.kube.errors import ApiError, Forbidden, NotFound
from pumice.kube.informer import Informer
from pumice.kube.resources import AnyResource

log = logging.getLogger(__name__)

ABSENT_S = 30.0
"""After how long a kind that was not there is looked for again."""
ABSENT: tuple[type[ApiError], ...] = (NotFound, Forbidden)

MakeInformer = Callable[[tuple[type[ApiError], ...], Selector], Informer[Any, None]]
"""Makes an informer of selected objects that ends with the errors of these types."""


def everything(_: Configuration) -> Selector:
    """Select all objects, whatever is configured."""
    return EVERYTHING


@dataclass(slots=True)
class OptionalWatch:
    """The watch of one kind."""

    resource: AnyResource
    #: the plugin that reads the kind, None where it is always read
    reader: str | None
    make: MakeInformer
    clock: Clock
    #: the objects that a configuration speaks of
    select: Callable[[Configuration], Selector] = everything
    #: a reader is configured
    wanted: bool = False
    selected: Selector = EVERYTHING
    #: why nothing can be known of the kind, "" while it can
    absent: str = ""
    informer: Informer[Any, None] | None = None
    _task: asyncio.Task[None] | None = None
    #: what the running watch is of
    _watched: Selector = EVERYTHING

    @property
    def is_pending(self) -> bool:
        """Tell whether the kind is wanted and its objects are still to be listed."""
        return self.wanted and not self.absent and not self._is_listed

    @property
    def is_unread(self) -> bool:
        """Tell whether the kind is wanted and cannot be read."""
        return self.wanted and bool(self.absent) and not self._is_listed

    @property
    def _is_listed(self) -> bool:
        return self.informer is not None and self.informer.synced.is_set()

    def turn(self, group: asyncio.TaskGroup) -> None:
        """Start or stop the watch, as it is wanted or not; begin anew where it is of others."""
        if self._task is not None and (not self.wanted or self._watched != self.selected):
            self._task.cancel()
            self._task = None
            self._end("")
        if self.wanted and self._task is None:
            self._watched = self.selected
            self._task = group.create_task(self._keep(), name=f"watch {self.resource}")

    async def _keep(self) -> None:
        while True:
            informer = self.informer = self.make(ABSENT, self._watched)
            try:
                await informer.run()
            except ABSENT as error:
                if not self.absent or informer.synced.is_set():
                    log.warning("%s: %s; going on without", self.resource, error)
                self._end(str(error))
            await self.clock.sleep(ABSENT_S)

    def _end(self, absent: str) -> None:
        informer, self.informer = self.informer, None
        self.absent = absent
        if informer is not None:
            informer.forget()


@dataclass(slots=True)
class OptionalWatches:
    """All of them; `follow` says what is wanted besides what always is, `run` sees to it."""

    watches: Collection[OptionalWatch]
    _turned: asyncio.Event = field(default_factory=asyncio.Event)

    def follow(self, conf: Configuration) -> None:
        """Want what the plugins of a configuration read, and nothing else."""
        plugins = {option.name for tier in conf.tiers for option in tier}
        for watch in self.watches:
            watch.wanted = watch.reader is None or watch.reader in plugins
            watch.selected = watch.select(conf)
        self._turned.set()

    async def run(self) -> None:
        """Keep the wanted watches until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._turned.clear()
                for watch in self.watches:
                    watch.turn(group)
                await self._turned.wait()

    def missing(self) -> list[str]:
        """Return the kinds that are wanted and not known yet."""
        return [str(watch.resource) for watch in self.watches if watch.is_pending]

    def unread(self, *resources: AnyResource) -> bool:
        """Tell whether some of these kinds cannot be read."""
        return any(watch.is_unread for watch in self.watches if watch.resource in resources)

    def informers(self) -> list[Informer[Any, None]]:
        """Return the informers that have listed their kind."""
        found = [watch.informer for watch in self.watches if not watch.is_pending]
        return [informer for informer in found if informer is not None]
