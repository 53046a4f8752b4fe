"""
What the controllers take beside many pods, for which nothing is to be done.

They run in a process of their own against an API server in memory (`benchmarks.crowd`). Measured
are the start, until all informers are synced and all groups counted; a stretch in which nothing
changes; and one in which pods do.
"""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.crowd import GROUPS, PODS_PER_GROUP
from benchmarks.figures import Figure
from pumice.local.ports import Ports

CHANGES = 5_000
IDLE_S = 30.0
CALM_S = 5.0
TIMEOUT_S = 180.0
LOOK_S = 0.2
MIB = 2**20
QUEUE = "/apis/scheduling.volcano.sh/v1beta1/queues/default"
SIZE = f"controllers, {GROUPS * PODS_PER_GROUP:,} pods, {GROUPS:,} groups"


class Usage(NamedTuple):
    """What the process has used so far: seconds of CPU, bytes of memory."""

    cpu_s: float
    rss: float


def measure() -> list[Figure]:
    """Return the figures."""
    ports = Ports()
    crowd, controllers = ports.claim(), ports.claim()
    try:
        with ExitStack() as stack:
            stack.enter_context(_running("benchmarks.crowd", str(crowd)))
            _until(lambda: _ask(crowd, "/writes") == b"0")
            began = time.monotonic()
            stack.enter_context(_running("controllers", *_arguments(stack, crowd, controllers)))
            _until(lambda: _counted(crowd) == GROUPS)
            return _figures(crowd, controllers, time.monotonic() - began)
    finally:
        ports.close()


def _figures(crowd: int, controllers: int, start_s: float) -> list[Figure]:
    """Leave the controllers alone, then change pods."""
    start = _usage(controllers)
    time.sleep(CALM_S)
    before, written = _usage(controllers), int(_ask(crowd, "/writes"))
    time.sleep(IDLE_S)
    idle, writes = _usage(controllers), int(_ask(crowd, "/writes")) - written
    for number in range(CHANGES):
        path = f"/api/v1/namespaces/default/pods/web-{number % GROUPS}-{number // GROUPS}/status"
        _ask(crowd, path, {"status": {"message": "still running"}})
    time.sleep(CALM_S)
    after = _usage(controllers)
    idle_share = (idle.cpu_s - before.cpu_s) / IDLE_S
    per_change_s = (after.cpu_s - idle.cpu_s) / CHANGES
    return [
        Figure.of(f"{SIZE}: start, until all is counted", start_s, "s"),
        Figure.of("  CPU of the start", start.cpu_s, "s"),
        Figure.of("  RSS", after.rss / MIB, "MiB"),
        Figure.of("  CPU while nothing changes", 100 * idle_share, "%"),
        Figure.of(f"  API writes in {IDLE_S:g} s in which nothing changes", writes, "writes", 0),
        Figure.of("  CPU for a pod that changes", 1e6 * per_change_s, "us"),
    ]


@contextmanager
def _running(*module: str) -> Iterator[None]:
    """Run a module in a process of its own."""
    process = subprocess.Popen([sys.executable, "-m", *module], stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _arguments(stack: ExitStack, crowd: int, controllers: int) -> list[str]:
    """Return the command line of the controllers, with a kubeconfig for the API server."""
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    file = directory / "kubeconfig"
    parts = {
        "clusters": [{"name": "crowd", "cluster": {"server": f"http://127.0.0.1:{crowd}"}}],
        "users": [{"name": "crowd", "user": {"token": "any"}}],
        "contexts": [{"name": "crowd", "context": {"cluster": "crowd", "user": "crowd"}}],
    }
    whole = {"apiVersion": "v1", "kind": "Config", "current-context": "crowd", **parts}
    file.write_text(json.dumps(whole))
    address = f"--healthz=127.0.0.1:{controllers}"
    return [f"--kubeconfig={file}", address, "--leader-elect=false"]


def _until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; a server that is not there yet is waited for."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            if holds():
                return
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise TimeoutError("the controllers did not come to where they should")
        time.sleep(LOOK_S)


def _ask(port: int, path: str, patch: object = None) -> bytes:
    """Return the answer to a GET, or to a patch."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        if patch is None:
            connection.request("GET", path)
        else:
            kind = {"Content-Type": "application/merge-patch+json"}
            connection.request("PATCH", path, json.dumps(patch), kind)
        return connection.getresponse().read()
    finally:
        connection.close()


def _counted(crowd: int) -> int:
    """Return how many groups the queue says run."""
    status = json.loads(_ask(crowd, QUEUE)).get("status")
    return int(status.get("running", 0)) if isinstance(status, dict) else 0


def _usage(controllers: int) -> Usage:
    text = _ask(controllers, "/metrics").decode()

    def gauge(name: str) -> float:
        found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    return Usage(gauge("process_cpu_seconds_total"), gauge("process_resident_memory_bytes"))
