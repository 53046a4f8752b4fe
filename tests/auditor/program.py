"""
The auditor as a program: watches and log on one side, a control port for the test on the other.

```
   pods, nodes, PodGroups ──► Reflector ─┐
   audit log ───────────────► AuditLog ──┼──► History ──(SIGTERM)──► judge ──► report
   extender /debug ─────────► ledger ────┤
   test: POST /pause ... ───► control ───┘
```
On SIGTERM it waits until the ledger has been compared in a quiet time (`settle_s` at most) and
the audit log has been read to its end; then it judges.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import msgspec
from aiohttp import web

from tests.auditor.audit import AuditLog
from tests.auditor.facts import Gang, Mark, Node, Pod, Request, Sighting
from tests.auditor.history import History, Settings
from tests.auditor.kubeconfig import access, trust
from tests.auditor.ledger import LedgerReader
from tests.auditor.report import Report, report, summary
from tests.auditor.rules.evictions import removes_pod
from tests.auditor.watch import Reflector
from tests.auditor.wire import GANGS, NODES, PODS

SYNC_S = 30.0
TICK_S = 0.1
LOG_LAG_S = 0.5


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says, the rules' settings apart."""

    kubeconfig: Path
    audit_log: Path
    report: Path
    extender_url: str = ""
    settle_s: float = 20.0
    control_port: int = 0


class Program:
    """One run of the auditor."""

    def __init__(self, options: Options, settings: Settings) -> None:
        self.options = options
        self.settings = settings
        self.history = History(started=time.time())
        self.log = AuditLog(options.audit_log, self._saw_request)
        self.ledger: LedgerReader | None = None
        self.reflectors: list[Reflector[Pod] | Reflector[Node] | Reflector[Gang]] = []
        self.paused = False
        self.stop = asyncio.Event()

    async def run(self) -> int:
        """Watch until SIGTERM or SIGINT, judge, report; return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop.set)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            self._connect(session)
            tasks = self._start()
            async with asyncio.timeout(SYNC_S):
                for reflector in self.reflectors:
                    await reflector.synced.wait()
            runner = await self._open_control_port()
            await self._until_stopped(tasks)
            await self._settle()
            outcome = self.judge()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await runner.cleanup()
        outcome.write(self.options.report)
        print("\n".join(summary(outcome)), flush=True)
        return 1 if outcome.violations else 0

    def judge(self) -> Report:
        """Judge what was seen until now."""
        self.history.ended = time.time()
        notes = [note for reflector in self.reflectors for note in reflector.notes]
        if self.ledger is not None and self.ledger.failure:
            notes.append(f"ledger not read: {self.ledger.failure}")
        return report(self.history, self.settings, notes)

    def _connect(self, session: aiohttp.ClientSession) -> None:
        """Make the readers."""
        server, history = access(self.options.kubeconfig), self.history
        self.reflectors = [
            Reflector(session, server, NODES, history.saw_node),
            Reflector(session, server, GANGS, history.saw_gang),
            Reflector(session, server, PODS, self._saw_pod),
        ]
        if self.options.extender_url:
            url = self.options.extender_url
            tls = trust(self.options.kubeconfig)
            self.ledger = LedgerReader(session, url, history, self.settings, tls)

    def _start(self) -> list[asyncio.Task[None]]:
        """Start the readers, each a task of its own."""
        work = {reflector.kind.name: reflector.run() for reflector in self.reflectors}
        work["audit log"] = self.log.run()
        if self.ledger is not None:
            work["extender"] = self.ledger.run(lambda: self.paused)
        return [asyncio.create_task(run, name=name) for name, run in work.items()]

    async def _until_stopped(self, tasks: list[asyncio.Task[None]]) -> None:
        """Wait for the signal; a reader that dies takes the program with it."""
        stopped = asyncio.create_task(self.stop.wait(), name="stop")
        done, _ = await asyncio.wait([stopped, *tasks], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        for task in done - {stopped}:
            task.result()

    async def _settle(self) -> None:
        """Give the audit log and the ledger their time."""
        self.paused = False
        now = time.time()
        await self._until(lambda: self.log.caught_up_at > now + LOG_LAG_S, SYNC_S)
        if self.ledger is not None:
            ledger = self.ledger
            if "E" in self.settings.rules:
                await self._until(lambda: ledger.compared, self.options.settle_s)
            if ledger.removals_wait:
                await ledger.read_decisions()

    async def _until(self, holds: Callable[[], bool], seconds: float) -> None:
        """Wait until it holds, for so long at most."""
        ticks = int(seconds / TICK_S)
        for _ in range(ticks):
            if holds():
                return
            await asyncio.sleep(TICK_S)

    def _saw_pod(self, seen: Sighting[Pod]) -> None:
        is_news = self.history.saw_pod(seen)
        if is_news and self.ledger and seen.object.scheduler in self.settings.schedulers:
            self.ledger.changed(seen.at)

    def _saw_request(self, request: Request) -> None:
        self.history.requests.append(request)
        if self.ledger and removes_pod(request) and request.user == self.settings.extender_user:
            self.ledger.removals_wait = True

    async def _open_control_port(self) -> web.AppRunner:
        """Serve the control port and say where it is in one line of JSON."""
        app = web.Application()
        app.router.add_post("/{kind:pause|resume|killed|limit}", self._mark)
        app.router.add_get("/report", self._report_so_far)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.options.control_port)
        await site.start()
        port = runner.addresses[0][1]
        print(f'{{"control": "http://127.0.0.1:{port}"}}', flush=True)
        return runner

    async def _mark(self, request: web.Request) -> web.Response:
        """Take in what the test says of time."""
        said = {"at": time.time(), "kind": request.match_info["kind"], **request.query}
        mark = msgspec.convert(said, Mark, strict=False)
        self.history.marks.append(mark)
        if mark.kind in ("pause", "resume"):
            self.paused = mark.kind == "pause"
        return web.Response(text="noted\n")

    async def _report_so_far(self, _: web.Request) -> web.Response:
        """Judge what was seen until now; the run goes on."""
        return web.Response(body=msgspec.json.encode(self.judge()), content_type="application/json")
