"""
The auditor beside a test: starts the program, passes on what the test says, fails the test.

    async with Auditor(kubeconfig, audit_log, report=file, extender_user="...") as auditor:
        ...
        report = await auditor.finish()     # raises AssertionError with the violations' sentences

Leaving the block without `finish` finishes too, unless the test has failed already: then the
auditor's sentences are printed beside the test's own error.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
import msgspec

from tests.auditor.report import Report

ROOT = Path(__file__).resolve().parents[2]
READY_S = 40.0
FINISH_S = 120.0
POLL_S = 0.1


class Ready(msgspec.Struct):
    """The program's first line."""

    control: str


class AuditorError(Exception):
    """The program did not come up, or ended without a report."""


class Auditor:
    """
    A running auditor.

    `report` is the file that it writes. `rules` names the rules to apply; without `extender_url`
    rule E is left out. `own_users` are our other components, `scheduler_users` those whose writes
    are counted beside ours.
    """

    def __init__(
        self,
        kubeconfig: Path,
        audit_log: Path,
        *,
        report: Path,
        extender_user: str,
        extender_url: str = "",
        own_users: Sequence[str] = (),
        scheduler_users: Sequence[str] = (),
        schedulers: Sequence[str] = ("volcano",),
        rules: str = "ABCDEF",
        limit_s: float = 5.0,
        settle_s: float = 20.0,
        shared_nodes: bool = False,
    ) -> None:
        self.report = report
        self.control = ""
        self.finished = False
        self._process: asyncio.subprocess.Process | None = None
        chosen = rules if extender_url else rules.replace("E", "")
        self._command = [
            sys.executable, "-m", "tests.auditor",
            f"--kubeconfig={kubeconfig}", f"--audit-log={audit_log}", f"--report={self.report}",
            f"--extender-user={extender_user}", f"--extender-url={extender_url}",
            f"--rules={chosen}", f"--gang-limit-s={limit_s}", f"--settle-s={settle_s}",
            *(f"--own-user={user}" for user in own_users),
            *(f"--scheduler-user={user}" for user in scheduler_users),
            *(f"--scheduler-name={name}" for name in schedulers),
            *(["--shared-nodes"] if shared_nodes else []),
        ]  # fmt: skip

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *self._command, cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(READY_S):
            line = await self._stdout.readline()
        if not line:
            raise AuditorError(f"it ended at once with {await self._process.wait()}")
        self.control = msgspec.json.decode(line, type=Ready).control
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.finished:
            return
        report = await self.stop()
        if error is None:
            assert_clean(report)

    async def pause(self) -> None:
        """From now on time counts for nobody."""
        await self._tell("pause")

    async def resume(self) -> None:
        """Time counts again."""
        await self._tell("resume")

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Let time count for nobody inside the block."""
        await self.pause()
        try:
            yield
        finally:
            await self.resume()

    async def killed(self) -> None:
        """Start the clock of every gang again: a component was just killed."""
        await self._tell("killed")

    async def limit(self, seconds: float) -> None:
        """Let a gang be partial for this long from now on."""
        await self._tell(f"limit?seconds={seconds}")

    async def so_far(self) -> Report:
        """Return the judgement of what was seen until now; the run goes on."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.control}/report") as r:
            return msgspec.json.decode(await r.read(), type=Report)

    async def wait_for_objection(self, rule: str, timeout_s: float = 20.0) -> Report:
        """Wait until a violation of the rule has been seen; raise TimeoutError without one."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            report = await self.so_far()
            if report.of(rule):
                return report
            await asyncio.sleep(POLL_S)
        raise TimeoutError(f"no violation of {rule} within {timeout_s:g} s")

    async def finish(self) -> Report:
        """End the run; raise AssertionError with the sentences of all violations."""
        report = await self.stop()
        assert_clean(report)
        return report

    async def stop(self) -> Report:
        """End the run and return the report, whatever it says."""
        if self._process is None:
            raise AuditorError("it was never started")
        self.finished = True
        if self._process.returncode is None:
            self._process.terminate()
        async with asyncio.timeout(FINISH_S):
            sys.stdout.write((await self._stdout.read()).decode())
            code = await self._process.wait()
        if code not in (0, 1):
            raise AuditorError(f"it ended with {code} and left no report")
        return Report.read(self.report)

    @property
    def _stdout(self) -> asyncio.StreamReader:
        if self._process is None or self._process.stdout is None:
            raise AuditorError("it was never started")
        return self._process.stdout

    async def _tell(self, what: str) -> None:
        async with aiohttp.ClientSession() as session, session.post(f"{self.control}/{what}") as r:
            r.raise_for_status()


def assert_clean(report: Report) -> None:
    """Raise AssertionError with the sentences of all violations."""
    if report.violations:
        raise AssertionError("the auditor objects:\n  " + "\n  ".join(report.sentences))
