"""Job plugins for frameworks: exactly what a pod of each task gets."""

from __future__ import annotations

import copy
import json
import shutil
import socket
import subprocess
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.api.batch import Job, TaskSpec
from pumice.core.jobs import plugins
from pumice.core.jobs.pods import renderer
from pumice.core.jobs.types import Wanted
from tests.unit.jobs.builders import a_job, a_task, template

Json = dict[str, Any]


def variables(**values: str) -> list[Json]:
    return [{"name": name, "value": value} for name, value in values.items()]


def a_port(name: str, number: int) -> Json:
    return {"name": name, "containerPort": number}


def body(job: Job, task: str, index: int) -> Json:
    """Return a pod as the plugins left it, without what `svc` and `ssh` add for others."""
    spec = next(x for x in job.spec.tasks or () if x.name == task)
    alone = {k: v for k, v in (job.spec.plugins or {}).items() if k not in ("svc", "ssh")}
    job.spec.plugins = alone
    return renderer(job, spec)(index)


@dataclass(frozen=True)
class Case:
    plugins: dict[str, list[str]]
    #: task and index of the pod
    pod: tuple[str, int]
    #: what is to be in its specification, beside the scheduler's name
    want: Json
    tasks: list[TaskSpec]
    annotation: str | None = None


def a_role(name: str, replicas: int, **spec: Any) -> TaskSpec:
    return a_task(name, replicas, template={"spec": {"containers": [{"name": "c"}], **spec}})


def c(**more: Any) -> Json:
    """Return a specification whose only container has more than its name."""
    return {"containers": [{"name": "c", **more}]}


TORCH = [a_role("master", 1), a_role("worker", 2), a_role("other", 1)]
TORCH_PORT = [a_port("pytorchjob-port", 23456)]
SIZE = {"MASTER_ADDR": "j-master-0.j", "MASTER_PORT": "23456", "WORLD_SIZE": "3"}
RICH: Json = {
    "initContainers": [{"name": "first"}],
    "containers": [
        {"name": "a", "env": variables(MINE="1"), "ports": [a_port("own", 23456)]},
        {"name": "b"},
    ],
}

PYTORCH = {
    "the master has rank 0": Case(
        {"pytorch": []}, ("master", 0), c(ports=TORCH_PORT, env=variables(**SIZE, RANK="0")), TORCH
    ),
    "a worker comes after the master": Case(
        {"pytorch": []}, ("worker", 1), c(ports=TORCH_PORT, env=variables(**SIZE, RANK="2")), TORCH
    ),
    "a pod of another task has no rank": Case(
        {"pytorch": []}, ("other", 0), c(ports=TORCH_PORT, env=variables(**SIZE)), TORCH
    ),
    "without a master nothing is told": Case(
        {"pytorch": []}, ("worker", 0), c(), [a_role("worker", 2)]
    ),
    "without workers the master is the world": Case(
        {"pytorch": []},
        ("master", 0),
        c(ports=TORCH_PORT, env=variables(**{**SIZE, "WORLD_SIZE": "1"}, RANK="0")),
        [a_role("master", 1)],
    ),
    "names and port are the arguments'": Case(
        {"pytorch": ["--master=head", "--worker", "w", "--port=77"]},
        ("w", 0),
        c(
            ports=[a_port("pytorchjob-port", 77)],
            env=variables(MASTER_ADDR="h.d", MASTER_PORT="77", WORLD_SIZE="2", RANK="1"),
        ),
        [a_role("head", 1, hostname="h", subdomain="d"), a_role("w", 1)],
    ),
    "main containers alone, after what is there, and no port twice": Case(
        {"pytorch": []},
        ("worker", 0),
        {
            "initContainers": [{"name": "first"}],
            "containers": [
                {
                    "name": "a",
                    "ports": [a_port("own", 23456)],
                    "env": variables(MINE="1", **{**SIZE, "WORLD_SIZE": "2"}, RANK="1"),
                },
                {
                    "name": "b",
                    "ports": TORCH_PORT,
                    "env": variables(**{**SIZE, "WORLD_SIZE": "2"}, RANK="1"),
                },
            ],
        },
        [a_role("master", 1), a_role("worker", 1, **RICH)],
    ),
}

CLUSTER = {"ps": ["j-ps-0.j:2222"], "worker": ["j-worker-0.j:2222", "j-worker-1.j:2222"]}
FLOW = [a_role("worker", 2), a_role("ps", 1), a_role("eval", 1), a_role("chief", 0)]


def tf(kind: str, index: int, cluster: Json) -> list[Json]:
    place = {"type": kind, "index": index}
    text = json.dumps({"cluster": cluster, "task": place}, separators=(",", ":"))
    return variables(TF_CONFIG=text)


TENSORFLOW = {
    "every role in its order, those without pods left out": Case(
        {"tensorflow": []}, ("worker", 1), c(env=tf("worker", 1, CLUSTER)), FLOW
    ),
    "a role under another name": Case(
        {"tensorflow": ["--evaluator=eval", "--port=1"]},
        ("eval", 0),
        c(
            env=tf(
                "evaluator",
                0,
                {
                    "ps": ["j-ps-0.j:1"],
                    "worker": ["j-worker-0.j:1", "j-worker-1.j:1"],
                    "evaluator": ["j-eval-0.j:1"],
                },
            )
        ),
        FLOW,
    ),
    "a task without a role is its own": Case(
        {"tensorflow": []}, ("eval", 0), c(env=tf("eval", 0, CLUSTER)), FLOW
    ),
    "all pods of a task that names its host": Case(
        {"tensorflow": []},
        ("worker", 0),
        {**c(env=tf("worker", 0, {"worker": ["h.j:2222", "h.j:2222"]})), "hostname": "h"},
        [a_role("worker", 2, hostname="h")],
    ),
    "main containers alone": Case(
        {"tensorflow": []},
        ("worker", 0),
        {
            "initContainers": [{"name": "first"}],
            "containers": [
                {
                    **RICH["containers"][0],
                    "env": variables(MINE="1")
                    + tf("worker", 0, {"worker": ["j-worker-0.j:2222", "j-worker-1.j:2222"]}),
                },
                {
                    "name": "b",
                    "env": tf("worker", 0, {"worker": ["j-worker-0.j:2222", "j-worker-1.j:2222"]}),
                },
            ],
        },
        [a_role("worker", 2, **RICH)],
    ),
    "a job of one pod is told nothing": Case(
        {"tensorflow": []}, ("worker", 0), c(), [a_role("worker", 1)]
    ),
}

MPI_PORT = [a_port("mpijob-port", 22)]
MPI = {
    "the master knows the workers": Case(
        {"mpi": []},
        ("master", 0),
        c(ports=MPI_PORT, env=variables(MPI_HOST="j-worker-0.j,j-worker-1.j")),
        TORCH,
    ),
    "a worker is reached at the port": Case({"mpi": []}, ("worker", 0), c(ports=MPI_PORT), TORCH),
    "main and init containers, names and port from arguments": Case(
        {"mpi": ["--master=m", "--worker=w", "--port=23456"]},
        ("m", 0),
        {
            "initContainers": [
                {
                    "name": "first",
                    "ports": [a_port("mpijob-port", 23456)],
                    "env": variables(MPI_HOST="h.j"),
                }
            ],
            "containers": [
                {**RICH["containers"][0], "env": variables(MINE="1", MPI_HOST="h.j")},
                {
                    "name": "b",
                    "ports": [a_port("mpijob-port", 23456)],
                    "env": variables(MPI_HOST="h.j"),
                },
            ],
        },
        [a_role("m", 1, **RICH), a_role("w", 3, hostname="h")],
    ),
    "workers that are none yet": Case(
        {"mpi": []},
        ("master", 0),
        c(ports=MPI_PORT, env=variables(MPI_HOST="")),
        [a_role("master", 1), a_role("worker", 0)],
    ),
    "a master without a task of workers is left as it is": Case(
        {"mpi": []}, ("master", 0), c(), [a_role("master", 1)]
    ),
}

START_HEAD = (
    "ray start --head --block --dashboard-host=0.0.0.0"
    " --port=6379 --dashboard-port=8265 --ray-client-server-port=10001"
)
RAY_PORTS = [a_port("gcs", 6379), a_port("dashboard", 8265), a_port("client-server", 10001)]
HEAD: Json = {"containers": [{"name": "head", "args": ["x"]}, {"name": "side"}]}
RAY_TASKS = [
    a_task("head", 1, template={"spec": HEAD}),
    a_task("worker", 2, template={"spec": {"containers": [{"name": "worker", "command": ["y"]}]}}),
]
RAY = {
    "the head's container starts the head, and no other": Case(
        {"ray": []},
        ("head", 0),
        {
            "containers": [
                {
                    "name": "head",
                    "args": ["x"],
                    "ports": RAY_PORTS,
                    "command": ["sh", "-c", START_HEAD],
                },
                {"name": "side"},
            ]
        },
        RAY_TASKS,
    ),
    "a worker goes to the head": Case(
        {"ray": []},
        ("worker", 1),
        {
            "containers": [
                {
                    "name": "worker",
                    "command": ["sh", "-c", "ray start --block --address=j-head-0.j:6379"],
                }
            ]
        },
        RAY_TASKS,
    ),
    "everything by argument": Case(
        {"ray": ["--head=master", "--worker=worker", "--port=1", "--dashboardPort=2",
                 "--clientPort=3", "--headContainer=c", "--workerContainer=c"]},
        ("master", 0),
        c(
            ports=[a_port("gcs", 1), a_port("dashboard", 2), a_port("client-server", 3)],
            command=["sh", "-c", "ray start --head --block --dashboard-host=0.0.0.0"
                     " --port=1 --dashboard-port=2 --ray-client-server-port=3"],
        ),
        TORCH,
    ),
    "a pod of another task is left as it is": Case(
        {"ray": ["--head=master", "--headContainer=c"]}, ("other", 0), c(), TORCH
    ),
}  # fmt: skip


HCCL = {
    "masters are counted first": Case({"hcclrank": []}, ("master", 0), c(), TORCH, "0"),
    "then workers": Case({"hcclrank": []}, ("worker", 1), c(), TORCH, "2"),
    "a pod of another task has none": Case({"hcclrank": []}, ("other", 0), c(), TORCH, None),
    "names from arguments": Case(
        {"hcclrank": ["--master=worker", "--worker=other"]}, ("other", 0), c(), TORCH, "2"
    ),
    "what RANK says goes before the count": Case(
        {"hcclrank": []},
        ("master", 0),
        c(env=variables(RANK="7")),
        [a_role("master", 1, **c(env=variables(RANK="7")))],
        "7",
    ),
    "a RANK that is no plain value is not looked at": Case(
        {"hcclrank": []},
        ("master", 0),
        c(env=[{"name": "RANK", "valueFrom": {}}]),
        [a_role("master", 1, **c(env=[{"name": "RANK", "valueFrom": {}}]))],
        "0",
    ),
    "what pytorch told is the rank": Case(
        {"hcclrank": ["--worker=none"], "pytorch": []},
        ("worker", 0),
        c(ports=TORCH_PORT, env=variables(**SIZE, RANK="1")),
        TORCH,
        "1",
    ),
}

CASES = {
    f"{plugin}: {name}": case
    for plugin, cases in {
        "pytorch": PYTORCH, "tensorflow": TENSORFLOW, "mpi": MPI, "ray": RAY, "hcclrank": HCCL,
    }.items()
    for name, case in cases.items()
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_pod(case: Case) -> None:
    tasks = copy.deepcopy(case.tasks)
    job = a_job(*tasks, plugins=dict(case.plugins))

    got = body(job, *case.pod)

    assert got["spec"] == {**case.want, "schedulerName": "volcano"}
    assert got["metadata"]["annotations"].get("hccl/rankIndex") == case.annotation
    assert tasks == case.tasks, "templates are the Job's and are not changed"


def test_a_rank_that_the_template_brings_stays() -> None:
    own = {"metadata": {"annotations": {"hccl/rankIndex": "9"}}, **template()}
    job = a_job(a_task("worker", 1, template=own), plugins={"hcclrank": []})

    assert body(job, "worker", 0)["metadata"]["annotations"]["hccl/rankIndex"] == "9"


@dataclass(frozen=True)
class Waits:
    arguments: list[str]
    #: image and a part of the script; None where nothing waits
    want: tuple[str, str] | None
    task: str = "worker"
    before: list[Json] = field(default_factory=list)


WAITS = {
    "nothing waits unasked": Waits([], None),
    "a worker waits for the master's port": Waits(
        ["--wait-master-enabled"], ("busybox:1.36.1", "nc -z j-master-0.j 23456")
    ),
    "five minutes unless told": Waits(["--wait-master-enabled"], ("busybox:1.36.1", "left=300")),
    "image and time are the arguments'": Waits(
        ["--wait-master-enabled=true", "--wait-master-timeout=9", "--wait-master-image=i"],
        ("i", "left=9"),
    ),
    "the master does not wait": Waits(["--wait-master-enabled"], None, task="master"),
    "a container of the name is the user's": Waits(
        ["--wait-master-enabled"], None, before=[{"name": "wait-for-master"}]
    ),
}


@pytest.mark.parametrize("case", WAITS.values(), ids=WAITS.keys())
def test_waiting_for_the_master(case: Waits) -> None:
    more = {"initContainers": case.before} if case.before else {}
    tasks = a_role("master", 1, **more), a_role("worker", 2, **more)
    job = a_job(*tasks, plugins={"pytorch": case.arguments})

    added = body(job, case.task, 0)["spec"].get("initContainers", [])[len(case.before) :]

    if case.want is None:
        assert added == []
        return
    image, part = case.want
    (waits,) = added
    assert waits.keys() == {"name", "image", "command"}
    assert (waits["name"], waits["image"]) == ("wait-for-master", image)
    assert waits["command"][:2] == ["sh", "-c"]
    assert part in waits["command"][2]


@pytest.mark.skipif(shutil.which("bash") is None, reason="sh may know neither nc nor /dev/tcp")
def test_waiting_ends_when_the_master_listens_or_the_time_is_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as master:
        port = master.getsockname()[1]
        assert waiting_at(port) == 0
    assert waiting_at(port) == 1


def waiting_at(port: int) -> int:
    """Run what a worker's init container runs, with the master here; return its exit code."""
    arguments = ["--wait-master-enabled", "--wait-master-timeout=1", f"--port={port}"]
    job = a_job(a_role("master", 1), a_role("worker", 1), plugins={"pytorch": arguments})
    script = body(job, "worker", 0)["spec"]["initContainers"][0]["command"][2]
    here = script.replace("j-master-0.j", "127.0.0.1")
    return subprocess.run(["bash", "-c", here], check=False, capture_output=True).returncode


def test_the_heads_service() -> None:
    job = a_job(*RAY_TASKS, plugins={"ray": ["--dashboardPort=80"]})

    wanted = [want for plugin in plugins.of(job) for want in plugin.objects(job)
              if plugin.name == "ray"]  # fmt: skip

    ports = {"gcs": 6379, "dashboard": 80, "client-server": 10001}
    assert wanted == [
        Wanted(
            "Service",
            "j-head-svc",
            {
                "spec": {
                    "selector": {
                        "volcano.sh/job-name": "j",
                        "volcano.sh/job-namespace": "ns",
                        "volcano.sh/task-spec": "head",
                    },
                    "ports": [
                        {"name": name, "protocol": "TCP", "port": port, "targetPort": name}
                        for name, port in ports.items()
                    ],
                }
            },
        )
    ]


def environment(job: Job, task: str, index: int) -> dict[str, str]:
    (container,) = body(job, task, index)["spec"]["containers"]
    return {entry["name"]: entry["value"] for entry in container["env"]}


@given(workers=st.integers(0, 6))
def test_ranks_are_all_there_and_each_once(workers: int) -> None:
    job = a_job(a_role("master", 1), a_role("worker", workers), plugins={"pytorch": []})
    pods = [("master", 0), *(("worker", index) for index in range(workers))]

    told = [environment(job, *pod) for pod in pods]

    assert [int(env["RANK"]) for env in told] == list(range(workers + 1))
    assert {env["WORLD_SIZE"] for env in told} == {str(workers + 1)}
    assert len({(env["MASTER_ADDR"], env["MASTER_PORT"]) for env in told}) == 1


@given(sizes=st.lists(st.integers(1, 4), min_size=2, max_size=4))
def test_every_pod_finds_itself_in_its_cluster(sizes: list[int]) -> None:
    roles = ("ps", "worker", "chief", "evaluator")
    tasks = [a_role(role, size) for role, size in zip(roles, sizes, strict=False)]
    job = a_job(*tasks, plugins={"tensorflow": []})

    for task in tasks:
        for index in range(task.replicas):
            told = json.loads(environment(job, task.name or "", index)["TF_CONFIG"])
            place = told["task"]
            mine = told["cluster"][place["type"]][place["index"]]
            assert mine == f"j-{task.name}-{index}.j:2222"
