"""The webhooks on a real API server: defaults, refusals, and how they register themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from pumice.core import names
from pumice.local.install import collection_of, documents, is_gated
from pumice.local.paths import manifests
from pumice.local.services import Webhooks
from tests.acceptance.admission import CONFIGURATIONS, SECRET, configurations, tried, wait_until
from tests.acceptance.bed import Bed
from tests.acceptance.objects import Object, a_job, a_pod, a_pod_group, a_queue, a_task

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def has_webhooks() -> bool:
    """Jobs, queues and PodGroups meet the webhooks."""
    return True


def refusal(bed: Bed, body: Object) -> str:
    """Return what kubectl prints when it creates an object that is refused."""
    with pytest.raises(AssertionError) as refused:
        bed.kubectl("create", "--filename=-", "--dry-run=server", input_text=json.dumps(body))
    return str(refused.value)


def with_spec(body: Object, **fields: Any) -> Object:
    return {**body, "spec": {**body["spec"], **fields}}


# Defaults.


def test_a_job_is_stored_with_its_defaults(bed: Bed) -> None:
    body = a_job("j", a_task("a", 2), a_task("b", 3))
    body["spec"] = {
        "tasks": [{**task, "name": ""} for task in body["spec"]["tasks"]],
        "plugins": {"pytorch": ["--master=a"], "svc": ["--disable-network-policy=true"]},
        "maxRetry": 0,
    }

    spec = tried(bed, body)["spec"]

    tasks = [(t["name"], t["minAvailable"], t["maxRetry"]) for t in spec.pop("tasks")]
    assert tasks == [("default0", 2, 3), ("default1", 3, 3)]
    assert spec == {
        "schedulerName": "volcano",
        "queue": "default",
        "minAvailable": 5,
        "maxRetry": 3,
        "plugins": {"pytorch": ["--master=a"], "svc": ["--disable-network-policy=true"]},
    }


def test_a_queue_is_stored_with_its_defaults(bed: Bed) -> None:
    body = a_queue("q", weight=0)
    notes = {names.HIERARCHY: "a/b", names.HIERARCHY_WEIGHTS: "1/2"}
    body["metadata"]["annotations"] = notes

    stored = tried(bed, body)

    assert stored["spec"] == {"weight": 1, "reclaimable": True, "dequeueStrategy": "traverse"}
    assert stored["metadata"]["annotations"] == {
        names.HIERARCHY: "root/a/b",
        names.HIERARCHY_WEIGHTS: "1/1/2",
    }


def test_a_group_goes_to_the_queue_of_its_namespace(bed: Bed) -> None:
    bed.create(a_queue("theirs"), a_queue("mine"))
    note = {"metadata": {"annotations": {names.QUEUE_NAME: "theirs"}}}
    bed.api.patch(f"/api/v1/namespaces/{bed.namespace}", note)

    chosen = {
        queue: tried(bed, a_pod_group("g", min_member=1, queue=queue))["spec"]["queue"]
        for queue in ("default", "mine")
    }
    assert chosen == {"default": "theirs", "mine": "mine"}


# Refusals.


def two_tasks(first: list[str], second: list[str]) -> Object:
    """Return a Job of two tasks that wait for these."""
    tasks = [a_task("a"), a_task("b")]
    for task, wanted in zip(tasks, (first, second), strict=True):
        task["dependsOn"] = {"name": wanted}
    return a_job("j", *tasks)


def without_image() -> Object:
    body = a_job("j")
    body["spec"]["tasks"][0]["template"]["spec"]["containers"][0].pop("image")
    return body


@dataclass(frozen=True)
class Refused:
    body: Object
    webhook: str
    words: str


JOB, QUEUE, GROUP = "validatejob", "validatequeue", "validatepodgroup"

REFUSED = {
    "a job for a queue that there is not": Refused(
        a_job("j", queue="nowhere"),
        JOB,
        'unable to find job queue: queue.scheduling.volcano.sh "nowhere" not found',
    ),
    "a job for root": Refused(a_job("j", queue="root"), JOB, "can not submit job to root queue"),
    "a job for an inner queue": Refused(
        a_job("j", queue="tree"),
        JOB,
        "can only submit job to leaf queue, queue `tree` has 1 child queues",
    ),
    "a job whose tasks wait for each other": Refused(
        two_tasks(["b"], ["a"]),
        JOB,
        "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)",
    ),
    "a job whose pods would be refused": Refused(
        without_image(), JOB, "spec.task[0].template.spec.containers[0].image: Required value"
    ),
    "a job for mpi without a master": Refused(
        with_spec(a_job("j"), plugins={"mpi": []}),
        JOB,
        "The specified mpi master task was not found",
    ),
    "a job with two faults, and both are told": Refused(
        with_spec(without_image(), queue="nowhere"),
        JOB,
        "spec.task[0].template.spec.containers[0].image: Required value; unable to find job queue",
    ),
    "a queue below nothing": Refused(
        a_queue("q", parent="nowhere"), QUEUE, "failed to get parent queue nowhere of queue q"
    ),
    "a queue that may have more than its parent": Refused(
        a_queue("q", parent="tree", capability={"cpu": "5"}),
        QUEUE,
        "queue q capability[cpu]=5 exceeds its ancestor's capability=4",
    ),
    "a group for a queue that there is not": Refused(
        a_pod_group("g", min_member=1, queue="nowhere"), GROUP, "unable to find queue"
    ),
    "a pod with a budget that is none": Refused(
        a_pod("p", annotations={names.JDB_MIN_AVAILABLE: "0%"}),
        "validatepod",
        "it must be a valid percentage which between 1% ~ 99%",
    ),
}


def test_what_is_refused_and_why(bed: Bed) -> None:
    bed.create(a_queue("tree", capability={"cpu": "4"}), a_queue("tree-a", parent="tree"))
    try:
        got = {name: refusal(bed, case.body) for name, case in REFUSED.items()}
    finally:
        bed.delete(a_queue("tree-a"))
    for name, case in REFUSED.items():
        denied = f'admission webhook "{case.webhook}.volcano.sh" denied the request: '
        assert denied in got[name], name
        assert case.words in got[name].partition(denied)[2], name


def test_a_stored_job_may_change_its_size_and_little_else(bed: Bed) -> None:
    job = a_job("j", replicas=2)
    bed.create(job)
    bed.kubectl("label", "jobs.batch.volcano.sh/j", "a=b")
    grown = [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 3}]
    bed.kubectl("patch", "jobs.batch.volcano.sh/j", "--type=json", f"--patch={json.dumps(grown)}")

    moved = json.dumps({"spec": {"queue": "other"}})
    with pytest.raises(AssertionError, match="job updates may not change fields other than"):
        bed.kubectl("patch", "jobs.batch.volcano.sh/j", "--type=merge", f"--patch={moved}")


def test_queues_that_are_needed_stay(bed: Bed) -> None:
    bed.create(a_queue("tree"), a_queue("tree-a", parent="tree"))
    try:
        for name, words in {
            "default": "`default` queue can not be deleted",
            "root": "`root` queue can not be deleted",
            "tree": "queue tree can not be deleted because it has 1 child queues: tree-a",
        }.items():
            with pytest.raises(AssertionError) as refused:
                bed.kubectl("delete", "queues.scheduling.volcano.sh", name)
            assert words in str(refused.value)
    finally:
        bed.kubectl("delete", "queues.scheduling.volcano.sh", "tree-a", "tree")


def test_a_queue_and_its_job_can_be_applied_in_one_go(bed: Bed) -> None:
    bodies = [a_queue("fresh"), a_job("j", queue="fresh")]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies})
    bed.kubectl("create", "--filename=-", input_text=text)
    bed.wait_for(lambda: bed.pod_group("j"), 20, "the controllers work on the Job")


# The registration.


def test_a_restart_finds_everything_as_it_left_it(bed: Bed, webhooks: Webhooks) -> None:
    before = [*configurations(bed), bed.api.get(SECRET)]
    webhooks.restart()
    assert [*configurations(bed), bed.api.get(SECRET)] == before
    log = bed.plane.processes.log("webhooks").read_text()
    assert "traceback" not in log
    assert "Forbidden" not in log


def test_a_registration_that_somebody_spoilt_is_put_right(bed: Bed) -> None:
    right = [body["webhooks"] for body in configurations(bed)]
    path = CONFIGURATIONS.format("validating")
    spoilt = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]
    name = "validatingwebhookconfigurations/pumice-webhooks"
    bed.kubectl("patch", name, "--type=json", f"--patch={json.dumps(spoilt)}")
    bed.api.delete(CONFIGURATIONS.format("mutating"))

    def is_right() -> bool:
        return bed.api.exists(CONFIGURATIONS.format("mutating")) and right == [
            body["webhooks"] for body in configurations(bed)
        ]

    wait_until(is_right, 10)
    assert bed.api.get(path)["metadata"]["ownerReferences"][0]["kind"] == "Namespace"


def test_where_there_is_no_policy_the_gate_is_theirs(bed: Bed, webhooks: Webhooks) -> None:
    # Running, it may put its own gate in the place of the policy at any moment.
    webhooks.stop()
    policy = [*documents(manifests() / "admission" / "gate.yaml")]
    for body in policy:
        bed.api.delete(f"{collection_of(body)}/{body['metadata']['name']}")
    wait_until(lambda: not is_gated(bed.api), 10)
    try:
        webhooks.start()
        wait_until(lambda: is_gated(bed.api), 10)
        other = tried(bed, a_pod("x", scheduler="default-scheduler"))
        assert "schedulingGates" not in other["spec"]

        webhooks.kill()

        assert "schedulingGates" not in tried(bed, a_pod("x"))["spec"]
    finally:
        for body in policy:
            bed.api.post(collection_of(body), body)
        wait_until(lambda: is_gated(bed.api), 10)


def test_admission_init_writes_the_secret_with_the_webhooks_own_rights(
    bed: Bed, webhooks: Webhooks
) -> None:
    webhooks.stop()
    bed.api.delete(SECRET)

    assert "writing a new certificate" in admission_init(bed)
    made = bed.api.get(SECRET)
    assert made["data"].keys() == {"ca.crt", "ca.key", "tls.crt", "tls.key"}

    assert "is good" in admission_init(bed)
    assert bed.api.get(SECRET) == made


def admission_init(bed: Bed) -> str:
    """Run the command; return its log."""
    place = ("--service=pumice-webhooks", "--namespace=pumice-system")
    options = [*place, "--secret=pumice-webhooks-tls"]
    credentials = bed.plane.kubeconfig(Webhooks.user)
    command = [sys.executable, "-m", "webhooks", "admission-init", f"--kubeconfig={credentials}"]
    ran = subprocess.run([*command, *options], capture_output=True, text=True)
    assert not ran.returncode, ran.stderr
    return ran.stderr
