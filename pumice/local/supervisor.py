"""
The process that owns the components, so that they end when their user does.

It is started with a pipe as its standard input and obeys one JSON command a line. The pipe
closes when the parent ends, however it ends (`kill -9` included); then everything is killed
and the scratch directory removed. Should the supervisor itself be killed, the kernel sends the
components SIGKILL (`PR_SET_PDEATHSIG`, which is bound to the forking thread: safe here, where
there is only one).

    {"op": "start", "name": "etcd", "argv": [...], "env": {...}, "log": "..."}  -> {"pid": 7}
    {"op": "poll", "name": "etcd"}                               -> {"code": null}
    {"op": "signal", "name": "etcd", "signal": 9}                -> {"code": -9}
    {"op": "stop", "name": "etcd", "timeout_s": 5}               -> {"code": 0}
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
from typing import Any

PR_SET_PDEATHSIG = 1
KILL_PATIENCE_S = 10.0

Reply = dict[str, Any]


class Supervisor:
    """Starts, signals and stops named children; holds nothing about what they are."""

    def __init__(self) -> None:
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def handle(self, command: dict[str, Any]) -> Reply:
        """Carry out one command; what goes wrong is the reply, never an exception."""
        try:
            match command:
                case {"op": "start", "name": name, "argv": argv, "env": env, "log": log}:
                    return {"pid": self._start(name, argv, env, log)}
                case {"op": "poll", "name": name}:
                    return {"code": self._children[name].poll()}
                case {"op": "signal", "name": name, "signal": number}:
                    return {"code": self._signal(name, number)}
                case {"op": "stop", "name": name, "timeout_s": timeout_s}:
                    return {"code": self._stop(name, timeout_s)}
            return {"error": f"unknown command {command}"}
        except KeyError as error:
            return {"error": f"no such process: {error.args[0]}"}
        except (OSError, subprocess.TimeoutExpired) as error:
            return {"error": str(error)}

    def kill_all(self) -> None:
        """End every child at once."""
        for child in self._children.values():
            _signal_group(child, signal.SIGKILL)
        for child in self._children.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(KILL_PATIENCE_S)

    def _start(self, name: str, argv: list[str], env: dict[str, str], log: str) -> int:
        old = self._children.get(name)
        if old is not None and old.poll() is None:
            raise OSError(f"{name} runs already")
        with open(log, "ab") as output:
            child = subprocess.Popen(
                argv,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=self._die_with_parent,
            )
        self._children[name] = child
        return child.pid

    def _die_with_parent(self) -> None:
        if self._libc is not None:
            self._libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    def _signal(self, name: str, number: int) -> int | None:
        child = self._children[name]
        _signal_group(child, number)
        if number == signal.SIGKILL:
            child.wait(KILL_PATIENCE_S)
        return child.poll()

    def _stop(self, name: str, timeout_s: float) -> int:
        child = self._children[name]
        _signal_group(child, signal.SIGTERM)
        try:
            return child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            _signal_group(child, signal.SIGKILL)
            return child.wait(KILL_PATIENCE_S)


def _signal_group(child: subprocess.Popen[bytes], number: int) -> None:
    """Signal the child and what it started; each child leads a session of its own."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)


def main(scratch: str | None = None) -> None:
    """Obey commands until the pipe closes or SIGTERM comes."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    supervisor = Supervisor()
    try:
        for line in sys.stdin:
            print(json.dumps(supervisor.handle(json.loads(line))), flush=True)
    except BrokenPipeError:
        pass
    finally:
        supervisor.kill_all()
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
