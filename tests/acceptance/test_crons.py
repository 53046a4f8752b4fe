"""CronJobs on the real control plane, with a clock for them that runs fast."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from pumice.local.cluster import Cluster
from pumice.local.watching import Watched
from tests.acceptance import hasty
from tests.acceptance.bed import Bed
from tests.acceptance.hasty import MINUTE_S
from tests.acceptance.objects import Object, a_cron

pytestmark = pytest.mark.cluster

CRON_JOBS = "/apis/batch.volcano.sh/v1alpha1/cronjobs"
TIMESTAMP = "volcano.sh/cronjob-scheduled-timestamp"
FINISHED = ("Completed", "Failed", "Terminated")
PATIENCE_S = 20.0
COLLECTED_S = 60.0
"""Kubernetes' garbage collector looks for new kinds every half minute."""

SLEEP, FAIL = ["sleep", "86400"], ["sh", "-c", "exit 1"]


@pytest.fixture(scope="module", autouse=True)
def _fast_clock(cluster: Cluster) -> None:
    """Have the controllers of the module run with the fast clock."""
    service, plane = cluster.controllers, cluster.plane
    service.stop()
    credentials = f"--kubeconfig={plane.kubeconfig(service.user)}"
    plane.processes.start(
        service.name,
        [sys.executable, str(Path(hasty.__file__)), credentials, *service.arguments()],
        {hasty.SINCE: str(time.time())},
    )
    service.wait_ready()


class Crons:
    """The CronJobs of a test, and their Jobs."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._watched = Watched(bed.api, CRON_JOBS, changed=bed.changed).start()
        self.stop = self._watched.stop

    def status(self, name: str) -> Object:
        cron = self._watched.get(f"{self._bed.namespace}/{name}", {})
        status: Object = cron.get("status", {})
        return status

    def active(self, name: str) -> list[str]:
        """Return the uids of the Jobs that the status calls active."""
        return [reference["uid"] for reference in self.status(name).get("active", ())]

    def jobs(self, name: str, *phases: str) -> list[Object]:
        """Return the Jobs of a CronJob (in these phases, where any are named), the oldest first."""
        return sorted(
            (
                job
                for job in self._bed.jobs.values()
                if job["metadata"]["namespace"] == self._bed.namespace
                and owned_by(job, name)
                and (not phases or phase_of(job) in phases)
            ),
            key=lambda job: str(job["metadata"]["name"]),
        )

    def ever(self, name: str) -> list[str]:
        """Return the uids of all Jobs that a CronJob ever had, in the order of their changes."""
        return [uid_of(job) for _, _, job in self._bed.jobs.history if owned_by(job, name)]

    def unfinished(self, name: str) -> list[str]:
        """Return the uids of the Jobs that have not ended."""
        return [uid_of(job) for job in self.jobs(name) if phase_of(job) not in FINISHED]

    @property
    def left(self) -> list[str]:
        return self._watched.keys()


def owned_by(job: Object, cron: str) -> bool:
    return any(owner["name"] == cron for owner in job["metadata"].get("ownerReferences", ()))


def phase_of(job: Object) -> str:
    return str(job.get("status", {}).get("state", {}).get("phase", ""))


def uid_of(job: Object) -> str:
    return str(job["metadata"]["uid"])


@pytest.fixture
def crons(bed: Bed) -> Iterator[Crons]:
    bed.nodes(4, cpu=32)
    found = Crons(bed)
    yield found
    found.stop()


def holds(bed: Bed, check: Callable[[], object], minutes: float) -> None:
    """Watch for so many minutes of the fast clock that something stays true."""
    with pytest.raises(TimeoutError):
        bed.wait_for(lambda: not check(), minutes * MINUTE_S)


def test_runs_come_in_time_and_suspended_ones_do_not(bed: Bed, crons: Crons) -> None:
    late = a_cron("late")
    late["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"  # Which the server ignores.
    bed.create(a_cron("basic"), a_cron("suspended", suspend=True), late)

    bed.wait_for(lambda: len(crons.jobs("basic")) >= 2, PATIENCE_S, "two runs")
    bed.wait_for(lambda: crons.status("basic").get("lastScheduleTime"), PATIENCE_S)
    bed.wait_for(lambda: crons.jobs("late"), PATIENCE_S, "a first run")
    for job in crons.jobs("basic"):
        due = datetime.fromisoformat(job["metadata"]["annotations"][TIMESTAMP])
        assert job["metadata"]["name"] == f"basic-{int(due.timestamp()) // 60}"
    holds(bed, lambda: not crons.jobs("suspended"), 3)
    assert crons.status("suspended") == {}


def test_policies_when_runs_overlap(bed: Bed, crons: Crons) -> None:
    for policy in ("Allow", "Forbid", "Replace"):
        bed.create(a_cron(policy.lower(), SLEEP, concurrencyPolicy=policy))

    bed.wait_for(lambda: len(crons.active("allow")) >= 2, PATIENCE_S, "two at a time")
    assert len(crons.unfinished("allow")) >= 2

    bed.wait_for(lambda: crons.active("forbid"), PATIENCE_S, "one active")
    (first,) = crons.active("forbid")
    bed.wait_for(lambda: crons.ever("replace"), PATIENCE_S, "one to be replaced")
    replaced = crons.ever("replace")[0]
    holds(
        bed,
        lambda: (
            crons.active("forbid") == crons.unfinished("forbid") == [first]
            and len(crons.unfinished("replace")) <= 1
            and len(crons.active("replace")) <= 1
        ),
        5,
    )
    assert replaced not in map(uid_of, crons.jobs("replace"))
    bed.wait_for(lambda: crons.active("replace") == crons.unfinished("replace") != [], PATIENCE_S)

    # What was missed starts when the one before has ended.
    (job,) = crons.jobs("forbid")
    bed.wait_for(lambda: bed.running(job["metadata"]["name"]), PATIENCE_S)
    bed.end(*bed.running(job["metadata"]["name"]))
    bed.wait_for(lambda: crons.active("forbid") not in ([], [first]), PATIENCE_S, "the next one")


def test_what_has_ended_leaves_and_old_ones_go(bed: Bed, crons: Crons) -> None:
    bed.create(
        a_cron("succeeds", successfulJobsHistoryLimit=1),
        a_cron("fails", FAIL, failedJobsHistoryLimit=1),
    )
    ends = {"succeeds": "Completed", "fails": "Failed"}
    first: dict[str, str] = {}
    for name, phase in ends.items():
        bed.wait_for(lambda: crons.jobs(name, phase), PATIENCE_S, f"one is {phase}")  # noqa: B023
        first[name] = uid_of(crons.jobs(name, phase)[0])
        bed.wait_for(lambda: first[name] not in crons.active(name), PATIENCE_S)  # noqa: B023
        bed.wait_for(
            lambda: first[name] not in map(uid_of, crons.jobs(name)),  # noqa: B023
            PATIENCE_S,
            "the first one is deleted",
        )
    bed.wait_for(lambda: crons.status("succeeds").get("lastSuccessfulTime"), PATIENCE_S)

    # A Job that has just ended is one too many until the controller hears of it.
    def is_short() -> bool:
        return all(1 <= len(crons.jobs(name, phase)) <= 2 for name, phase in ends.items())

    holds(bed, is_short, 3)
    for name in ends:
        bed.patch(a_cron(name), {"spec": {"suspend": True}})
    for name, phase in ends.items():
        bed.wait_for(
            lambda: (len(crons.jobs(name)), len(crons.jobs(name, phase))) == (1, 1),  # noqa: B023
            PATIENCE_S,
            "one is left",
        )


def test_a_controller_that_is_killed_misses_nothing_and_nothing_is_left_of_a_deleted_one(
    bed: Bed, crons: Crons
) -> None:
    bed.create(a_cron("c", SLEEP))
    bed.wait_for(lambda: crons.jobs("c"), PATIENCE_S)
    for _ in range(2):
        bed.kill("controllers")
        before = len(crons.jobs("c"))
        bed.restart("controllers")
        bed.wait_for(lambda: len(crons.jobs("c")) > before, PATIENCE_S)  # noqa: B023
    bed.wait_for(lambda: sorted(crons.active("c")) == sorted(crons.unfinished("c")), PATIENCE_S)
    runs = [job["metadata"]["annotations"][TIMESTAMP] for job in crons.jobs("c")]
    assert len(runs) == len(set(runs))

    bed.delete(a_cron("c"))
    bed.wait_for(
        lambda: not (crons.left or crons.jobs("c") or bed.pod_groups or bed.pods),
        COLLECTED_S,
        "all is gone",
    )
