"""The API itself on a real kube-apiserver: CRDs, the gate, and who may do what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pumice.core import names
from pumice.local.api import Api
from pumice.local.controlplane import ControlPlane
from pumice.local.errors import ApiError
from pumice.local.install import collection_of, documents, install
from pumice.local.services import Controllers
from pumice.local.watching import Watched
from tests.acceptance.api_cases import ACCEPTED, REFUSED, Refusal, a_queue, a_spec, policy
from tests.acceptance.objects import Object, a_job, a_pod_spec, a_task

pytestmark = pytest.mark.cluster

EXAMPLES = Path(__file__).parents[2] / "manifests" / "examples"
DRY = "?dryRun=All&fieldValidation=Strict"


@pytest.fixture(scope="module")
def plane(
    binary_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    directory = tmp_path_factory.mktemp("plane")
    with ControlPlane(directory, binary_directory=binary_directory) as running:
        install(running.api)
        yield running


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Api:
    return plane.api


def tried(api: Api, body: Object) -> Object:
    """Return the object as the API server would store it."""
    result: Object = api.post(collection_of(body) + DRY, body)
    return result


def test_the_crds_are_established_and_structural(api: Api) -> None:
    found = api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    conditions = {
        crd["metadata"]["name"]: {c["type"]: c["status"] for c in crd["status"]["conditions"]}
        for crd in found
    }
    want = {"NamesAccepted": "True", "Established": "True"}
    assert conditions == {
        "jobs.batch.volcano.sh": want,
        "cronjobs.batch.volcano.sh": want,
        "jobflows.flow.volcano.sh": want,
        "jobtemplates.flow.volcano.sh": want,
        "hypernodes.topology.volcano.sh": want,
        "numatopologies.nodeinfo.volcano.sh": want,
        "commands.bus.volcano.sh": want,
        "podgroups.scheduling.volcano.sh": want,
        "queues.scheduling.volcano.sh": want,
    }


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.stem)
def test_the_examples_are_accepted(api: Api, file: Path) -> None:
    for body in documents(file):
        tried(api, body)


# What is stored.


def test_a_job_gets_its_defaults_and_keeps_its_templates(api: Api) -> None:
    template = {
        "metadata": {"creationTimestamp": None, "labels": {"a": "b"}, "anything": {"at": "all"}},
        "spec": {
            "containers": [{"name": "c", "image": "i", "newField": [1, None]}],
            "schedulingGates": None,
        },
    }
    body = a_job("j", a_task(replicas=2))
    body["spec"] = {
        "tasks": [{"replicas": 2, "template": template, "maxRetry": None}],
        "queue": None,
        "plugins": {"svc": None, "env": []},
        "networkTopology": {"highestTierAllowed": 1},
        "policies": None,
    }

    stored = tried(api, body)

    assert stored["spec"] == {
        "tasks": [{"replicas": 2, "template": template}],
        "queue": "default",
        "maxRetry": 3,
        "plugins": {"svc": None, "env": []},
        "networkTopology": {"highestTierAllowed": 1, "mode": "hard"},
    }


def test_a_queue_gets_its_defaults_and_no_status(api: Api) -> None:
    stored = tried(api, a_queue(capability={"cpu": 2, "memory": "1Gi"}, state="Open"))
    assert stored["spec"] == {
        "weight": 1,
        "dequeueStrategy": "traverse",
        "capability": {"cpu": 2, "memory": "1Gi"},
    }
    assert "status" not in stored


def test_a_pod_group_keeps_the_status_it_comes_with_and_has_no_subresource(api: Api) -> None:
    body = {
        "apiVersion": names.SCHEDULING_API,
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": 1, "subGroupPolicy": [{"name": "a", "minSubGroups": None}]},
        "status": {"phase": "Pending", "conditions": [CONDITION]},
    }

    stored = api.post(collection_of(body), body)

    assert stored["spec"] == {
        "minMember": 1,
        "queue": "default",
        "subGroupPolicy": [{"name": "a", "subGroupSize": 1, "minSubGroups": 0}],
    }
    without_null = {k: v for k, v in CONDITION.items() if v is not None}
    assert stored["status"] == {"phase": "Pending", "conditions": [without_null]}
    with pytest.raises(ApiError, match="404"):
        api.patch(f"{collection_of(body)}/g/status", {"status": {"phase": "Running"}})


CONDITION = {"type": "Unschedulable", "status": "True", "lastTransitionTime": None}


def test_the_status_of_a_job_is_apart(api: Api) -> None:
    body = a_job("apart", replicas=1)
    path = f"{collection_of(body)}/apart"
    api.post(collection_of(body), {**body, "status": {"running": 3}})

    assert "status" not in api.get(path)
    status = {"state": {"phase": "Running", "lastTransitionTime": None}, "running": 1}
    changed = api.patch(f"{path}/status", {"status": status, "spec": {"minAvailable": 0}})
    assert changed["status"] == {"state": {"phase": "Running"}, "running": 1}
    assert changed["spec"] == api.get(path)["spec"]


# What is refused.


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_and_why(api: Api, case: Refusal) -> None:
    with pytest.raises(ApiError) as refused:
        tried(api, case.body)
    assert refused.value.status in (400, 422)
    assert case.message in refused.value.message


@pytest.mark.parametrize("body", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_is_accepted(api: Api, body: Object) -> None:
    tried(api, body)


def test_a_job_as_large_as_the_lists_allow_is_accepted(api: Api) -> None:
    policies = [policy(exitCode=i + 1) for i in range(32)]
    tasks = [{**a_task(f"t{i}"), "policies": policies} for i in range(256)]
    tried(api, a_spec(tasks=tasks, policies=policies, minAvailable=256))


# The gate.


@dataclass(frozen=True)
class Gated:
    want: list[str]
    scheduler: str = "volcano"
    namespace: str = "default"
    annotations: dict[str, str] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)


RESTRICTED = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What our own namespace demands of a container."""
HELD = names.GATE_HELD
QUEUE_GATE = names.QUEUE_ALLOCATION_GATE

GATES = {
    "a pod of ours is held": Gated([HELD]),
    "a pod of another scheduler is not": Gated([], scheduler="default-scheduler"),
    "a pod without a scheduler's name is not": Gated([], scheduler=""),
    "a pod that has its node is not": Gated([], spec={"nodeName": "n1"}),
    "a pod that waits for its queue is not": Gated([], annotations={QUEUE_GATE: "true"}),
    "a pod that waits for its queue keeps that gate alone": Gated(
        [QUEUE_GATE],
        annotations={QUEUE_GATE: "true"},
        spec={"schedulingGates": [{"name": QUEUE_GATE}]},
    ),
    "a pod that need not wait for its queue is held": Gated(
        [HELD], annotations={QUEUE_GATE: "false"}
    ),
    "other annotations make no difference": Gated([HELD], annotations={"a": "b"}),
    "a pod in kube-system is not": Gated([], namespace="kube-system"),
    "a pod in pumice-system is not": Gated([], namespace="pumice-system"),
    "other gates are kept": Gated(
        ["example.com/a", "example.com/b", HELD],
        spec={"schedulingGates": [{"name": "example.com/a"}, {"name": "example.com/b"}]},
    ),
    "a pod that is held already stays as it is": Gated(
        ["example.com/a", HELD, "example.com/b"],
        spec={
            "schedulingGates": [
                {"name": "example.com/a"},
                {"name": HELD},
                {"name": "example.com/b"},
            ]
        },
    ),
    "other pods keep their gates as they are": Gated(
        ["example.com/a"],
        scheduler="default-scheduler",
        spec={"schedulingGates": [{"name": "example.com/a"}]},
    ),
}


@pytest.mark.parametrize("case", GATES.values(), ids=GATES.keys())
def test_the_gate(api: Api, case: Gated) -> None:
    spec = a_pod_spec(automountServiceAccountToken=False, **case.spec)
    spec["containers"][0]["securityContext"] = RESTRICTED
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": case.namespace,
            "annotations": case.annotations,
        },
        "spec": spec | ({"schedulerName": case.scheduler} if case.scheduler else {}),
    }

    stored = tried(api, body)

    assert [gate["name"] for gate in stored["spec"].get("schedulingGates", [])] == case.want


# The controllers, with the rights that they have.


def test_the_controllers_open_the_queues_and_group_pods_as_who_they_are(
    plane: ControlPlane,
) -> None:
    controllers = Controllers(plane)
    controllers.start()
    queues, groups, pods = (Watched(plane.api, path).start() for path in WATCHED)
    try:
        for body in documents(EXAMPLES / "deployment.yaml"):
            plane.api.post(collection_of(body), body)
        queues.wait(lambda found: states(found) == {"root": "Open", "default": "Open"}, 10)
        groups.wait(lambda found: [queue_of(g) for g in found.values()].count("research") == 1, 10)
        pods.wait(lambda found: sum(map(is_grouped, found.values())) == 3, 10)
        assert controllers.get("/healthz")[0] == 200
        assert (
            b'volcano_queue_pod_group_running_count{queue_name="root"}'
            in (controllers.get("/metrics")[1])
        )

        controllers.stop()

        assert plane.processes.exit_code("controllers") == 0
        log = plane.processes.log("controllers").read_text()
        assert "traceback" not in log
        assert "Forbidden" not in log
    finally:
        for watched in (queues, groups, pods):
            watched.stop()


WATCHED = (
    "/apis/scheduling.volcano.sh/v1beta1/queues",
    "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups",
    "/api/v1/namespaces/default/pods",
)


def states(queues: Watched) -> dict[str, str]:
    return {name: queue.get("status", {}).get("state", "") for name, queue in queues.items()}


def queue_of(group: Object) -> str:
    return str(group["spec"]["queue"])


def is_grouped(pod: Object) -> bool:
    return names.GROUP_NAME in pod["metadata"].get("annotations", {})


# Who may do what.

CORE, APPS, BATCH = "", "apps", "batch"
ADMISSION = "admissionregistration.k8s.io"
VOLCANO_BATCH, VOLCANO, BUS = "batch.volcano.sh", "scheduling.volcano.sh", "bus.volcano.sh"
FLOW = "flow.volcano.sh"
TOPOLOGY = "topology.volcano.sh"
STORAGE = "storage.k8s.io"
READ = ("get", "list", "watch")

Rights = dict[tuple[str, str], tuple[str, ...]]
"""(group, resource or resource/subresource) -> verbs."""

RIGHTS: dict[str, Rights] = {
    "pumice-extender": {
        (CORE, "pods"): (*READ, "patch"),
        (CORE, "pods/status"): ("patch",),
        (CORE, "pods/binding"): ("create",),
        (CORE, "pods/eviction"): ("create",),
        (CORE, "nodes"): READ,
        (CORE, "events"): ("create", "patch"),
        ("policy", "poddisruptionbudgets"): READ,
        (CORE, "resourcequotas"): READ,
        (CORE, "persistentvolumeclaims"): READ,
        (CORE, "persistentvolumes"): READ,
        (STORAGE, "storageclasses"): READ,
        (STORAGE, "csinodes"): READ,
        (STORAGE, "csidrivers"): READ,
        (STORAGE, "csistoragecapacities"): READ,
        ("nodeinfo.volcano.sh", "numatopologies"): READ,
        (CORE, "configmaps"): READ,  # one of them
        ("custom.metrics.k8s.io", "nodes/node_cpu_usage_avg"): ("get",),
        ("custom.metrics.k8s.io", "nodes/node_memory_usage_avg"): ("get",),
        ("scheduling.k8s.io", "priorityclasses"): READ,
        ("topology.volcano.sh", "hypernodes"): READ,
        (VOLCANO, "podgroups"): (*READ, "patch"),
        (VOLCANO, "queues"): READ,
        (VOLCANO, "queues/status"): ("patch",),
    },
    "pumice-controllers": {
        (CORE, "pods"): (*READ, "create", "patch", "delete"),
        (CORE, "pods/finalizers"): ("update",),
        (CORE, "persistentvolumeclaims"): (*READ, "create"),
        (CORE, "configmaps"): (*READ, "create", "patch", "delete"),
        (CORE, "secrets"): ("get", "create", "patch", "delete"),
        (CORE, "nodes"): READ,
        (TOPOLOGY, "hypernodes"): (*READ, "create", "patch", "delete"),
        (TOPOLOGY, "hypernodes/status"): ("patch",),
        (CORE, "services"): (*READ, "create", "patch", "delete"),
        ("networking.k8s.io", "networkpolicies"): (*READ, "create", "patch", "delete"),
        (CORE, "events"): ("create", "patch"),
        ("scheduling.k8s.io", "priorityclasses"): READ,
        (VOLCANO_BATCH, "jobs"): (*READ, "create", "patch", "delete"),
        (VOLCANO_BATCH, "jobs/status"): ("patch",),
        (VOLCANO_BATCH, "jobs/finalizers"): ("update",),
        (VOLCANO_BATCH, "cronjobs"): READ,
        (VOLCANO_BATCH, "cronjobs/status"): ("patch",),
        (VOLCANO_BATCH, "cronjobs/finalizers"): ("update",),
        (FLOW, "jobflows"): READ,
        (FLOW, "jobflows/status"): ("patch",),
        (FLOW, "jobflows/finalizers"): ("update",),
        (FLOW, "jobtemplates"): READ,
        (FLOW, "jobtemplates/status"): ("patch",),
        (VOLCANO, "podgroups"): (*READ, "create", "patch", "delete"),
        (VOLCANO, "queues"): (*READ, "create", "patch"),
        (VOLCANO, "queues/status"): ("patch",),
        (BUS, "commands"): (*READ, "delete"),
        (APPS, "replicasets"): READ,
        (APPS, "statefulsets"): READ,
        (APPS, "daemonsets"): READ,
        (APPS, "replicasets/finalizers"): ("update",),
        (APPS, "statefulsets/finalizers"): ("update",),
        (APPS, "daemonsets/finalizers"): ("update",),
        (BATCH, "jobs"): READ,
        (BATCH, "jobs/finalizers"): ("update",),
    },
    "pumice-webhooks": {
        (CORE, "namespaces"): ("get",),
        (VOLCANO, "queues"): READ,
        (ADMISSION, "mutatingadmissionpolicies"): ("get",),
        (ADMISSION, "mutatingwebhookconfigurations"): (*READ, "create", "patch"),
        (ADMISSION, "validatingwebhookconfigurations"): (*READ, "create", "patch"),
    },
}


def asked(plane: ControlPlane, user: str, kind: str, spec: Object) -> Object:
    """Return the API server's answer to what a user may do."""
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    path = f"/apis/authorization.k8s.io/v1/{kind.lower()}s"
    answer: Object = plane.api_as(user).post(path, body)
    return answer


@pytest.mark.parametrize("user", RIGHTS)
def test_a_user_may_do_what_it_needs_and_no_more(plane: ControlPlane, user: str) -> None:
    review = asked(plane, user, "SelfSubjectRulesReview", {"namespace": "default"})
    got: dict[tuple[str, str], set[str]] = {}
    for rule in review["status"]["resourceRules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                if group not in EVERYBODY:
                    got.setdefault((group, resource), set()).update(rule["verbs"])

    assert got == {what: set(verbs) for what, verbs in RIGHTS[user].items()}


EVERYBODY = {"authorization.k8s.io", "authentication.k8s.io"}
"""What every user may ask about itself."""

DEEDS: dict[str, tuple[str, str, str, bool]] = {
    "the extender binds": ("pumice-extender", "create", "pods/binding", True),
    "the extender evicts": ("pumice-extender", "create", "pods/eviction", True),
    "the extender deletes no pods": ("pumice-extender", "delete", "pods", False),
    "the extender reads no other ConfigMap": ("pumice-extender", "list", "configmaps", False),
    "the controllers create pods": ("pumice-controllers", "create", "pods", True),
    "the controllers bind nothing": ("pumice-controllers", "create", "pods/binding", False),
    "the controllers list no secrets": ("pumice-controllers", "list", "secrets", False),
    "the controllers evict nothing": ("pumice-controllers", "create", "pods/eviction", False),
    "the webhooks read no pods": ("pumice-webhooks", "get", "pods", False),
    "the webhooks read no secrets": ("pumice-webhooks", "list", "secrets", False),
    "the webhooks create no secrets": ("pumice-webhooks", "create", "secrets", False),
    "the scheduler reads nodes": ("pumice-scheduler", "list", "nodes", True),
    "the scheduler writes conditions": ("pumice-scheduler", "patch", "pods/status", True),
    "the scheduler reads volumes": ("pumice-scheduler", "list", "persistentvolumes", True),
    "the scheduler creates no pods": ("pumice-scheduler", "create", "pods", False),
}


@pytest.mark.parametrize(("user", "verb", "what", "want"), DEEDS.values(), ids=DEEDS.keys())
def test_deed(plane: ControlPlane, user: str, verb: str, what: str, want: bool) -> None:
    resource, _, subresource = what.partition("/")
    attributes = {
        "namespace": "default",
        "verb": verb,
        "resource": resource,
        "subresource": subresource,
    }
    spec = {"resourceAttributes": attributes}
    review = asked(plane, user, "SelfSubjectAccessReview", spec)
    assert review["status"]["allowed"] is want
