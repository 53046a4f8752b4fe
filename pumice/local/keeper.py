"""
The background process behind `pumice cluster`: it owns the cluster until it is told to end.

What others need to know of it stands in the state directory:

    lock         held (flock) as long as the keeper lives; its content is the keeper's process id
    state.json   written once the cluster is ready
    keeper.log   what the keeper and the build print
    plane/       the control plane's files: kubeconfigs, certificates, logs

A state file without a held lock is a leftover and means nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic, sleep, time

from pumice.local.errors import LocalError

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class State:
    """A running cluster, as seen from outside."""

    pid: int
    kubeconfig: str
    server: str
    nodes: int
    started: float
    components: dict[str, int]
    logs: str
    #: where the extender listens
    extender: str = ""


def state_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the cluster of this user keeps its state."""
    root = environment.get("XDG_STATE_HOME")
    return (Path(root) if root else Path.home() / ".local" / "state") / "pumice" / "cluster"


def current(directory: Path) -> State | None:
    """Return the state of the cluster that runs, if one does and is ready."""
    if not _is_held(directory / "lock"):
        return None
    try:
        return State(**json.loads((directory / "state.json").read_text()))
    except FileNotFoundError:
        return None


def start(directory: Path, nodes: int) -> State:
    """Start a keeper in the background and wait until its cluster is ready."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "state.json").unlink(missing_ok=True)
    log = directory / "keeper.log"
    with log.open("wb") as output:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "pumice.local.keeper", str(directory), str(nodes)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = monotonic() + START_TIMEOUT_S
    while (state := current(directory)) is None:
        if keeper.poll() is not None or monotonic() > deadline:
            keeper.kill()
            keeper.wait()
            raise LocalError(f"the cluster did not start; {log} says:\n{log.read_text()}")
        sleep(POLL_S)
    # The keeper outlives us; it is no child to be waited for.
    keeper.returncode = 0
    return state


def stop(directory: Path) -> bool:
    """End the cluster and wait until all of it is gone; False if none ran."""
    lock = directory / "lock"
    if not _is_held(lock):
        return False
    os.kill(int(lock.read_text()), signal.SIGTERM)
    deadline = monotonic() + STOP_TIMEOUT_S
    while _is_held(lock):
        if monotonic() > deadline:
            raise LocalError(f"the cluster did not end within {STOP_TIMEOUT_S:g} s")
        sleep(POLL_S)
    return True


def keep(directory: Path, nodes: int) -> None:
    """Run a cluster until SIGTERM or SIGINT."""
    # The services and their numerics are imported by the keeper alone.
    from pumice.local.cluster import Cluster

    with (directory / "lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        asked = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: asked.set())
        plane = directory / "plane"
        shutil.rmtree(plane, ignore_errors=True)
        with Cluster(plane, nodes=nodes, stock_scheduler=True) as cluster:
            processes = cluster.plane.processes
            state = State(
                pid=os.getpid(),
                kubeconfig=str(cluster.plane.kubeconfig()),
                server=cluster.plane.server,
                nodes=nodes,
                started=time(),
                components={name: processes.pid(name) for name in processes.names},
                logs=str(plane / "logs"),
                extender=cluster.extender.url,
            )
            draft = directory / "state.json.new"
            draft.write_text(json.dumps(asdict(state), indent=2))
            draft.rename(directory / "state.json")
            asked.wait()
        (directory / "state.json").unlink(missing_ok=True)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _is_held(path: Path) -> bool:
    try:
        with path.open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


if __name__ == "__main__":
    keep(Path(sys.argv[1]), int(sys.argv[2]))
