"""Defaults of a Job: what Volcano's webhook fills in, filled in by a function."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from pumice.core.admission.jobs import defaults
from pumice.core.api.batch import Job, JobSpec, PartitionPolicy, TaskSpec


@dataclass(frozen=True)
class Case:
    given: JobSpec
    want: JobSpec


def a_task(name: str = "w", replicas: int = 1, minimum: int | None = 1, **more: object) -> TaskSpec:
    """A task that has everything but what the case is about."""
    given = TaskSpec(name=name, replicas=replicas, min_available=minimum, max_retry=3)
    return msgspec.structs.replace(given, **more)


def a_spec(*tasks: TaskSpec, minimum: int = 1, **more: object) -> JobSpec:
    """A specification that has everything but what the case is about."""
    given = JobSpec(scheduler_name="volcano", min_available=minimum, tasks=list(tasks))
    return msgspec.structs.replace(given, **more)


CASES = {
    "nothing given, everything filled in": Case(
        JobSpec(max_retry=0, queue="", tasks=[TaskSpec(replicas=2)]),
        JobSpec(
            scheduler_name="volcano",
            queue="default",
            max_retry=3,
            min_available=2,
            tasks=[TaskSpec(name="default0", replicas=2, min_available=2, max_retry=3)],
        ),
    ),
    "everything given, nothing changed": Case(
        JobSpec(
            scheduler_name="mine",
            queue="q",
            max_retry=5,
            min_available=1,
            tasks=[TaskSpec(name="a", replicas=3, min_available=2, max_retry=7)],
            plugins={"env": ["--x"], "svc": None},
        ),
        JobSpec(
            scheduler_name="mine",
            queue="q",
            max_retry=5,
            min_available=1,
            tasks=[TaskSpec(name="a", replicas=3, min_available=2, max_retry=7)],
            plugins={"env": ["--x"], "svc": None},
        ),
    ),
    "tasks without a name are numbered by their place": Case(
        a_spec(a_task(), a_task(name="", minimum=0), a_task(name="", minimum=0)),
        a_spec(a_task(), a_task(name="default1", minimum=0), a_task(name="default2", minimum=0)),
    ),
    "the job's minimum is the sum of the tasks' minima, replicas where there is none": Case(
        a_spec(
            a_task(replicas=4, minimum=3), a_task(name="x", replicas=2, minimum=None), minimum=0
        ),
        a_spec(a_task(replicas=4, minimum=3), a_task(name="x", replicas=2, minimum=2), minimum=5),
    ),
    "a task's minimum of zero is kept": Case(
        a_spec(a_task(), a_task(name="x", replicas=2, minimum=0), minimum=0),
        a_spec(a_task(), a_task(name="x", replicas=2, minimum=0), minimum=1),
    ),
    "partitions set the task's minimum": Case(
        a_spec(
            a_task(
                replicas=12,
                minimum=None,
                partition_policy=PartitionPolicy(
                    total_partitions=3, partition_size=4, min_partitions=2
                ),
            ),
            minimum=0,
        ),
        a_spec(
            a_task(
                replicas=12,
                minimum=8,
                partition_policy=PartitionPolicy(
                    total_partitions=3, partition_size=4, min_partitions=2
                ),
            ),
            minimum=8,
        ),
    ),
    "partitions without a minimum ask for all replicas": Case(
        a_spec(
            a_task(
                replicas=4,
                minimum=None,
                partition_policy=PartitionPolicy(total_partitions=2, partition_size=2),
            ),
        ),
        a_spec(
            a_task(
                replicas=4,
                minimum=4,
                partition_policy=PartitionPolicy(total_partitions=2, partition_size=2),
            ),
        ),
    ),
    "a retry count of zero becomes three": Case(
        a_spec(a_task(max_retry=0), max_retry=0),
        a_spec(a_task(max_retry=3), max_retry=3),
    ),
    "pods on the host's network find cluster names": Case(
        a_spec(a_task(template={"spec": {"hostNetwork": True}})),
        a_spec(
            a_task(template={"spec": {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}})
        ),
    ),
    "a DNS policy that was chosen is kept": Case(
        a_spec(a_task(template={"spec": {"hostNetwork": True, "dnsPolicy": "Default"}})),
        a_spec(a_task(template={"spec": {"hostNetwork": True, "dnsPolicy": "Default"}})),
    ),
    "other pods keep the DNS policy open": Case(
        a_spec(a_task(template={"spec": {"hostNetwork": False}})),
        a_spec(a_task(template={"spec": {"hostNetwork": False}})),
    ),
    "mpi needs ssh and svc": Case(
        a_spec(a_task(), plugins={"mpi": ["--master=m"]}),
        a_spec(a_task(), plugins={"mpi": ["--master=m"], "svc": [], "ssh": []}),
    ),
    "pytorch needs svc": Case(
        a_spec(a_task(), plugins={"pytorch": []}),
        a_spec(a_task(), plugins={"pytorch": [], "svc": []}),
    ),
    "what a plugin needs keeps the arguments it has": Case(
        a_spec(a_task(), plugins={"ray": [], "svc": ["--disable-network-policy"]}),
        a_spec(a_task(), plugins={"ray": [], "svc": ["--disable-network-policy"]}),
    ),
    "env and hcclrank need nothing": Case(
        a_spec(a_task(), plugins={"env": [], "hcclrank": None}),
        a_spec(a_task(), plugins={"env": [], "hcclrank": None}),
    ),
    "a job without tasks is left to whoever refuses it": Case(
        JobSpec(),
        JobSpec(scheduler_name="volcano"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_defaults(case: Case) -> None:
    before = msgspec.json.encode(case.given)

    got = defaults(Job(spec=case.given))

    assert got.spec == case.want
    assert msgspec.json.encode(case.given) == before, "the argument was changed"
    assert defaults(got) == got, "a second time changes something"


def test_the_scheduler_is_the_first_one_served() -> None:
    assert defaults(Job(), "mine").spec.scheduler_name == "mine"
