"""A job that is one node short is explained; each reader sees what their rights allow."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from tests.acceptance.bed import Bed
from tests.acceptance.objects import Object, a_job, a_pod, a_queue
from tests.fakeapi import eventually

pytestmark = pytest.mark.cluster

SIZE = 8
CPU = 4
GROUPS = {
    "": ["pods"],
    "batch.volcano.sh": ["jobs"],
    "scheduling.volcano.sh": ["podgroups"],
}
SENTENCE = (
    "The gang needs 8 pods at the same time, but only 7 of them find a node (9 nodes: not enough"
    " cpu for a pod that asks for 4)."
)


@dataclass(frozen=True, slots=True)
class Told:
    """What `pumice explain` printed, and its exit code."""

    code: int
    text: str
    error: str

    @property
    def answer(self) -> Any:
        return json.loads(self.text)


async def explain(bed: Bed, *arguments: str, token: str = "") -> Told:
    """Run `pumice explain` against the test's extender."""
    program = [sys.executable, "-m", "pumice.cli.main", "explain", *arguments]
    where = ["--server", bed.cluster.extender.url, *(["--token", token] if token else [])]
    done = await asyncio.to_thread(
        subprocess.run, [*program, *where], capture_output=True, text=True, check=False
    )
    return Told(done.returncode, done.stdout, done.stderr)


async def test_a_job_one_node_short_is_explained_to_each_reader_as_their_rights_allow(
    bed: Bed,
) -> None:
    theirs = bed.new_namespace("theirs")
    await one_node_short(bed, theirs)
    async with bed.auditor():
        found = await explained(bed)
        text = await explain(bed, "job", "gang", "-n", bed.namespace)
        await bed.until(lambda: says(bed, SENTENCE), 20, "the PodGroup's condition says so")
        await is_told_to_tenants(bed, theirs, await reader(bed, "ann"))

    assert found["sentence"] == SENTENCE
    assert found["members"]["ledger"] == {"Held": SIZE}
    compared = [(c["scope"], c["resource"], c["wanted"], c["had"]) for c in found["compared"]]
    assert compared == [
        ("gang", "members", "8", "7"),
        ("cluster", "cpu", "32", "31"),
        ("node", "cpu", "4", "3"),
    ]
    assert [(r["nodes"], r["reason"]) for r in found["refused"]] == [(9, "Insufficient cpu")]
    held = [(h["kind"], h["namespace"], h["queue"], h["holds"]) for h in found["holders"]]
    assert held == [
        ("queue", "", "", {"cpu": "4"}),
        ("job", theirs, "other", {"cpu": "4"}),
        ("outside", "", "", {"cpu": "1"}),
    ]
    for line in (SENTENCE, "9 of 9: not enough cpu for a pod that asks for 4", "8 Held"):
        assert line in text.text


async def one_node_short(bed: Bed, theirs: str) -> None:
    """Let others hold one node of nine, a stranger a part of another, and a gang need eight."""
    nodes = bed.nodes(SIZE + 1, cpu=CPU)
    bed.create(a_queue("other"), a_job("secret", cpu=CPU, queue="other", namespace=theirs))
    await bed.until(lambda: node_of(bed, theirs), 20, "the others' job runs")
    free = next(node for node in nodes if node != node_of(bed, theirs))
    bed.create(a_pod("filler", scheduler="nobody", node=free, cpu=1))
    bed.create(a_job("gang", replicas=SIZE, cpu=CPU, min_available=SIZE))
    await bed.until(lambda: len(bed.pods_of("gang")) == SIZE, 20, "the gang's pods are there")


def node_of(bed: Bed, namespace: str) -> str:
    """Return the node of the one pod of a namespace; empty while it has none."""
    pods = (pod for key, pod in bed.pods.items() if key.startswith(f"{namespace}/"))
    return next((str(pod["spec"].get("nodeName", "")) for pod in pods), "")


async def explained(bed: Bed) -> Any:
    """Return why the gang waits, once the extender has seen all of it."""
    told: list[Told] = []

    async def is_complete() -> bool:
        told.append(await explain(bed, "job", "gang", "-n", bed.namespace, "-o", "json"))
        return told[-1].code == 0 and told[-1].answer["members"]["waiting"] == SIZE

    await eventually(is_complete)
    return told[-1].answer


def says(bed: Bed, sentence: str) -> bool:
    """Tell whether the condition of the gang's PodGroup ends with a sentence."""
    conditions = (bed.pod_group("gang") or {}).get("status", {}).get("conditions", [])
    return any(c["message"].endswith(sentence) for c in conditions)


async def is_told_to_tenants(bed: Bed, theirs: str, token: str) -> None:
    """Check what a reader with rights in the test's namespace is told of it, and of another."""
    mine = await explain(bed, "job", "gang", "-n", bed.namespace, token=token)
    assert mine.code == 0
    assert SENTENCE in mine.text
    assert "4 cpu: others (1 jobs)" in mine.text
    assert theirs not in mine.text

    other = await explain(bed, "job", "secret", "-n", theirs, token=token)
    user = f"system:serviceaccount:{bed.namespace}:ann"
    what = f"jobs.batch.volcano.sh secret in namespace {theirs}"
    assert (other.code, other.text) == (1, "")
    assert other.error == f'User "{user}" may not get {what}.\n'

    nobody = await explain(bed, "job", "gang", "-n", bed.namespace, token="made.up.token")
    assert (nobody.code, nobody.text) == (1, "")
    assert nobody.error.startswith("The API server does not accept the token.")

    whole = bed.cluster.extender.get("/debug/ledger")
    assert whole[0] == 200


async def reader(bed: Bed, name: str) -> str:
    """Make somebody who may read in the test's namespace alone; return their token."""
    root = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{bed.namespace}"
    rules = [
        {"apiGroups": [group], "resources": resources, "verbs": ["get", "list"]}
        for group, resources in GROUPS.items()
    ]
    api = "rbac.authorization.k8s.io"
    accounts = f"/api/v1/namespaces/{bed.namespace}/serviceaccounts"
    bed.api.post(accounts, {"metadata": {"name": name}})
    bed.api.post(f"{root}/roles", {"metadata": {"name": name}, "rules": rules})
    binding: Object = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": api, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": bed.namespace}],
    }
    bed.api.post(f"{root}/rolebindings", binding)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token: str = bed.api.post(f"{accounts}/{name}/token", request)["status"]["token"]

    async def is_in_force() -> bool:
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": f"system:serviceaccount:{bed.namespace}:{name}",
                "resourceAttributes": {
                    "verb": "list",
                    "group": "batch.volcano.sh",
                    "resource": "jobs",
                    "namespace": bed.namespace,
                },
            },
        }
        answer = bed.api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    await eventually(is_in_force)
    return token
