"""
Commands to Jobs: each is taken away first and obeyed then, so that it is obeyed at most once.

A Command that somebody else took away is nobody's any more. One that cannot be deleted now is
tried again; one that was deleted right before the controller died is lost, as in Volcano.
"""

from __future__ import annotations

from collections.abc import Callable

from controllers.caches import Cache
from pumice.core import names
from pumice.core.api.bus import Command
from pumice.kube import resources
from pumice.kube.client import Client, Preconditions
from pumice.kube.clock import Clock
from pumice.kube.errors import Conflict, NotFound
from pumice.kube.informer import Deleted, Event
from pumice.kube.workqueue import WorkQueue

Obey = Callable[[str, Command], None]
"""Take `namespace/name` of a Job and the Command that is for it."""


class JobCommands:
    """Takes Commands and passes them on."""

    def __init__(
        self,
        client: Client,
        commands: Cache[Command, Command],
        obey: Obey,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._commands = commands
        self._obey = obey
        self.queue: WorkQueue[str] = WorkQueue("job commands", self._take, workers=1, clock=clock)
        commands.subscribe(self._on_command)

    def _on_command(self, event: Event[Command, Command]) -> None:
        if not isinstance(event, Deleted) and _is_for_job(event.obj):
            self.queue.add(event.key)

    async def _take(self, key: str) -> None:
        """Delete the Command; obey it if it was there."""
        command = self._commands.get(key)
        if command is None or command.target is None:
            return
        meta = command.metadata
        given = Preconditions(uid=meta.uid)
        try:
            await self._client.delete(resources.COMMANDS, meta.namespace, meta.name, given=given)
        except (NotFound, Conflict):
            return
        self._obey(f"{meta.namespace}/{command.target.name}", command)


def _is_for_job(command: Command) -> bool:
    target = command.target
    return target is not None and (target.api_version, target.kind) == (names.BATCH_API, "Job")
