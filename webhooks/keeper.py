"""
The certificate's keeper: what is in the Secret is in force here, and is renewed in time.

The Secret is what replicas agree by. Whoever finds it empty, due or spoilt writes a new content
on the version that it saw; of two that do so at a time one gets a conflict, and takes what the
other wrote. Where a new content brings a new authority, the API server is told of it before its
certificate is served.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from pumice.kube.client import Client, Preconditions, Selector
from pumice.kube.clock import Clock
from pumice.kube.errors import Conflict
from pumice.kube.informer import Event, Informer
from pumice.kube.patches import ApplyPatch, MergePatch
from pumice.kube.resources import SECRETS, Secret
from pumice.kube.tls import BadPairError
from pumice.kube.workqueue import WorkQueue
from webhooks import material as m
from webhooks.material import Material

log = logging.getLogger(__name__)

CHECK_S = 600.0
RETRY_CAP_S = 10.0

Adopt = Callable[[Material], Awaitable[None]]
"""Put a content in force; raise BadPairError where it cannot be."""


@dataclass(frozen=True, slots=True)
class Place:
    """Which Secret."""

    namespace: str
    name: str

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"


class Keeper:
    """Keeps one Secret and what is in force alike; `run` works until it is cancelled."""

    def __init__(
        self, client: Client, place: Place, hosts: tuple[str, ...], adopt: Adopt, clock: Clock
    ) -> None:
        self._client = client
        self._place = place
        self._hosts = hosts
        self._adopt = adopt
        self._clock = clock
        self._told = ""
        #: what is in force
        self.material: Material | None = None
        #: set once something is in force
        self.ready = asyncio.Event()
        self._queue: WorkQueue[str] = WorkQueue(
            "certificate", self._look, workers=1, clock=clock, cap_s=RETRY_CAP_S
        )
        only = Selector(namespace=place.namespace, fields=f"metadata.name={place.name}")
        self._informer: Informer[Secret, Secret] = Informer(
            client, SECRETS, self._changed, select=only, clock=clock
        )

    async def run(self) -> None:
        """Watch the Secret and keep it right."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informer.run(), name=f"informer: secret {self._place.key}")
            await self._informer.synced.wait()
            group.create_task(self._queue.run(), name="certificate")
            self._queue.add(self._place.key)

    def _changed(self, event: Event[Secret, Secret]) -> None:
        self._queue.add(event.key)

    async def _look(self, key: str) -> None:
        """Compare what is in the Secret with what should be, and with what is in force."""
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        secret = self._informer.store.get(key) or await self._created()
        found = m.read(secret.data)
        wrong = m.fault(found, self._hosts, now) if found else "it is empty"
        if found is None or (wrong and found.ours):
            await self._replace(secret, found, wrong, now)
            return
        if found != self.material:
            wrong = await self._put_in_force(found) or wrong
        self._tell(wrong)
        self._queue.add_after(key, CHECK_S)

    async def _put_in_force(self, new: Material) -> str:
        """Put a content in force; return why it cannot be, and leave the old one where it is."""
        try:
            await self._adopt(new)
        except BadPairError as error:
            return f"it cannot be served with: {error}"
        self.material = new
        self.ready.set()
        log.info("certificate in force until %s", m.expiry(new))
        return ""

    async def _created(self) -> Secret:
        """Make the Secret without a content; it is filled like any that has none."""
        body = {
            "apiVersion": SECRETS.api_version,
            "kind": SECRETS.kind,
            "metadata": {"name": self._place.name},
            "type": "Opaque",
        }
        made = await self._client.patch(
            SECRETS, self._place.namespace, self._place.name, ApplyPatch(body)
        )
        self._informer.observe(made)
        return made

    async def _replace(
        self, secret: Secret, found: Material | None, why: str, now: datetime
    ) -> None:
        """Write a new content on the version that was judged; the watch brings it here."""
        log.info("secret %s: %s; writing a new certificate", self._place.key, why)
        new = m.renew(found, self._hosts, now) if found else m.make(self._hosts, now)
        meta = secret.metadata
        given = Preconditions(uid=meta.uid, resource_version=meta.resource_version)
        patch = MergePatch({"data": m.written(new)})
        try:
            made = await self._client.patch(
                SECRETS, self._place.namespace, self._place.name, patch, given=given
            )
        except Conflict:
            log.info("secret %s: another replica was first", self._place.key)
            return
        self._informer.observe(made)

    def _tell(self, wrong: str) -> None:
        """Log once what is wrong with a certificate that is not ours to renew."""
        if wrong and wrong != self._told:
            log.error(
                "secret %s: %s; it is not ours to renew (delete it, and we make our own)",
                self._place.key,
                wrong,
            )
        self._told = wrong
