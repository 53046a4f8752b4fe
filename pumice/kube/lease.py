"""
Leader election: of several replicas one works, and the others wait for its Lease.

    waits ── lease free, or not renewed for as long as it lasts ──► leads
                                                                     │ not renewed in time
    ends, to be started anew ◄───────────────────────────────────────┘

Whether somebody else's lease has run out is judged by how long we have not seen it change, so
that the clocks of machines need not agree. A leader that cannot renew stops to lead before the
lease runs out for others: `leads` says no from the deadline on, however late the process gets to
run again. Whoever writes asks it for every write (see `Client.fenced`).

The record in the Lease is that of Kubernetes' own components; one kept by them can be taken over.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from dataclasses import dataclass

from pumice.kube.client import Client, Preconditions
from pumice.kube.clock import Clock, SystemClock, rfc3339_micro
from pumice.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from pumice.kube.patches import Json, MergePatch
from pumice.kube.resources import LEASES, Lease

log = logging.getLogger(__name__)

RELEASE_S = 2.0
JITTER = 0.2
LOOKS = 4
"""
How often one who waits looks at the lease in the time of a renewal. It hears of a renewal so much
late, and takes over so much later than the lease has run out.
"""


class LeadershipLostError(Exception):
    """The lease could not be renewed, or somebody else has it."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Which lease, and how long things take."""

    namespace: str
    name: str
    #: how long others wait for one who does not renew
    duration_s: float = 15.0
    #: after how long without renewal a leader gives up
    deadline_s: float = 10.0
    #: between two renewals
    retry_s: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_s < self.deadline_s < self.duration_s:
            raise ValueError("a lease lasts longer than its deadline, and that longer than a retry")


class Election:
    """One replica's part in the election; `client` is one that may always write."""

    def __init__(
        self,
        client: Client,
        terms: Terms,
        identity: str,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self._terms = terms
        self.identity = identity
        self._clock = clock or SystemClock()
        self._rng = rng or random.SystemRandom()
        #: the last state of the lease that was seen, and since when
        self._seen: Lease | None = None
        self._since = -math.inf
        #: until when we lead, if nothing is renewed
        self._until = -math.inf

    @property
    def leads(self) -> bool:
        """Whether we lead at this moment."""
        return self._clock.monotonic() < self._until

    @property
    def leader(self) -> str:
        """Who had the lease when it was seen last; empty for nobody."""
        return (self._seen and self._seen.spec.holder_identity) or ""

    async def acquire(self) -> None:
        """Wait until we lead."""
        told = ""
        while not await self._attempt():
            if self.leader != told:
                told = self.leader
                log.info("%s leads; waiting", told)
            await self._clock.sleep(self._pause_s())
        log.info("%s leads", self.identity)

    async def keep(self) -> None:
        """Renew until we no longer lead, and raise LeadershipLostError then."""
        while self.leads:
            await self._clock.sleep(self._terms.retry_s)
            while self.leads and not await self._attempt() and self.leader == self.identity:
                await self._clock.sleep(self._terms.retry_s / LOOKS)
            if self.leader != self.identity:
                break
        self._until = -math.inf
        raise LeadershipLostError(f"{self.leader or 'nobody'} leads")

    async def release(self) -> None:
        """Give the lease up, so that others need not wait for its end."""
        seen = self._seen
        self._until = -math.inf
        if seen is None or self.leader != self.identity:
            return
        try:
            async with asyncio.timeout(RELEASE_S):
                await self._write(seen, {"holderIdentity": "", "leaseDurationSeconds": 1})
        except (KubeError, TimeoutError) as error:
            log.info("the lease was not released: %s", error)

    def _pause_s(self) -> float:
        """Return how long to wait before the next try: no longer than the lease may last."""
        pause = self._terms.retry_s / LOOKS * (1 + JITTER * self._rng.random())
        left = self._since + self._terms.duration_s - self._clock.monotonic()
        return min(pause, left) if left > 0 else pause

    async def _attempt(self) -> bool:
        """Get or renew the lease once; return whether that is done."""
        began = self._clock.monotonic()
        try:
            # A leader whose request hangs must still have time for another.
            async with asyncio.timeout(self._terms.deadline_s / 2):
                done = await self._renew() if self._is_ours else await self._take()
        except (KubeError, TimeoutError) as error:
            log.warning("lease %s: %s", self._terms.name, str(error) or "no answer in time")
            return False
        if done:
            self._until = began + self._terms.deadline_s
        return done

    @property
    def _is_ours(self) -> bool:
        return self._seen is not None and self.leader == self.identity

    async def _take(self) -> bool:
        """Look at the lease, and take it if it is free."""
        terms, now = self._terms, self._clock.monotonic()
        try:
            found = await self._client.get(LEASES, terms.namespace, terms.name)
        except NotFound:
            return await self._create()
        if self._seen is None or self._seen.spec != found.spec:
            self._since = now
        self._seen = found
        if self.leader not in ("", self.identity) and now - self._since < terms.duration_s:
            return False
        taken = (found.spec.lease_transitions or 0) + 1
        stamp = rfc3339_micro(self._clock.now())
        return await self._write(found, self._record(acquireTime=stamp, leaseTransitions=taken))

    async def _renew(self) -> bool:
        """Renew the lease; where it has changed without us, look who has it."""
        if self._seen and await self._write(self._seen, self._record()):
            return True
        self._seen = await self._client.get(LEASES, self._terms.namespace, self._terms.name)
        self._since = self._clock.monotonic()
        return False

    async def _create(self) -> bool:
        stamp = rfc3339_micro(self._clock.now())
        record = self._record(acquireTime=stamp, leaseTransitions=0)
        body = {"metadata": {"name": self._terms.name}, "spec": record}
        try:
            self._seen = await self._client.create(LEASES, self._terms.namespace, body)
        except AlreadyExists:
            return False
        return True

    async def _write(self, seen: Lease, record: Json) -> bool:
        """Change the lease if it is as it was seen."""
        meta = seen.metadata
        given = Preconditions(meta.uid, meta.resource_version)
        patch = MergePatch({"spec": record})
        try:
            self._seen = await self._client.patch(
                LEASES, meta.namespace, meta.name, patch, given=given
            )
        except (Conflict, NotFound):
            return False
        return True

    def _record(self, **more: object) -> Json:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self._terms.duration_s),
            "renewTime": rfc3339_micro(self._clock.now()),
            **more,
        }
