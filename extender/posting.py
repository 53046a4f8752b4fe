"""
Posting bindings: at most `SLOTS` at a time, retried inside the open call.

A binding carries the pod's uid, so it can be sent again: a pod that is on the node already is a
success, whoever's answer was lost. The API server being away is waited out for as long as the
call is open; what it refuses for good is told to the caller in a text that names no internals.

A gang must not stand half bound for long, so bindings that were begun go before others. One that
failed alone leaves its slot while it waits, and has it again before every younger one. When the
server is away, or asks us to come back later, all would fare alike: those that have a slot keep
it and try again, and no other gang is begun.

A binding with cards, or of a pod that is not pinned, also presumes the pod's resourceVersion, so
that it is refused once another process has taken over (see `fencing`). Where the pod has merely
changed it is sent again.

A server that has just started knows nobody and no roles for some seconds. So a binding that is
forbidden is tried again for `STRANGER_S` before it is refused.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count

from extender.slots import Slots
from pumice.core.devices.notes import notes_of
from pumice.core.ids import PodUid
from pumice.core.ledger import Arm, Entry
from pumice.kube.client import Client
from pumice.kube.clock import Clock
from pumice.kube.errors import (
    ApiError,
    Conflict,
    Disconnected,
    Forbidden,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
)
from pumice.kube.resources import PODS
from pumice.kube.retry import Backoff

log = logging.getLogger(__name__)

SLOTS = 64
FIRST_WAIT_S = 0.05
LAST_WAIT_S = 1.0
STRANGER_S = 10.0
REFUSED = "the API server refused the binding"
GONE = "the pod is gone"


@dataclass(slots=True)
class Binding:
    """One binding under way."""

    entry: Entry
    node: str
    backoff: Backoff
    #: the choice of cards, if any, becomes visible in the same write as the node
    notes: Mapping[str, str]
    #: the resourceVersion that it presumes, "" for any
    version: str
    #: since when (monotonic) the server does not let us; None while it does
    forbidden_since: float | None = None

    def __str__(self) -> str:
        return f"binding of {self.entry.namespace}/{self.entry.name}"


class Poster:
    """Posts bindings with the client's rights."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        rng: random.Random | None = None,
        last_order: Callable[[str], int] = lambda node: 0,
        version: Callable[[PodUid], str] = lambda uid: "",
    ) -> None:
        """
        Prepare it.

        `last_order` tells of a node what stands on its pods from earlier on, and `version` the
        resourceVersion of a pod as it was last seen.
        """
        self._client = client
        self._clock = clock
        self._last_order = last_order
        self._version = version
        self._rng = rng or random.SystemRandom()
        self._slots = Slots(SLOTS)
        self._claims = count()
        #: node -> time of the last choice of cards there
        self._orders: dict[str, int] = {}

    async def post(self, entry: Entry, node: str) -> str:
        """Bind a pod to a node; return "" once it is, else what is wrong."""
        claim = next(self._claims)
        backoff = Backoff(self._rng, base_s=FIRST_WAIT_S, cap_s=LAST_WAIT_S)
        fenced = entry.cards is not None or entry.arm is not Arm.PIN
        version = self._version(entry.uid) if fenced else ""
        binding = Binding(entry, node, backoff, self._notes(entry, node), version)
        while True:
            async with self._slots.taken(claim):
                answer = await self._insist(binding)
            if answer is not None:
                return answer
            await self._clock.sleep(binding.backoff.next_s())

    def _notes(self, entry: Entry, node: str) -> Mapping[str, str]:
        """Return the choice of cards as annotations, those of one node with growing times."""
        if entry.cards is None:
            return {}
        now = self._clock.now()
        known = max(self._orders.get(node, 0), self._last_order(node))
        order = self._orders[node] = max(int(now), known + 1)
        return notes_of(entry.cards, entry.uid, node, now, order)

    async def _insist(self, binding: Binding) -> str | None:
        """Post until the server has looked at it; None where it is to be tried again later."""
        entry, node = binding.entry, binding.node
        while True:
            try:
                await self._client.bind(
                    entry.namespace,
                    entry.name,
                    node,
                    uid=entry.uid,
                    resource_version=binding.version,
                    annotations=binding.notes,
                )
            except (Disconnected, TooManyRequests) as error:
                log.info("%s: %s", binding, error)
                await self._clock.sleep(binding.backoff.next_s())
            except ServerError as error:
                log.info("%s: %s", binding, error)
                return None
            except Conflict:
                return await self._after_conflict(binding)
            except NotFound:
                return GONE
            except (Unauthorized, Forbidden) as error:
                log.warning("%s: %s", binding, error)
                return REFUSED if self._is_stranger(binding) else None
            except ApiError as error:
                log.warning("%s: %s", binding, error)
                return REFUSED
            else:
                return ""

    def _is_stranger(self, binding: Binding) -> bool:
        """Tell whether the server has not let us for too long to be merely starting."""
        now = self._clock.monotonic()
        if binding.forbidden_since is None:
            binding.forbidden_since = now
        return now - binding.forbidden_since >= STRANGER_S

    async def _after_conflict(self, binding: Binding) -> str | None:
        """Look where the pod is: a binding that was accepted, its answer lost, also conflicts."""
        entry = binding.entry
        try:
            pod = await self._client.get(PODS, entry.namespace, entry.name)
        except NotFound:
            return GONE
        except (TooManyRequests, ServerError, Disconnected):
            return None
        if pod.metadata.uid != entry.uid or pod.metadata.deletion_timestamp:
            return GONE
        if not pod.spec.node_name and binding.version not in ("", pod.metadata.resource_version):
            binding.version = pod.metadata.resource_version
            return None
        return "" if pod.spec.node_name == binding.node else REFUSED
