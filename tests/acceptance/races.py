"""
Races: many more pods than there is room for on cards, and all of them run in the end.

    race = Race(bed, plugins, room=16, full=(4, 24576, 0))
    race.start(40, **sharing(memory=6144))
    await race.is_run()

At any time as many run as have room, and then every card is in use whole: what was packed loosely
or lost would show as pods that wait.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Final

import msgspec

from tests.acceptance.bed import Bed
from tests.acceptance.cards import held
from tests.acceptance.objects import Object, a_pod
from tests.cases.configuration import STOCK
from tests.deviceplugin import DevicePlugins

CONFIGURATION: Final = f"""{STOCK}  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
      deviceshare.SchedulePolicy: binpack
"""
NODE_CARDS: Final = ("a", "b", "c", "d")
PATIENCE_S: Final = 60.0
FEW: Final = 8


@dataclass
class Race:
    """Pods alike; `room` of them run at a time, and then each card is in use as `full` says."""

    bed: Bed
    plugins: DevicePlugins
    room: int
    full: tuple[int, int, int]
    names: list[str] = field(default_factory=list)
    rng: random.Random = field(default_factory=lambda: random.Random(9))

    def start(self, count: int, *, schedulers: Sequence[str] = ("volcano",), **spec: Any) -> None:
        """Create the pods at once, those of several schedulers in turn."""
        self.names = [f"pod-{i}" for i in range(count)]
        whose = zip(self.names, cycle(schedulers), strict=False)
        self.bed.create_many(a_pod(name, scheduler=s, **spec) for name, s in whose)

    async def is_run(self) -> None:
        """Let pods end until all have run."""
        while left := len(self.names) - self._with("Succeeded"):
            await self._is_full(min(left, self.room))
            if left >= self.room:
                assert set(held(self.bed, self.plugins).values()) == {self.full}
            await self._some_end()

    async def _is_full(self, running: int) -> None:
        """Wait until as many as have room run and have their cards."""

        def is_full() -> bool:
            started = running + self._with("Succeeded")
            return self._with("Running") == running and self.plugins.served == started

        await self.bed.until(is_full, PATIENCE_S, f"{running} pods run on cards of their own")

    async def _some_end(self) -> None:
        """Let half of those that run end, and all where they are few."""
        running, ended = self._pods("Running"), self._with("Succeeded")
        ending = running
        if len(running) > FEW:
            ending = self.rng.sample(running, len(running) // 2)
        await self.bed.aside(self.bed.end, *ending)
        wanted = ended + len(ending)
        await self.bed.until(
            lambda: self._with("Succeeded") == wanted, PATIENCE_S, "some have ended"
        )

    def _with(self, phase: str) -> int:
        return len(self._pods(phase))

    def _pods(self, phase: str) -> list[Object]:
        pods = (self.bed.pod(name) for name in self.names)
        return [pod for pod in pods if pod and pod["status"].get("phase") == phase]


def nothing_is_leaked(bed: Bed, plugins: DevicePlugins) -> None:
    """See that no card is in use, and that the extender's tables are what the objects say."""
    assert held(bed, plugins) == {}
    answer = msgspec.json.decode(bed.cluster.extender.get("/debug/check")[1])
    assert answer["faults"] == []
