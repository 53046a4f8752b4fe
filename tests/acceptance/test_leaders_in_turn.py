"""The leader is killed again and again under a flow and CronJobs that are due each second."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from pumice.local.watching import Watched
from tests.acceptance import hasty
from tests.acceptance.bed import Bed
from tests.acceptance.length import Length
from tests.acceptance.objects import a_cron, a_flow, a_job_template
from tests.acceptance.replicas import Replicas

pytestmark = pytest.mark.cluster

FLOWS = "/apis/flow.volcano.sh/v1alpha1/jobflows"
SPEED = 60
"""A minute of the CronJobs is a second."""
CRONS = ("one", "two", "three")
ABREAST = 5
PATIENCE_S = 60.0
LATE_S = 1.0
"""A run that was due so shortly before the leader was killed may not have been started."""


@dataclass
class Terms:
    """When nobody was at work, in seconds since 1970; and the clock of the CronJobs."""

    since: float
    away: list[tuple[float, float]] = field(default_factory=list)

    def shown(self, moment: float) -> float:
        """Return when the clock of the CronJobs shows a moment."""
        return self.since + (moment - self.since) / SPEED

    def excuses(self, moment: int) -> bool:
        """Tell whether nobody was there at a moment of the CronJobs."""
        at = self.shown(moment)
        return any(begin - LATE_S <= at <= end for begin, end in self.away)


@pytest.fixture
def terms() -> Terms:
    return Terms(time.time())


@pytest.fixture
def replicas(bed: Bed, terms: Terms) -> Iterator[Replicas]:
    env = {hasty.SINCE: str(terms.since), hasty.SPEED: str(SPEED)}
    made = Replicas(bed, [str(Path(hasty.__file__))], env)
    try:
        yield made
    finally:
        made.stop()


def test_nothing_is_missed_and_nothing_doubled(
    bed: Bed, replicas: Replicas, terms: Terms, length: Length
) -> None:
    bed.nodes(4, cpu=64)
    layers = [[f"s{i}-{k}" for k in range(ABREAST)] for i in range(length.leaders)]
    bed.create_many(a_job_template(name) for layer in layers for name in layer)
    below: list[str] = []
    steps: dict[str, list[str]] = {}
    for layer in layers:
        steps |= dict.fromkeys(layer, below)
        below = layer
    flows = Watched(bed.api, FLOWS, changed=bed.changed).start()
    try:
        bed.create(a_flow(steps), *map(a_cron, CRONS))
        for first, *_ in layers:
            bed.wait_for(partial(has_begun, bed, first), PATIENCE_S, f"{first} begins")
            leave(bed, replicas, terms)
        bed.wait_for(lambda: phase(bed, flows) == "Succeed", PATIENCE_S, "the flow succeeds")
    finally:
        flows.stop()

    assert {f"flow-{name}" for name in steps} == {n for n in made(bed) if n.startswith("flow-")}
    for cron in CRONS:
        runs = due(bed, cron)
        left_out = set(range(runs[0], runs[-1], 60)) - set(runs)
        assert len(runs) > length.leaders
        assert [moment for moment in left_out if not terms.excuses(moment)] == []
    assert len(made(bed)) == len(set(made(bed))), "no Job was made twice"
    pods = [seen.object["metadata"]["name"] for seen in bed.pods.history if seen.kind == "ADDED"]
    assert len(pods) == len(set(pods)), "and no pod"
    assert set(pods) >= {f"flow-{name}-worker-0" for name in steps}


def leave(bed: Bed, replicas: Replicas, terms: Terms) -> None:
    """Kill the leader, wait until the other has started a run, and start the killed one again."""
    begin = time.time()
    killed, _ = replicas.hand_over(signal.SIGKILL)
    before = len(made(bed))
    replicas.processes.restart(killed)
    bed.wait_for(
        lambda: any(name.startswith(CRONS) for name in made(bed)[before:]), PATIENCE_S, "a run"
    )
    terms.away.append((begin, time.time()))


def made(bed: Bed) -> list[str]:
    """Return the names of all Jobs that were created, in order."""
    return [seen.object["metadata"]["name"] for seen in bed.jobs.history if seen.kind == "ADDED"]


def has_begun(bed: Bed, step: str) -> bool:
    return f"flow-{step}" in made(bed)


def due(bed: Bed, cron: str) -> list[int]:
    """Return the moments for which a CronJob has had a Job, in seconds since 1970, in order."""
    runs = (name.rpartition("-") for name in made(bed))
    return sorted(int(minute) * 60 for owner, _, minute in runs if owner == cron)


def phase(bed: Bed, flows: Watched) -> str:
    status = flows.get(f"{bed.namespace}/flow", {}).get("status", {})
    return str(status.get("state", {}).get("phase", ""))
