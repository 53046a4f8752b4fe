"""The pods of a Job: everything in the template reaches them, and everything that names them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pumice.core import names
from pumice.core.api.batch import PartitionPolicy, VolumeSpec
from pumice.core.api.meta import Template
from pumice.core.jobs.pods import held, renderer
from tests.unit.jobs.builders import a_job, a_task

JOB_META = {
    "annotations": {
        names.PREEMPTABLE: "true",
        names.REVOCABLE_ZONE: "*",
        names.JDB_MAX_UNAVAILABLE: "1",
        names.JDB_MIN_AVAILABLE: "2",
        "mine": "stays on the job",
    },
    "labels": {names.PREEMPTABLE: "false", names.COOLDOWN_TIME: "10m", "mine": "stays on the job"},
}


def render(index: int = 0, task: dict[str, Any] | None = None, **job: Any) -> Template:
    whole = a_job(a_task("w", 4, **(task or {})), **job)
    return renderer(whole, (whole.spec.tasks or [])[0])(index)


def test_a_whole_pod() -> None:
    body = {
        "metadata": {
            "labels": {"app": "x", names.JOB_NAME: "overwritten"},
            "annotations": {"note": "y"},
            "name": "overwritten",
        },
        "spec": {
            "containers": [{"name": "main", "image": "pause", "fieldOfTheFuture": {"a": [1]}}],
            "hostname": "h",
            "restartPolicy": "Never",
        },
    }
    got = render(
        3,
        {"template": body, "topology_policy": "best-effort"},
        queue="q",
        priority_class_name="high",
        meta=JOB_META,
        status={"version": 2, "retry_count": 1},
    )

    assert got == {
        "metadata": {
            "name": "j-w-3",
            "namespace": "ns",
            "ownerReferences": [
                {
                    "apiVersion": "batch.volcano.sh/v1alpha1",
                    "kind": "Job",
                    "name": "j",
                    "uid": "u1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "labels": {
                "app": "x",
                "volcano.sh/job-name": "j",
                "volcano.sh/job-namespace": "ns",
                "volcano.sh/task-spec": "w",
                "volcano.sh/task-index": "3",
                "volcano.sh/queue-name": "q",
                "volcano.sh/preemptable": "false",
                "volcano.sh/cooldown-time": "10m",
            },
            "annotations": {
                "note": "y",
                "volcano.sh/task-index": "3",
                "volcano.sh/task-spec": "w",
                "scheduling.k8s.io/group-name": "j-u1",
                "volcano.sh/job-name": "j",
                "volcano.sh/queue-name": "q",
                "volcano.sh/job-version": "2",
                "volcano.sh/template-uid": "j-w",
                "volcano.sh/job-retry-count": "1",
                "volcano.sh/numa-topology-policy": "best-effort",
                "volcano.sh/preemptable": "true",
                "volcano.sh/revocable-zone": "*",
                "volcano.sh/jdb-min-available": "2",
            },
        },
        "spec": {
            "containers": [{"name": "main", "image": "pause", "fieldOfTheFuture": {"a": [1]}}],
            "hostname": "h",
            "restartPolicy": "Never",
            "schedulerName": "volcano",
            "priorityClassName": "high",
        },
    }


def test_the_template_names_scheduler_and_priority_first() -> None:
    spec = {"containers": [], "schedulerName": "other", "priorityClassName": "low"}
    got = render(task={"template": {"spec": spec}}, priority_class_name="high")

    assert got["spec"] == spec


def test_partitions_are_counted_by_their_size() -> None:
    parts = PartitionPolicy(total_partitions=2, partition_size=2)
    labels = [render(i, {"partition_policy": parts})["metadata"]["labels"] for i in range(4)]

    assert [x[names.PARTITION_ID] for x in labels] == ["0", "0", "1", "1"]


TERM: dict[str, Any] = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
PIN = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
PINS: dict[str, tuple[list[Any], list[Any]]] = {
    "the only term": ([], [{"matchFields": [PIN]}]),
    "every term, as one is enough": (
        [TERM, {"matchFields": ["x"]}],
        [{**TERM, "matchFields": [PIN]}, {"matchFields": ["x", PIN]}],
    ),
    "a term that allows no node goes on doing so": (
        [{}, TERM],
        [{}, {**TERM, "matchFields": [PIN]}],
    ),
}


@pytest.mark.parametrize(("terms", "want"), PINS.values(), ids=PINS.keys())
def test_a_pod_may_be_born_pinned(terms: list[Any], want: list[Any]) -> None:
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": ["p"]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    node = preferred | ({required: {"nodeSelectorTerms": terms}} if terms else {})
    affinity = {"nodeAffinity": node, "podAffinity": {"a": "b"}}
    spec = {"containers": [], "affinity": affinity}
    job = a_job(a_task("w", 1, template={"spec": spec}))
    task = (job.spec.tasks or [])[0]
    before = copy.deepcopy(spec)

    got = renderer(job, task)(0, node="n1")

    assert got["spec"]["affinity"] == {
        "nodeAffinity": {**preferred, required: {"nodeSelectorTerms": want}},
        "podAffinity": {"a": "b"},
    }
    assert got["metadata"]["annotations"][names.PLANNED_NODE] == "n1"
    assert spec == before, "the template is the Job's and is not changed"
    assert "affinity" not in renderer(a_job(), (a_job().spec.tasks or [])[0])(0)["spec"]


def test_claims_are_mounted_once_into_every_main_container() -> None:
    spec = {
        "initContainers": [{"name": "first"}],
        "containers": [
            {"name": "a", "volumeMounts": [{"name": "own", "mountPath": "/own"}]},
            {"name": "b"},
        ],
        "volumes": [{"name": "own", "emptyDir": {}}],
    }
    before = copy.deepcopy(spec)
    volumes = [
        VolumeSpec(mount_path="/data", volume_claim_name="data"),
        VolumeSpec(mount_path="/again", volume_claim_name="data"),
        VolumeSpec(mount_path="/out", volume_claim_name="out"),
    ]
    got = render(task={"template": {"spec": spec}}, volumes=volumes)["spec"]

    data, out = (volume["name"] for volume in got["volumes"][1:])
    mounts = [{"name": data, "mountPath": "/data"}, {"name": out, "mountPath": "/out"}]
    assert got["volumes"] == [
        {"name": "own", "emptyDir": {}},
        {"name": data, "persistentVolumeClaim": {"claimName": "data"}},
        {"name": out, "persistentVolumeClaim": {"claimName": "out"}},
    ]
    assert [box.get("volumeMounts") for box in got["containers"]] == [
        [{"name": "own", "mountPath": "/own"}, *mounts],
        mounts,
    ]
    assert got["initContainers"] == [{"name": "first"}]
    assert data.startswith("j-")
    assert len(data) == len("j-") + 12
    assert spec == before, "the template is the Job's and is not changed"


def test_a_template_of_nonsense_is_left_to_the_api_server() -> None:
    assert render(task={"template": {"spec": "x", "metadata": ["y"]}})["spec"] == {
        "schedulerName": "volcano"
    }


OURS = {"schedulerName": "volcano"}
GATE = {"name": names.GATE_HELD}
OTHER = {"name": "example.com/wait"}
QUEUE_GATED = {names.QUEUE_ALLOCATION_GATE: "true"}


@pytest.mark.parametrize(
    ("spec", "annotations", "gates"),
    [
        (OURS, {}, [GATE]),
        (OURS | {"schedulingGates": [OTHER]}, {}, [OTHER, GATE]),
        (OURS | {"schedulingGates": [GATE, OTHER]}, {}, [GATE, OTHER]),
        (OURS, QUEUE_GATED, None),
        (OURS | {"nodeName": "n1"}, {}, None),
        ({"schedulerName": "default-scheduler"}, {}, None),
        ({}, {}, None),
        (OURS | {"schedulingGates": "nonsense"}, {}, "nonsense"),
    ],
)
def test_a_pod_waits_behind_the_gate_where_it_may(
    spec: Template, annotations: dict[str, str], gates: object
) -> None:
    body = {"metadata": {"annotations": annotations}, "spec": spec}
    before = copy.deepcopy(body)

    assert held(body)["spec"].get("schedulingGates") == gates
    assert body == before
