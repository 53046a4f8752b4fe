"""Something of everything, some of it waiting: while nothing changes, nothing is written."""

from __future__ import annotations

import asyncio
from time import monotonic

import msgspec
import pytest

from pumice.local.users import USERS
from pumice.local.watching import Watched
from tests.acceptance.bed import Bed
from tests.acceptance.length import Length, patient
from tests.acceptance.objects import (
    a_cron,
    a_flow,
    a_job,
    a_job_template,
    a_pod,
    a_pod_group,
    a_queue,
    a_task,
)
from tests.acceptance.trail import Write

pytestmark = pytest.mark.cluster

OURS = {USERS[f"pumice-{part}"].name for part in ("extender", "controllers", "webhooks")}
PATIENCE_S = 30.0
STILL_S = 6.0
"""What a change entails is written by then; reasons of those who wait come every five seconds."""
SLEEP = ["sleep", "86400"]
RACK = "rack"


class Log:
    """
    What our components have written since it was looked at last, and events of anybody.

    Leases are not in the API server's log, and events neither: those are watched.
    """

    def __init__(self, bed: Bed) -> None:
        self._path = bed.plane.audit_log
        self._decode = msgspec.json.Decoder(Write).decode
        self._at = self._path.stat().st_size
        self._events = Watched(bed.api, "/api/v1/events", keep_history=True).start()
        self._told = len(self._events.history)
        self.stop = self._events.stop

    def read(self) -> list[str]:
        """Return the writes, each as who did what."""
        with self._path.open("rb") as opened:
            opened.seek(self._at)
            text = opened.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        writes = (w for w in map(self._decode, whole.splitlines()) if w.user.username in OURS)
        events = self._events.history[self._told :]
        self._told += len(events)
        return [
            *(
                f"{w.user.username.rpartition(':')[2]}: {w.what} {w.object_ref.name}"
                for w in writes
            ),
            *(f"event {seen.object['reason']}: {seen.object['message']}" for seen in events),
        ]


@pytest.mark.usefixtures("replicas")
async def test_nothing_is_written_while_nothing_changes(bed: Bed, length: Length) -> None:
    await bed.aside(fill, bed)
    await bed.until(lambda: is_as_it_will_be(bed), PATIENCE_S, "all is as it will be")
    log = Log(bed)
    try:
        await calm(log)
        before = monotonic()
        while monotonic() < before + length.quiet_s:
            await asyncio.sleep(1)
            assert log.read() == []
    finally:
        log.stop()


async def calm(log: Log) -> None:
    """Wait until nothing has been written for a while."""
    last, deadline = monotonic(), monotonic() + patient(PATIENCE_S)
    while monotonic() < last + STILL_S:
        assert monotonic() < deadline, "they go on writing"
        await asyncio.sleep(0.5)
        if log.read():
            last = monotonic()


def fill(bed: Bed) -> None:
    """Make something of everything: running, waiting, suspended, over."""
    bed.nodes(4, cpu=8, labels={RACK: "r0"})
    bed.create(a_queue("top"), a_queue("q", parent="top"), a_queue("full", capability={"cpu": "1"}))
    runs = a_job("runs", a_task("w", 2, command=SLEEP), queue="q", min_available=2)
    runs["spec"]["plugins"] = {"svc": [], "ssh": [], "env": []}
    bed.create(
        runs,
        a_job("large", replicas=64, min_available=64, queue="q"),
        a_job("beyond", replicas=2, min_available=2, queue="full"),
        a_job("gated", schedulingGates=[{"name": "example.com/g"}]),
        a_job("over", command=["echo", "done"]),
        a_pod("alone", command=SLEEP),
        a_pod_group("empty", min_member=1),
        a_cron("suspended", suspend=True),
        a_cron("yearly", schedule="0 0 1 1 *"),
        a_job_template("first"),
        a_job_template("second", SLEEP),
        a_flow({"first": [], "second": ["first"]}),
    )


def is_as_it_will_be(bed: Bed) -> bool:
    """Tell whether all have come as far as they can."""
    wanted = {"runs": "Running", "over": "Completed", "flow-first": "Completed"}
    wanted |= {"flow-second": "Running", "large": "Pending", "beyond": "Pending"}
    alone = (bed.pod("alone") or {}).get("status", {}).get("phase")
    return alone == "Running" and all(bed.job_phase(job) == want for job, want in wanted.items())
