"""Jobs."""

from __future__ import annotations

from typing import Any

from pumice.core import names
from tests.unit.admission.rows.queues import a_queue
from tests.unit.admission.rows.row import Object, Row, an_object


def a_task(name: str = "w", replicas: int = 1, **fields: Any) -> Object:
    container = {"name": "c", "image": "busybox"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {"name": name, "replicas": replicas, "template": template, **fields}


def a_job(*tasks: Object, **spec: Any) -> Object:
    """Return a Job; without tasks it has one, `w`, of one pod."""
    return an_object(names.BATCH_API, "Job", {"tasks": list(tasks) or [a_task()], **spec})


def with_plugins(**plugins: list[str]) -> Object:
    """Return a Job whose task is the master that some plugins ask for."""
    return a_job(a_task("master"), plugins=plugins)


def stored_plugins(**plugins: list[str]) -> dict[str, Any]:
    return {"spec.plugins": plugins}


OWN = a_job(
    a_task("own", 4, minAvailable=2, maxRetry=5),
    queue="mine",
    schedulerName="custom-sched",
    minAvailable=2,
    maxRetry=10,
)
MINE = (a_queue("mine"),)

DEFAULTS = {
    "a queue": Row(a_job(), stored={"spec.queue": "default"}),
    "a scheduler": Row(a_job(), stored={"spec.schedulerName": "volcano"}),
    "retries": Row(a_job(), stored={"spec.maxRetry": 3, "spec.tasks.0.maxRetry": 3}),
    "retries in place of none": Row(a_job(maxRetry=0), stored={"spec.maxRetry": 3}),
    "all pods together": Row(
        a_job(a_task("a", 2), a_task("b", 3)), stored={"spec.minAvailable": 5}
    ),
    "the least of each task together": Row(
        a_job(a_task("a", 3, minAvailable=1), a_task("b", 3)),
        stored={"spec.minAvailable": 4, "spec.tasks.1.minAvailable": 3},
    ),
    "the least of a task by its partitions": Row(
        a_job(
            a_task(
                "a",
                4,
                partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1},
            )
        ),
        stored={"spec.minAvailable": 2, "spec.tasks.0.minAvailable": 2},
    ),
    "names of tasks": Row(
        a_job(a_task(""), a_task("")),
        stored={"spec.tasks.0.name": "default0", "spec.tasks.1.name": "default1"},
    ),
    "what finds names on the network of the host": Row(
        a_job(
            a_task(
                template={
                    "spec": {
                        "hostNetwork": True,
                        "restartPolicy": "Never",
                        "containers": [{"name": "c", "image": "busybox"}],
                    }
                }
            )
        ),
        stored={"spec.tasks.0.template.spec.dnsPolicy": "ClusterFirstWithHostNet"},
    ),
    "svc for tensorflow": Row(
        with_plugins(tensorflow=[]), stored=stored_plugins(svc=[], tensorflow=[])
    ),
    "svc for mpi, and ssh": Row(
        with_plugins(mpi=[]), stored=stored_plugins(svc=[], ssh=[], mpi=[])
    ),
    "svc for pytorch": Row(with_plugins(pytorch=[]), stored=stored_plugins(svc=[], pytorch=[])),
    "svc for ray": Row(with_plugins(ray=[]), stored=stored_plugins(svc=[], ray=[])),
    "ssh with mpi's arguments kept": Row(
        with_plugins(mpi=["--master=master", "--worker=w"]),
        stored=stored_plugins(svc=[], ssh=[], mpi=["--master=master", "--worker=w"]),
    ),
    "svc that is there stays": Row(
        with_plugins(svc=["--enable-networking"], tensorflow=[]),
        stored=stored_plugins(svc=["--enable-networking"], tensorflow=[]),
    ),
    "what is given stays": Row(
        OWN,
        stored={
            "spec.queue": "mine",
            "spec.schedulerName": "custom-sched",
            "spec.minAvailable": 2,
            "spec.maxRetry": 10,
            "spec.tasks.0.name": "own",
            "spec.tasks.0.minAvailable": 2,
            "spec.tasks.0.maxRetry": 5,
        },
        queues=MINE,
    ),
}


def policy(event: str = "", action: str = "RestartJob", **more: Any) -> Object:
    return {"action": action, **({"event": event} if event else {}), **more}


def with_policies(*policies: Object) -> Object:
    return a_job(policies=list(policies))


def with_volumes(*volumes: Object) -> Object:
    return a_job(volumes=list(volumes))


def waiting(*tasks: str) -> Object:
    """Return a Job; a task is written `name < other other`."""
    made = []
    for task in tasks:
        name, _, others = task.partition(" < ")
        waits: Object = {"dependsOn": {"name": others.split()}} if others else {}
        made.append(a_task(name, **waits))
    return a_job(*made)


def a_template(**container: Any) -> Object:
    """Return a template whose container has these fields besides its name."""
    return {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", **container}]}}


LEAST = "should be greater than or equal to 0"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
PAIR = a_job(a_task("a", 2), a_task("b", 2), minAvailable=2)
FIXED = ("job updates may not change fields other than",)
NO_ORDER = ("job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)",)

ROWS = {
    "one in order": Row(a_job(a_task("a", 2, minAvailable=1), minAvailable=1)),
    "a task of no pods beside another": Row(a_job(a_task("w"), a_task("idle", 0))),
    "two tasks of a name": Row(a_job(a_task("w"), a_task("w")), ("duplicated task name w",)),
    "fewer than no pods together": Row(a_job(minAvailable=-1), ("spec.minAvailable", LEAST)),
    "fewer than no retries": Row(a_job(maxRetry=-1), ("spec.maxRetry", LEAST)),
    "less than no time to live": Row(
        a_job(ttlSecondsAfterFinished=-1), ("spec.ttlSecondsAfterFinished", LEAST)
    ),
    "no tasks": Row(
        an_object(names.BATCH_API, "Job", {"minAvailable": 1}), ("No task specified in job spec",)
    ),
    "an empty list of tasks": Row(an_object(names.BATCH_API, "Job", {"tasks": []}), ("tasks",)),
    "no specification": Row(an_object(names.BATCH_API, "Job"), ("No task specified in job spec",)),
    "fewer than no pods": Row(a_job(a_task(replicas=-1)), ("spec.tasks[0].replicas", LEAST)),
    "fewer than no pods of a task together": Row(
        a_job(a_task(minAvailable=-1)), ("spec.tasks[0].minAvailable", LEAST)
    ),
    "more pods of a task together than it has": Row(
        a_job(a_task(replicas=2, minAvailable=3), minAvailable=1),
        ("'minAvailable' is greater than 'replicas' in task",),
    ),
    "more pods together than there are": Row(
        a_job(a_task(replicas=2), minAvailable=5),
        ("job 'minAvailable' should not be greater than total replicas in tasks",),
    ),
    "a name of a task that no host has": Row(
        a_job(a_task("Task_1")), ("spec.tasks[0].name", "should match")
    ),
    "an event twice": Row(
        with_policies(policy("PodFailed"), policy("PodFailed", "AbortJob")),
        ("duplicate event PodFailed  across different policy",),
    ),
    "an event together with an exit code": Row(
        with_policies(policy("PodFailed", exitCode=1)),
        ("must not specify event and exitCode simultaneously",),
    ),
    "neither an event nor an exit code": Row(
        with_policies(policy()), ("either event and exitCode should be specified",)
    ),
    "an action that there is not": Row(
        with_policies(policy("PodFailed", "DoNothing")), ("invalid policy action",)
    ),
    "an action of ours for an exit code": Row(
        with_policies(policy(action="CloseQueue", exitCode=1)), ("invalid policy action",)
    ),
    "an action for an exit code": Row(with_policies(policy(exitCode=1))),
    "an event of ours": Row(with_policies(policy("OutOfSync")), ("invalid policy event",)),
    "an exit code of nothing": Row(
        with_policies(policy(exitCode=0)), ("0 is not a valid error code",)
    ),
    "an exit code twice": Row(
        with_policies(policy(exitCode=1), policy(exitCode=1)), ("duplicate exitCode",)
    ),
    "every event, and another": Row(
        with_policies(policy("*"), policy("PodFailed")),
        ("if there's * here, no other policy should be here",),
    ),
    "a volume that is mounted nowhere": Row(
        with_volumes({"mountPath": "", "volumeClaimName": "c"}),
        ("spec.volumes[0].mountPath", "should be at least 1 chars long"),
    ),
    "two volumes in one place": Row(
        with_volumes(*[{"mountPath": "/data", "volumeClaimName": "c"}] * 2),
        ("duplicated mountPath",),
    ),
    "a volume of nothing": Row(
        with_volumes({"mountPath": "/data"}),
        ("either VolumeClaim or VolumeClaimName must be specified",),
    ),
    "a volume of a claim that is there and one that is made": Row(
        with_volumes({"mountPath": "/data", "volumeClaimName": "c", "volumeClaim": CLAIM}),
        ("conflict: If you want to use an existing PVC, just specify VolumeClaimName.",),
    ),
    "a claim with a name that none can have": Row(
        with_volumes({"mountPath": "/data", "volumeClaimName": "My_Claim"}),
        ("invalid VolumeClaimName My_Claim",),
    ),
    "tasks that wait for others": Row(waiting("a", "b < a", "c < a b")),
    "tasks that wait for each other": Row(waiting("a < b", "b < a"), NO_ORDER),
    "a task that waits for one that there is not": Row(waiting("a < z"), NO_ORDER),
    "a task that waits for another twice": Row(waiting("a", "b < a a"), NO_ORDER),
    "a job for root": Row(a_job(queue="root"), ("can not submit job to root queue",)),
    "a job for a queue with others below": Row(
        a_job(queue="mine"),
        ("can only submit job to leaf queue",),
        queues=(*MINE, a_queue("below", parent="mine")),
    ),
    "mpi without a master": Row(
        a_job(plugins={"mpi": []}), ("The specified mpi master task was not found",)
    ),
    "mpi with a master of another name": Row(a_job(plugins={"mpi": ["--master=w"]})),
    "a plugin that there is not": Row(
        a_job(plugins={"nothing": []}), ("unable to find job plugin: nothing",)
    ),
    "a name that leaves no room for that of pods": Row(
        a_job(a_task("w" * 61)), ("create pod with name x-", "must be no more than 63 characters")
    ),
    "a container without an image": Row(
        a_job(a_task(template=a_template())),
        ("spec.task[0].template.spec.containers[0].image: Required value",),
    ),
    "a container that asks for more than its limit": Row(
        a_job(
            a_task(
                template=a_template(
                    image="i", resources={"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}
                )
            )
        ),
        ("spec.task[0].template.spec.containers[0].resources.requests", "less than or equal to"),
    ),
    "pods that restart in a way that there is not": Row(
        a_job(
            a_task(
                template={
                    "spec": {
                        "restartPolicy": "Sometimes",
                        "containers": [{"name": "c", "image": "i"}],
                    }
                }
            )
        ),
        ('spec.task[0].template.spec.restartPolicy: Unsupported value: "Sometimes"',),
    ),
    "half a processor, where whole ones are asked for": Row(
        a_job(
            a_task(
                topologyPolicy="best-effort",
                template=a_template(image="i", resources={"requests": {"cpu": "500m"}}),
            )
        ),
        ("the cpu request isn't an integer in spec.task[0] container[0].",),
    ),
    "partitions that don't add up": Row(
        a_job(a_task(replicas=3, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})),
        ("'Replicas' are not equal to TotalPartitions*PartitionSize in task",),
    ),
    "it grows": Row(PAIR, change=a_job(a_task("a", 3), a_task("b", 2), minAvailable=3)),
    "it changes its priority": Row(
        PAIR, change=a_job(a_task("a", 2), a_task("b", 2), minAvailable=2, priorityClassName="p")
    ),
    "it asks for more pods together than it has": Row(
        PAIR,
        ("not be greater than total replicas",),
        change=a_job(a_task("a", 2), a_task("b", 2), minAvailable=9),
    ),
    "it gets another task": Row(
        PAIR,
        ("job updates may not add or remove tasks",),
        change=a_job(a_task("a", 2), a_task("b", 2), a_task("c"), minAvailable=2),
    ),
    "it goes to another queue": Row(
        PAIR,
        FIXED,
        queues=MINE,
        change=a_job(a_task("a", 2), a_task("b", 2), minAvailable=2, queue="mine"),
    ),
    "it gets other pods": Row(
        PAIR,
        FIXED,
        change=a_job(a_task("a", 2, template=a_template(image="i")), a_task("b", 2)),
    ),
    "it gets another plugin": Row(
        PAIR, FIXED, change=a_job(a_task("a", 2), a_task("b", 2), plugins={"env": []})
    ),
    "it gets no other policy": Row(
        with_policies(policy("PodFailed")), FIXED, change=with_policies(policy("PodEvicted"))
    ),
}
