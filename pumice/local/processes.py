"""
The components' processes, by name: start, kill, restart, read their logs.

The processes belong to a supervisor (see `supervisor`), so they end with this process however
it ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from pumice.local.errors import ComponentError, NotReadyError

POLL_S = 0.02
TAIL_LINES = 30
STOP_PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Command:
    """What to run: the arguments, and the environment on top of ours."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


class Processes:
    """Named processes; safe to use from several threads."""

    def __init__(
        self,
        log_directory: Path,
        *,
        scratch: Path | None = None,
        defaults: Mapping[str, str] = {},
    ) -> None:
        """Start the supervisor; `defaults` are variables that our own environment overrides."""
        self._logs = log_directory
        self._defaults = dict(defaults)
        self._lock = threading.Lock()
        self._commands: dict[str, Command] = {}
        self._pids: dict[str, int] = {}
        argv = [sys.executable, "-m", "pumice.local.supervisor"]
        self._supervisor = subprocess.Popen(
            [*argv, str(scratch)] if scratch else argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )

    def start(self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] = {}) -> None:
        """Start a process under a name; its output goes to `<name>.log`."""
        command = Command(tuple(map(str, argv)), dict(env))
        self._launch(name, command)
        self._commands[name] = command

    def restart(self, name: str) -> None:
        """Start it again as it was started before, ending it first if it still runs."""
        if self.exit_code(name) is None:
            self.stop(name)
        self._launch(name, self._commands[name])

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a signal; after SIGKILL the process is gone when this returns."""
        self._ask(op="signal", name=name, signal=number)

    def stop(self, name: str, timeout_s: float = STOP_PATIENCE_S) -> None:
        """End it in good order, or by force after the time given."""
        self._ask(op="stop", name=name, timeout_s=timeout_s)

    def exit_code(self, name: str) -> int | None:
        """Return how it ended, or None while it runs."""
        code: int | None = self._ask(op="poll", name=name)["code"]
        return code

    def pid(self, name: str) -> int:
        """Return the id of the process last started under the name."""
        return self._pids[name]

    @property
    def names(self) -> list[str]:
        """Return the names of everything started so far, in order."""
        return list(self._commands)

    @property
    def supervisor_pid(self) -> int:
        """Return the id of the process that owns all others."""
        return self._supervisor.pid

    def log(self, name: str) -> Path:
        """Return where the output of a process goes."""
        return self._logs / f"{name}.log"

    def tail(self, name: str, lines: int = TAIL_LINES) -> str:
        """Return the end of a log."""
        with suppress(OSError):
            return "\n".join(self.log(name).read_text(errors="replace").splitlines()[-lines:])
        return ""

    def wait_ready(self, name: str, is_ready: Callable[[], bool], timeout_s: float) -> None:
        """Wait until the check says yes; a process that ends meanwhile is an error at once."""
        deadline = monotonic() + timeout_s
        while not is_ready():
            code = self.exit_code(name)
            if code is not None:
                raise ComponentError(name, code, self.tail(name))
            if monotonic() > deadline:
                raise NotReadyError(name, timeout_s, self.tail(name))
            sleep(POLL_S)

    def close(self) -> None:
        """Kill everything, the supervisor last."""
        with self._lock, suppress(BrokenPipeError):
            if self._supervisor.stdin:
                self._supervisor.stdin.close()
        try:
            self._supervisor.wait(STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()
        if self._supervisor.stdout:
            self._supervisor.stdout.close()

    def _launch(self, name: str, command: Command) -> None:
        env = {**self._defaults, **os.environ, **command.env}
        reply = self._ask(
            op="start", name=name, argv=command.argv, env=env, log=str(self.log(name))
        )
        self._pids[name] = reply["pid"]

    def _ask(self, **command: Any) -> dict[str, Any]:
        stdin, stdout = self._supervisor.stdin, self._supervisor.stdout
        if stdin is None or stdout is None or stdin.closed:
            raise ProcessLookupError("the supervisor has been closed")
        with self._lock:
            stdin.write(json.dumps(command) + "\n")
            stdin.flush()
            line = stdout.readline()
        if not line:
            raise ProcessLookupError("the supervisor is gone")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise ProcessLookupError(reply["error"])
        return reply
