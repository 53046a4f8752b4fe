"""A state machine with a controller in it that may die at any write, and is made anew."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.adapters.controllers.mortal import Death
from tests.adapters.controllers.world import World
from tests.fakeapi.clock import settle
from tests.fakeapi.faults import Fault, Faults

W = TypeVar("W", bound=World[Any])


class ControllerMachine(RuleBasedStateMachine, Generic[W]):
    """Runs a world and its controllers; who derives from it brings the rules and what holds."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.world: W = self.do(self.make())

    @abstractmethod
    async def make(self) -> W:
        """Return the world."""

    def running(self) -> AbstractAsyncContextManager[Any]:
        """Return one life of the controller."""
        return self.world.running()

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine, and let the controller answer to what it did."""

        async def and_calm() -> Any:
            result = await work
            await settle()
            return result

        return self.runner.run(and_calm())

    def start(self) -> None:
        """Begin to live, in the loop of the machine."""
        self.life = asyncio.create_task(self._live())

    @property
    def is_alive(self) -> bool:
        return hasattr(self, "life")

    async def _live(self) -> None:
        """One controller after the other."""
        while True:
            self.death = Death(1_000_000)
            async with self.running():
                await self.death.come.wait()
            self.world.api.faults = Faults()

    def dies_after(self, writes: int) -> None:
        """Let the controller die after so many more writes."""

        async def doom() -> None:
            self.death.after(writes)
            self.world.api.faults.add(Fault(self.death.takes, 1_000_000, lost=True))

        self.do(doom())

    @rule(code=st.sampled_from([403, 500, 503]), times=st.integers(1, 4))
    def writes_fail(self, code: int, times: int) -> None:
        self.world.api.fail(code, times=times, when=lambda call: call.method != "GET")

    def teardown(self) -> None:
        """Let everything calm down, and see that it came out right."""
        try:
            if self.is_alive:
                self.do(self.calm())
                self.check()
        finally:
            self.runner.run(self._stop())
            self.runner.close()

    @abstractmethod
    async def calm(self) -> None:
        """Let faults end, and everything come to where it should."""

    @abstractmethod
    def check(self) -> None:
        """Fail where it did not."""

    async def _stop(self) -> None:
        if self.is_alive:
            self.life.cancel()
            await asyncio.gather(self.life, return_exceptions=True)
