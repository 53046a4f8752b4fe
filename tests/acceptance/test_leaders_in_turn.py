"""The leader is killed again and again under a flow and CronJobs, one of them due each second."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
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
TURN = 10
"""Each CronJob is due every so many seconds: by then another leader is at work."""
CRONS = {f"cron{i}": ",".join(map(str, range(i, 60, TURN))) for i in range(TURN)}
ABREAST = 5
PATIENCE_S = 60.0


@pytest.fixture
def replicas(bed: Bed) -> Iterator[Replicas]:
    env = {hasty.SINCE: str(time.time()), hasty.SPEED: str(SPEED)}
    with Replicas(bed, [str(Path(hasty.__file__))], env) as made:
        yield made


def test_nothing_is_missed_and_nothing_doubled(
    bed: Bed, replicas: Replicas, length: Length
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
        bed.create(*(a_cron(name, schedule=f"{at} * * * *") for name, at in CRONS.items()))
        bed.wait_for(lambda: all(due(bed, name) for name in CRONS), PATIENCE_S, "all have begun")
        bed.create(a_flow(steps))
        for first, *_ in layers:
            bed.wait_for(partial(has_begun, bed, first), PATIENCE_S, f"{first} begins")
            killed, _ = replicas.hand_over(signal.SIGKILL)
            replicas.processes.restart(killed)
        bed.wait_for(lambda: phase(bed, flows) == "Succeed", PATIENCE_S, "the flow succeeds")
        so_far = {name: len(due(bed, name)) for name in CRONS}
        bed.wait_for(
            lambda: all(len(due(bed, name)) > so_far[name] for name in CRONS),
            PATIENCE_S,
            "once more",
        )
    finally:
        flows.stop()

    for name in CRONS:
        runs = due(bed, name)
        assert runs == list(range(runs[0], runs[-1] + 1, TURN)), f"{name} missed a run"
    assert {f"flow-{name}" for name in steps} == {n for n in made(bed) if n.startswith("flow-")}
    assert len(made(bed)) == len(set(made(bed))), "no Job was made twice"
    pods = [seen.object["metadata"]["name"] for seen in bed.pods.history if seen.kind == "ADDED"]
    assert len(pods) == len(set(pods)), "and no pod"
    assert set(pods) >= {f"flow-{name}-worker-0" for name in steps}


def made(bed: Bed) -> list[str]:
    """Return the names of all Jobs that were created, in order."""
    return [seen.object["metadata"]["name"] for seen in bed.jobs.history if seen.kind == "ADDED"]


def has_begun(bed: Bed, step: str) -> bool:
    return f"flow-{step}" in made(bed)


def due(bed: Bed, cron: str) -> list[int]:
    """Return the minutes for which a CronJob has had a Job, since 1970 and in order."""
    runs = (name.rpartition("-") for name in made(bed))
    return sorted(int(minute) for owner, _, minute in runs if owner == cron)


def phase(bed: Bed, flows: Watched) -> str:
    status = flows.get(f"{bed.namespace}/flow", {}).get("status", {})
    return str(status.get("state", {}).get("phase", ""))
