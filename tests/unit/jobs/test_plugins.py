"""Job plugins: what they put into pods, and which objects they want."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import pytest

from pumice.core.api.batch import Job, TaskSpec
from pumice.core.jobs import plugins
from pumice.core.jobs.plugins.svc import hosts
from pumice.core.jobs.pods import renderer
from pumice.core.jobs.types import Wanted
from tests.unit.jobs.builders import a_job, a_task, template

Json = dict[str, Any]
SELECTOR = {"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "ns"}
VOLUME = {"name": "j-svc", "configMap": {"name": "j-svc"}}
MOUNT = {"name": "j-svc", "mountPath": "/etc/volcano"}


def of_config(key: str) -> Json:
    return {"name": key, "valueFrom": {"configMapKeyRef": {"name": "j-svc", "key": key}}}


def variables(**values: str) -> list[Json]:
    return [{"name": name, "value": value} for name, value in values.items()]


def index(value: str) -> list[Json]:
    return variables(VK_TASK_INDEX=value, VC_TASK_INDEX=value)


HOSTS = [of_config("VC_PS_A_HOSTS"), of_config("VC_PS_A_NUM"),
         of_config("VC_W_HOSTS"), of_config("VC_W_NUM")]  # fmt: skip
PLAIN: Json = {"name": "main", "image": "pause"}
FULL: Json = {
    "initContainers": [{"name": "first"}],
    "containers": [
        {
            "name": "main",
            "env": variables(MINE="1"),
            "volumeMounts": [{"name": "own", "mountPath": "/own"}],
        },
        {"name": "side"},
    ],
    "volumes": [{"name": "own", "emptyDir": {}}],
    "hostname": "h",
    "subdomain": "d",
}


@dataclass(frozen=True)
class Pod:
    plugins: dict[str, list[str] | None]
    #: what is to be in the specification of pod 1 of task `w`, beside the scheduler's name
    want: Json
    spec: Json = field(default_factory=lambda: {"containers": [PLAIN]})


PODS = {
    "no plugin adds nothing": Pod({}, {"containers": [PLAIN]}),
    "a plugin that there is not adds nothing": Pod({"own": []}, {"containers": [PLAIN]}),
    "env gives the index twice": Pod({"env": None}, {"containers": [{**PLAIN, "env": index("1")}]}),
    "env comes after what is there, in every container": Pod(
        {"env": []},
        {
            **FULL,
            "initContainers": [{"name": "first", "env": index("1")}],
            "containers": [
                {**FULL["containers"][0], "env": variables(MINE="1") + index("1")},
                {"name": "side", "env": index("1")},
            ],
        },
        FULL,
    ),
    "svc gives a DNS name, variables and files": Pod(
        {"svc": []},
        {
            "hostname": "j-w-1",
            "subdomain": "j",
            "volumes": [VOLUME],
            "containers": [{**PLAIN, "env": HOSTS, "volumeMounts": [MOUNT]}],
        },
    ),
    "svc keeps the template's names, and comes after what is there, in every container": Pod(
        {"svc": []},
        {
            "hostname": "h",
            "subdomain": "d",
            "volumes": [{"name": "own", "emptyDir": {}}, VOLUME],
            "initContainers": [{"name": "first", "env": HOSTS, "volumeMounts": [MOUNT]}],
            "containers": [
                {
                    "name": "main",
                    "env": [*variables(MINE="1"), *HOSTS],
                    "volumeMounts": [{"name": "own", "mountPath": "/own"}, MOUNT],
                },
                {"name": "side", "env": HOSTS, "volumeMounts": [MOUNT]},
            ],
        },
        FULL,
    ),
    "svc without the hosts' variables": Pod(
        {"svc": ["--inject-hosts-env=false"]},
        {
            "hostname": "j-w-1",
            "subdomain": "j",
            "volumes": [VOLUME],
            "containers": [{**PLAIN, "volumeMounts": [MOUNT]}],
        },
    ),
    "both together": Pod(
        {"svc": [], "env": []},
        {
            "hostname": "j-w-1",
            "subdomain": "j",
            "volumes": [VOLUME],
            "containers": [{**PLAIN, "env": HOSTS + index("1"), "volumeMounts": [MOUNT]}],
        },
    ),
    "what is no list is left to the API server": Pod(
        {"svc": [], "env": []},
        {
            "hostname": "j-w-1",
            "subdomain": "j",
            "volumes": "x",
            "initContainers": 7,
            "containers": [{"env": {"A": "b"}, "volumeMounts": [MOUNT]}, "y"],
        },
        {"volumes": "x", "initContainers": 7, "containers": [{"env": {"A": "b"}}, "y"]},
    ),
}


@pytest.mark.parametrize("case", PODS.values(), ids=PODS.keys())
def test_pods(case: Pod) -> None:
    before = copy.deepcopy(case.spec)
    task = a_task("w", 2, template={"spec": case.spec})
    job = a_job(a_task("ps-a", 1), task, plugins=case.plugins)

    got = renderer(job, (job.spec.tasks or [])[1])(1)["spec"]

    assert got == {**case.want, "schedulerName": "volcano"}
    assert case.spec == before, "the template is the Job's and is not changed"


def test_pods_share_nothing_that_a_plugin_changes() -> None:
    job = a_job(a_task("w", 2), plugins={"env": []})
    render = renderer(job, (job.spec.tasks or [])[0])

    bodies = [render(0), render(1)]

    assert [body["spec"]["containers"][0]["env"] for body in bodies] == [index("0"), index("1")]


DATA: dict[str, tuple[list[TaskSpec], dict[str, str]]] = {
    "every pod of every task": (
        [a_task("ps-a", 1), a_task("w", 2)],
        {
            "ps_a.host": "j-ps-a-0.j",
            "VC_PS_A_HOSTS": "j-ps-a-0.j",
            "VC_PS_A_NUM": "1",
            "w.host": "j-w-0.j\nj-w-1.j",
            "VC_W_HOSTS": "j-w-0.j,j-w-1.j",
            "VC_W_NUM": "2",
        },
    ),
    "a task without pods is empty": (
        [a_task("w", 0)],
        {"w.host": "", "VC_W_HOSTS": "", "VC_W_NUM": "0"},
    ),
    "one address where the template names the host": (
        [a_task("w", 3, template=template(hostname="h"))],
        {"w.host": "h.j", "VC_W_HOSTS": "h.j", "VC_W_NUM": "1"},
    ),
    "none where such a task has no pods": (
        [a_task("w", 0, template=template(hostname="h"))],
        {"w.host": "", "VC_W_HOSTS": "", "VC_W_NUM": "0"},
    ),
    "the template's domain": (
        [a_task("w", 1, template=template(subdomain="d"))],
        {"w.host": "j-w-0.d", "VC_W_HOSTS": "j-w-0.d", "VC_W_NUM": "1"},
    ),
    "names that are no text count as none": (
        [a_task("w", 1, template=template(subdomain=5, hostname=["x"]))],
        {"w.host": "j-w-0.j", "VC_W_HOSTS": "j-w-0.j", "VC_W_NUM": "1"},
    ),
}


@pytest.mark.parametrize(("tasks", "want"), DATA.values(), ids=DATA.keys())
def test_hosts(tasks: list[TaskSpec], want: dict[str, str]) -> None:
    assert hosts(a_job(*tasks)) == want


CONFIG = Wanted(
    "ConfigMap",
    "j-svc",
    {"data": {"w.host": "j-w-0.j", "VC_W_HOSTS": "j-w-0.j", "VC_W_NUM": "1"}},
    is_vital=True,
)
SERVICE = Wanted("Service", "j", {"spec": {"clusterIP": "None", "selector": SELECTOR}})
POLICY = Wanted(
    "NetworkPolicy",
    "j",
    {
        "spec": {
            "podSelector": {"matchLabels": SELECTOR},
            "ingress": [{"from": [{"podSelector": {"matchLabels": SELECTOR}}]}],
            "policyTypes": ["Ingress"],
        }
    },
)
READY_OR_NOT = Wanted(
    "Service",
    "j",
    {"spec": {"clusterIP": "None", "selector": SELECTOR, "publishNotReadyAddresses": True}},
)
OBJECTS: dict[str, tuple[dict[str, list[str] | None], list[Wanted]]] = {
    "env wants none": ({"env": []}, []),
    "svc wants three": ({"svc": None}, [CONFIG, SERVICE, POLICY]),
    "svc without a policy": ({"svc": ["--disable-network-policy"]}, [CONFIG, SERVICE]),
    "svc that shows pods before they are ready": (
        {"svc": ["--publish-not-ready-addresses=true"]},
        [CONFIG, READY_OR_NOT, POLICY],
    ),
    "arguments after a fault do not count": (
        {"svc": ["--publish-not-ready-addresses", "--no-root", "--disable-network-policy"]},
        [CONFIG, READY_OR_NOT, POLICY],
    ),
}


@pytest.mark.parametrize(("asked", "want"), OBJECTS.values(), ids=OBJECTS.keys())
def test_objects(asked: dict[str, list[str] | None], want: list[Wanted]) -> None:
    assert plugins.objects(a_job(plugins=asked)) == want


JUDGED: dict[str, tuple[Job, list[str], list[str]]] = {
    "nothing asked, nothing wrong": (a_job(), [], []),
    "all is there": (a_job(plugins={"svc": [], "env": [], "ssh": []}), [], []),
    "plugins that there are not": (
        a_job(plugins={"own": [], "mine": [], "svc": []}),
        ["failed to get plugin mine", "failed to get plugin own"],
        [],
    ),
    "arguments that are not understood": (
        a_job(plugins={"svc": ["--no-root"], "env": ["-x"]}),
        [],
        [
            "job plugin env: flag provided but not defined: -x",
            "job plugin svc: flag provided but not defined: -no-root",
        ],
    ),
    "ray without a head": (
        a_job(plugins={"ray": ["--head=first"]}),
        ["job plugin ray: the job has no task first"],
        [],
    ),
    "pytorch without a master": (
        a_job(plugins={"pytorch": ["--master=first"]}),
        [],
        ["job plugin pytorch: the job has no task first"],
    ),
}


@pytest.mark.parametrize(("job", "refused", "not_followed"), JUDGED.values(), ids=JUDGED.keys())
def test_what_is_refused_and_what_is_not_followed(
    job: Job, refused: list[str], not_followed: list[str]
) -> None:
    assert plugins.refusals(job) == refused
    assert plugins.faults(job) == not_followed


def test_plugins_are_listed_but_for_one_that_makes_nothing() -> None:
    job = a_job(plugins={"hcclrank": [], "mpi": [], "own": []})

    assert plugins.resources(job) == {
        "plugin-mpi": "mpi",
        "plugin-ssh": "ssh",
        "plugin-svc": "svc",
    }
