"""
The way to a policy server: what the plugin `extender` asks is posted as JSON over HTTP.

A session runs in a thread of its own and waits for the answers there; the requests go out on the
event loop, several at a time. Whatever goes wrong with one of them is no answer to it: the plugin
says what follows from that. The log is told once, and again when answers come.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import aiohttp
import msgspec

from pumice.core.outside import Json, Question, nobody

log = logging.getLogger(__name__)

AT_ONCE = 64
MAX_ANSWER = 10 * 1024 * 1024


class PolicyServer:
    """Asks on the event loop on which it was opened; to be called from other threads."""

    def __init__(self) -> None:
        #: while it is open
        self._loop: asyncio.AbstractEventLoop | None = None
        #: made for the first question: most configurations have none
        self._http: aiohttp.ClientSession | None = None
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._fault = ""

    def __call__(self, question: Question, /) -> Sequence[Json | None]:
        """Post the bodies of a question; None stands for what was not answered."""
        if self._loop is None:
            return nobody(question)
        asked = asyncio.run_coroutine_threadsafe(self._ask(question), self._loop)
        return asked.result()

    async def run(self) -> None:
        """Be open until cancelled."""
        self.open()
        try:
            await asyncio.Event().wait()
        finally:
            await self.close()

    def open(self) -> None:
        """Answer from now on."""
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        """Let go of the connections; from now on there is no answer to anything."""
        self._loop = None
        if self._http is not None:
            await self._http.close()

    async def _ask(self, question: Question) -> list[Json | None]:
        return await asyncio.gather(*(self._post(question, body) for body in question.bodies))

    async def _post(self, question: Question, body: Json) -> Json | None:
        async with self._slots:
            if self._loop is None:
                return None
            try:
                answer = await self._exchange(question, body)
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                self._tell(f"{question.url}: {str(error) or type(error).__name__}")
                return None
        self._tell("")
        return answer

    async def _exchange(self, question: Question, body: Json) -> Json:
        """Post one body; raise where there is no answer that can be read."""
        timeout = aiohttp.ClientTimeout(total=question.timeout_s)
        headers = {"Content-Type": "application/json"}
        data = msgspec.json.encode(body, enc_hook=str)
        if self._http is None:
            self._http = aiohttp.ClientSession()
        async with self._http.post(
            question.url, data=data, headers=headers, timeout=timeout, allow_redirects=False
        ) as response:
            content = bytearray()
            async for part in response.content.iter_any():
                content += part
                if len(content) > MAX_ANSWER:
                    raise ValueError(f"the answer is longer than {MAX_ANSWER} bytes")
            if response.status != 200:
                raise ValueError(f"status {response.status}")
        return msgspec.json.decode(content or b"{}", type=dict[str, object])

    def _tell(self, fault: str) -> None:
        if fault != self._fault:
            if fault:
                log.warning("the policy server gives no answer: %s", fault)
            else:
                log.info("the policy server answers")
            self._fault = fault
