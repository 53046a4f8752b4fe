"""What the verbs answer: `bind` is the barrier's, the others read the engine's view."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from extender import wire
from extender.barrier import Barrier
from extender.model import Model
from pumice.core.ids import PodUid


@dataclass(slots=True)
class EngineVerbs:
    """The verbs of one service."""

    model: Model
    barrier: Barrier
    synced: asyncio.Event

    async def bind(self, uid: PodUid, node: str) -> str:
        """Wait for the caches after a start, then for the gang."""
        await self.synced.wait()
        return await self.barrier.bind(uid, node)

    def filter(self, args: wire.Args) -> wire.FilterResult:
        """Return the candidates that remain."""
        return wire.FilterResult(node_names=args.node_names or [])

    def prioritize(self, args: wire.Args) -> list[wire.HostPriority]:
        """Return the scores of the candidates."""
        return []

    def preempt(self, args: wire.PreemptionArgs) -> wire.PreemptionResult:
        """Return the preemptions that are allowed."""
        return wire.PreemptionResult(node_name_to_meta_victims={})
