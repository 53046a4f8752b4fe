"""
The queues as the webhooks see them: a watch, and patience with what is new.

A queue that was made a moment ago may not have come by the watch yet, and is opened by its
controller a moment later. Whoever applies a queue and a Job in one go should not have to care:
a queue that is not known is looked up, and one without a state gets a little time to be opened.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from pumice.core.admission.views import Queues
from pumice.core.api.scheduling import Queue
from pumice.kube.client import Client
from pumice.kube.clock import Clock
from pumice.kube.errors import KubeError, NotFound
from pumice.kube.informer import Event, Informer
from pumice.kube.resources import QUEUES

log = logging.getLogger(__name__)

PATIENCE_S = 2.0


class QueueCache:
    """Keeps the queues; `run` works until it is cancelled."""

    def __init__(
        self, client: Client, *, clock: Clock | None = None, patience_s: float = PATIENCE_S
    ) -> None:
        self._client = client
        self._patience_s = patience_s
        self._news = asyncio.Event()
        self._informer: Informer[Queue, Queue] = Informer(
            client, QUEUES, self._changed, clock=clock
        )

    async def run(self) -> None:
        """Keep the queues up to date."""
        await self._informer.run()

    async def wait(self) -> None:
        """Wait until all queues are known."""
        await self._informer.synced.wait()

    @property
    def synced(self) -> bool:
        """Whether all queues are known."""
        return self._informer.synced.is_set()

    def view(self) -> Queues:
        """Return the queues as they are; good until the next turn of the event loop."""
        return Queues(self._informer.store)

    async def known(self, name: str) -> Queues:
        """Return the queues after a look for this one."""
        if name and name not in self._informer.store:
            try:
                self._informer.observe(await self._client.get(QUEUES, "", name))
            except NotFound:
                pass
            except KubeError as error:
                log.warning("queue %s: %s", name, error)
        return self.view()

    async def opened(self, name: str) -> Queues:
        """Return the queues after this one had time to be opened."""
        await self.known(name)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience_s):
                while self._is_new(name):
                    await self._news.wait()
        return self.view()

    def _is_new(self, name: str) -> bool:
        queue = self._informer.store.get(name)
        return queue is not None and not queue.status.state

    def _changed(self, event: Event[Queue, Queue]) -> None:
        self._news.set()
        self._news = asyncio.Event()
