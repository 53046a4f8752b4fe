"""New Jobs: what is refused, and in which words."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pumice.core.admission import job_creation
from pumice.core.admission.errors import text
from pumice.core.admission.views import Queues
from pumice.core.api.batch import DependsOn, Job, PartitionPolicy, VolumeSpec
from pumice.core.api.job_rules import JOB_PLUGINS
from pumice.core.api.scheduling import NetworkTopology
from tests.builders import a_queue
from tests.unit.admission.builders import a_job, a_policy, a_task, template, told, view

NAME_FORM = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end"
    " with an alphanumeric character"
)
VALID_EVENTS = (
    "valid events are *, PodFailed, PodEvicted, PodPending, Unknown, TaskCompleted, TaskFailed,"
    " JobUpdated"
)
VALID_ACTIONS = (
    "valid actions are AbortJob, RestartJob, RestartTask, RestartPod, RestartPartition,"
    " TerminateJob, CompleteJob, ResumeJob"
)
TWO_TIERS = (
    "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
)
CLAIM_CONFLICT = (
    "conflict: If you want to use an existing PVC, just specify VolumeClaimName."
    "If you want to create a new PVC, you do not need to specify VolumeClaimName"
)
NOT_A_DAG = "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)"
BOTH = NetworkTopology(highest_tier_allowed=1, highest_tier_name="rack")


@dataclass(frozen=True)
class Refused:
    job: Job
    want: list[tuple[str, str]]
    queues: Queues = field(default_factory=view)


def after(*names: str) -> DependsOn:
    return DependsOn(name=list(names))


def parts(total: int, size: int, least: int = 0, **fields: object) -> PartitionPolicy:
    policy = PartitionPolicy(total_partitions=total, partition_size=size, min_partitions=least)
    for name, value in fields.items():
        setattr(policy, name, value)
    return policy


REFUSED = {
    "a job without tasks, whatever else is wrong": Refused(
        Job(), [("spec.tasks", "No task specified in job spec")], Queues()
    ),
    "mpi without the task that its argument names": Refused(
        a_job(a_task("master"), plugins={"mpi": ["--master=boss"]}),
        [("spec.plugins[mpi]", "The specified mpi master task was not found")],
    ),
    "mpi without arguments and without a task called master": Refused(
        a_job(plugins={"mpi": None}),
        [("spec.plugins[mpi]", "The specified mpi master task was not found")],
    ),
    "a tier by number and by name": Refused(
        a_job(network_topology=BOTH), [("spec.networkTopology", TWO_TIERS)]
    ),
    "a task's minimum above its replicas": Refused(
        a_job(a_task(replicas=2, min_available=3)),
        [
            (
                "spec.tasks[0].minAvailable",
                "'minAvailable' is greater than 'replicas' in task: w, job: j",
            )
        ],
    ),
    "two tasks of one name": Refused(
        a_job(a_task("a"), a_task("b"), a_task("a")),
        [("spec.tasks[2].name", "duplicated task name a")],
    ),
    "a policy for event and exit code": Refused(
        a_job(policies=[a_policy("PodFailed", exit_code=3)]),
        [("spec.policies[0]", "must not specify event and exitCode simultaneously")],
    ),
    "a policy for nothing": Refused(
        a_job(policies=[a_policy()]),
        [("spec.policies[0]", "either event and exitCode should be specified")],
    ),
    "an internal event": Refused(
        a_job(policies=[a_policy("OutOfSync")]),
        [
            (
                "spec.policies[0].event",
                'spec.policies: Invalid value: "OutOfSync": invalid policy event, ' + VALID_EVENTS,
            )
        ],
    ),
    "an internal action of a task's policy": Refused(
        a_job(a_task(policies=[a_policy("PodFailed", "SyncJob")])),
        [
            (
                "spec.tasks[0].policies[0].action",
                'spec.tasks.policies: Invalid value: "SyncJob": invalid policy action, '
                + VALID_ACTIONS,
            )
        ],
    ),
    "an internal action for an exit code": Refused(
        a_job(policies=[a_policy(action="CloseQueue", exit_code=1)]),
        [
            (
                "spec.policies[0].action",
                'spec.policies: Invalid value: "CloseQueue": invalid policy action, '
                + VALID_ACTIONS,
            )
        ],
    ),
    "a policy without an action": Refused(
        a_job(policies=[a_policy("PodFailed", "")]),
        [
            (
                "spec.policies[0].action",
                'spec.policies: Invalid value: "": invalid policy action, ' + VALID_ACTIONS,
            )
        ],
    ),
    "an event in two policies": Refused(
        a_job(policies=[a_policy("PodFailed"), a_policy(events=["PodEvicted", "PodFailed"])]),
        [("spec.policies[1].event", "duplicate event PodFailed  across different policy")],
    ),
    "an exit code of success": Refused(
        a_job(policies=[a_policy(exit_code=0)]),
        [("spec.policies[0].exitCode", "0 is not a valid error code")],
    ),
    "an exit code in two policies": Refused(
        a_job(policies=[a_policy(exit_code=3), a_policy(exit_code=4), a_policy(exit_code=3)]),
        [("spec.policies[2].exitCode", "duplicate exitCode 3")],
    ),
    "every event beside one of them": Refused(
        a_job(policies=[a_policy("*"), a_policy("PodFailed")]),
        [("spec.policies", "if there's * here, no other policy should be here")],
    ),
    "a task whose pods would have too long a name": Refused(
        a_job(a_task("w" * 40), name="j" * 30),
        [
            (
                "spec.tasks[0].name",
                f"create pod with name {'j' * 30}-{'w' * 40}-0 validate failed"
                " [name part must be no more than 63 characters]",
            )
        ],
    ),
    "a template that makes no pod": Refused(
        a_job(a_task(template={"spec": {}})),
        [
            (
                "spec.tasks[0].template.spec.containers",
                "spec.task[0].template.spec.containers: Required value",
            )
        ],
    ),
    "no partitions": Refused(
        a_job(a_task(replicas=0, partition_policy=parts(0, 2))),
        [
            (
                "spec.tasks[0].partitionPolicy",
                "'TotalPartitions' must be greater than 0 in task: w, job: j",
            )
        ],
    ),
    "partitions of nothing": Refused(
        a_job(a_task(replicas=0, partition_policy=parts(2, 0))),
        [
            (
                "spec.tasks[0].partitionPolicy",
                "'PartitionSize' must be greater than 0 in task: w, job: j",
            )
        ],
    ),
    "partitions that don't add up": Refused(
        a_job(a_task(replicas=5, partition_policy=parts(2, 2))),
        [
            (
                "spec.tasks[0].partitionPolicy",
                "'Replicas' are not equal to TotalPartitions*PartitionSize in task: w, job: j",
            )
        ],
    ),
    "a minimum of partitions beside another of pods": Refused(
        a_job(a_task(replicas=4, min_available=3, partition_policy=parts(2, 2, 1))),
        [
            (
                "spec.tasks[0].partitionPolicy",
                "'MinAvailable' is not equal to MinPartitions*PartitionSize in task: w, job: j",
            )
        ],
    ),
    "partitions that name a tier in both ways": Refused(
        a_job(a_task(replicas=2, partition_policy=parts(1, 2, network_topology=BOTH))),
        [("spec.tasks[0].partitionPolicy.networkTopology", TWO_TIERS)],
    ),
    "a name that no label can have": Refused(
        a_job(name="j."),
        [
            ("metadata.name", f"create job with name j. validate failed [{NAME_FORM}]"),
        ],
    ),
    "a minimum above the number of pods": Refused(
        a_job(a_task(replicas=2), min_available=3),
        [
            (
                "spec.minAvailable",
                "job 'minAvailable' should not be greater than total replicas in tasks",
            )
        ],
    ),
    "plugins that there are not": Refused(
        a_job(plugins={"svc": None, "horovod": None, "dask": []}),
        [
            ("spec.plugins[horovod]", "unable to find job plugin: horovod"),
            ("spec.plugins[dask]", "unable to find job plugin: dask"),
        ],
    ),
    "a volume without a path": Refused(
        a_job(volumes=[VolumeSpec(mount_path="", volume_claim_name="x")]),
        [("spec.volumes[0].mountPath", "mountPath is required")],
    ),
    "two volumes at one path": Refused(
        a_job(volumes=[VolumeSpec(mount_path="/a", volume_claim_name=name) for name in "xy"]),
        [("spec.volumes[1].mountPath", "duplicated mountPath: /a")],
    ),
    "a volume of nothing": Refused(
        a_job(volumes=[VolumeSpec(mount_path="/a")]),
        [("spec.volumes[0]", "either VolumeClaim or VolumeClaimName must be specified")],
    ),
    "a volume of two claims": Refused(
        a_job(volumes=[VolumeSpec(mount_path="/a", volume_claim_name="x", volume_claim={})]),
        [("spec.volumes[0]", CLAIM_CONFLICT)],
    ),
    "a claim that no claim can be called": Refused(
        a_job(volumes=[VolumeSpec(mount_path="/a", volume_claim_name="X")]),
        [
            (
                "spec.volumes[0].volumeClaimName",
                "invalid VolumeClaimName X : [a lowercase RFC 1123 subdomain must consist of lower"
                " case alphanumeric characters, '-' or '.', and must start and end with an"
                " alphanumeric character]",
            )
        ],
    ),
    "a queue that there is not": Refused(
        a_job(queue="nowhere"),
        [
            (
                "spec.queue",
                'unable to find job queue: queue.scheduling.volcano.sh "nowhere" not found',
            )
        ],
    ),
    "a closed queue": Refused(
        a_job(queue="q"),
        [
            (
                "spec.queue",
                "can only submit job to queue with state `Open`, queue `q` status is `Closed`",
            )
        ],
        view(a_queue("q", state="Closed")),
    ),
    "a queue that was not opened yet": Refused(
        a_job(queue="q"),
        [("spec.queue", "can only submit job to queue with state `Open`, queue `q` status is ``")],
        view(a_queue("q", state="")),
    ),
    "the root queue": Refused(
        a_job(queue="root"), [("spec.queue", "can not submit job to root queue")]
    ),
    "a queue that others are below": Refused(
        a_job(queue="q"),
        [("spec.queue", "can only submit job to leaf queue, queue `q` has 2 child queues")],
        view(a_queue("q"), a_queue("q1", parent="q"), a_queue("q2", parent="q")),
    ),
    "tasks that wait for each other": Refused(
        a_job(a_task("a", depends_on=after("b")), a_task("b", depends_on=after("a"))),
        [("spec.tasks", NOT_A_DAG)],
    ),
    "a task that waits for itself": Refused(
        a_job(a_task("a", depends_on=after("a"))), [("spec.tasks", NOT_A_DAG)]
    ),
    "a task that waits for one that there is not": Refused(
        a_job(a_task("a", depends_on=after("b"))), [("spec.tasks", NOT_A_DAG)]
    ),
    "a task that waits for another twice": Refused(
        a_job(a_task("a"), a_task("b", depends_on=after("a", "a"))), [("spec.tasks", NOT_A_DAG)]
    ),
    "everything that is wrong, at once": Refused(
        a_job(
            a_task("a", min_available=2),
            a_task("a", policies=[a_policy()]),
            queue="nowhere",
            min_available=9,
            plugins={"x": None},
        ),
        [
            (
                "spec.tasks[0].minAvailable",
                "'minAvailable' is greater than 'replicas' in task: a, job: j",
            ),
            ("spec.tasks[1].name", "duplicated task name a"),
            ("spec.tasks[1].policies[0]", "either event and exitCode should be specified"),
            (
                "spec.minAvailable",
                "job 'minAvailable' should not be greater than total replicas in tasks",
            ),
            ("spec.plugins[x]", "unable to find job plugin: x"),
            (
                "spec.queue",
                'unable to find job queue: queue.scheduling.volcano.sh "nowhere" not found',
            ),
        ],
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_refused(case: Refused) -> None:
    assert told(job_creation.check(case.job, case.queues)) == case.want


ACCEPTED = {
    "a job with everything in order": a_job(),
    "a task of no pods beside another": a_job(a_task("a"), a_task("idle", 0, min_available=0)),
    "mpi with the task that its argument names": a_job(
        a_task("boss"), plugins={"mpi": ["--port=2222", "--master", "boss"]}
    ),
    "mpi with a task called master": a_job(a_task("master"), plugins={"mpi": []}),
    "every plugin that there is": a_job(a_task("master"), plugins=dict.fromkeys(JOB_PLUGINS)),
    "an event twice in one policy": a_job(
        policies=[a_policy("PodFailed", events=["PodFailed", "PodEvicted"])]
    ),
    "an event for the job and for a task": a_job(
        a_task(policies=[a_policy("PodEvicted")]), policies=[a_policy("PodEvicted")]
    ),
    "every event, and exit codes": a_job(policies=[a_policy("*"), a_policy(exit_code=-1)]),
    "partitions that add up": a_job(
        a_task(replicas=6, min_available=4, partition_policy=parts(3, 2, 2))
    ),
    "partitions whose minimum is left open": a_job(
        a_task(replicas=6, min_available=5, partition_policy=parts(3, 2))
    ),
    "tasks that wait for others": a_job(
        a_task("a"),
        a_task("b", depends_on=after("a")),
        a_task("c", depends_on=after("a", "b")),
        a_task("d", depends_on=DependsOn()),
    ),
    "an existing claim, and one to be made": a_job(
        volumes=[
            VolumeSpec(mount_path="/a", volume_claim_name="x"),
            VolumeSpec(mount_path="/b", volume_claim={"accessModes": ["ReadWriteOnce"]}),
        ]
    ),
    "a NUMA policy and whole CPUs": a_job(
        a_task(
            topology_policy="single-numa-node",
            template=template({"name": "c", "image": "i", "resources": {"limits": {"cpu": "2"}}}),
        )
    ),
}


@pytest.mark.parametrize("job", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(job: Job) -> None:
    assert job_creation.check(job, view()) == []


def test_a_text_names_everything_once() -> None:
    job = a_job(a_task("a", min_available=2), a_task("a", min_available=2))
    assert text(job_creation.check(job, view())) == (
        "'minAvailable' is greater than 'replicas' in task: a, job: j; duplicated task name a"
    )
