"""Who waits is told by an event, takes nothing, evicts nobody, and starts when it can."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from pumice.local.errors import ApiError
from pumice.local.watching import Watched
from tests.acceptance.bed import Bed, pod_path
from tests.acceptance.objects import Object, a_job, a_pod_spec, a_queue

pytestmark = pytest.mark.cluster

PATIENCE_S = 20.0
OTHERS = [{"name": "example.com/g1"}]


@pytest.fixture
def reasons(bed: Bed) -> Iterator[Callable[[str], set[str]]]:
    """Return the reasons of the events on the PodGroup of a Job."""
    path = f"/api/v1/namespaces/{bed.namespace}/events"
    events = Watched(bed.api, path, changed=bed.changed).start()

    def of(job: str) -> set[str]:
        group = (bed.pod_group(job) or {"metadata": {"name": ""}})["metadata"]["name"]
        return {e["reason"] for e in events.values() if e["involvedObject"]["name"] == group}

    yield of
    events.stop()


def a_workload(version: str, kind: str, name: str, spec: Object, **pod: object) -> Object:
    """Return a ReplicaSet or a Kubernetes Job of one-cpu pods of scheduler `volcano`."""
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {**a_pod_spec(cpu=1), "schedulerName": "volcano", **pod},
    }
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**spec, "template": template},
    }


def pending(bed: Bed, job: str) -> int:
    return sum(pod["status"].get("phase") == "Pending" for pod in bed.pods_of(job))


def test_a_gang_without_room_is_told_and_evicts_nobody(
    bed: Bed, reasons: Callable[[str], set[str]]
) -> None:
    bed.nodes(1, cpu=4)
    bed.create(a_job("first", replicas=4, min_available=4))
    bed.wait_phase("first", "Running", PATIENCE_S)
    bed.create(a_job("second", replicas=4, min_available=4))
    bed.wait_for(lambda: "Unschedulable" in reasons("second"), PATIENCE_S, "it is told")
    bed.wait_phase("second", "Pending", PATIENCE_S)
    assert len(bed.running("first")) == 4
    assert "Evict" not in reasons("first")
    bed.end(*bed.pods_of("first"))
    bed.wait_phase("second", "Running", PATIENCE_S)


def test_a_gang_waits_for_a_replica_set_that_was_first(
    bed: Bed, reasons: Callable[[str], set[str]]
) -> None:
    bed.nodes(1, cpu=4)
    selector = {"selector": {"matchLabels": {"app": "rs"}}}
    rs = a_workload("apps/v1", "ReplicaSet", "rs", {"replicas": 3, **selector}, restartPolicy=None)
    bed.create(rs)
    bed.wait_for(
        lambda: sum(pod["status"].get("phase") == "Running" for pod in bed.pods.values()) == 3,
        PATIENCE_S,
        "it runs",
    )
    bed.create(a_job("gang", replicas=3, min_available=3))
    bed.wait_for(lambda: "Unschedulable" in reasons("gang"), PATIENCE_S, "the gang is told")
    bed.wait_phase("gang", "Pending", PATIENCE_S)
    bed.delete(rs)
    bed.wait_phase("gang", "Running", 60)


def test_one_pod_too_many_for_the_node_that_is_asked_for(
    bed: Bed, reasons: Callable[[str], set[str]]
) -> None:
    node, *_ = bed.nodes(3, cpu=4)
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    bed.create(
        a_job("wide", replicas=5, min_available=5, affinity={"nodeAffinity": required}),
        a_job("other", replicas=4, min_available=4),
    )
    bed.wait_for(lambda: "Unschedulable" in reasons("wide"), PATIENCE_S, "it is told")
    bed.wait_phase("other", "Running", PATIENCE_S)
    assert bed.bound("wide") == []


def test_a_job_behind_gates_of_others_is_told_and_starts_without_them(
    bed: Bed, reasons: Callable[[str], set[str]]
) -> None:
    bed.nodes(2, cpu=2)
    bed.create(a_job("gated", replicas=2, min_available=2, cpu=2, schedulingGates=OTHERS))
    bed.wait_for(lambda: "Unschedulable" in reasons("gated"), PATIENCE_S, "it is told")
    assert bed.bound("gated") == []
    remove_gates(bed, "gated")
    bed.wait_phase("gated", "Running", PATIENCE_S)


def test_gated_pods_take_no_room_of_their_queue(bed: Bed) -> None:
    bed.nodes(2, cpu=4)
    bed.create(a_queue("q", capability={"cpu": "8"}))
    bed.wait_for(
        lambda: bed.queues.get("q", {}).get("status", {}).get("state") == "Open", 10, "it is open"
    )
    bed.create(a_job("gated", replicas=8, min_available=8, queue="q", schedulingGates=OTHERS))
    bed.wait_for(lambda: pending(bed, "gated") == 8, PATIENCE_S, "its pods are there")
    halves = ("left", "right")
    bed.create(*(a_job(name, replicas=4, min_available=4, queue="q") for name in halves))
    bed.wait_for(
        lambda: all(bed.job_phase(name) == "Running" for name in halves), PATIENCE_S, "both run"
    )
    assert pending(bed, "gated") == 8


def test_a_kubernetes_job_that_was_refused_once_starts_when_it_is_whole(bed: Bed) -> None:
    bed.nodes(1, cpu=4)
    spec = {"parallelism": 2, "completions": 2}
    with pytest.raises(ApiError, match="restartPolicy"):
        bed.create(a_workload("batch/v1", "Job", "kj", spec, restartPolicy=None))
    bed.create(a_workload("batch/v1", "Job", "kj", spec))
    path = f"/apis/batch/v1/namespaces/{bed.namespace}/jobs/kj"
    bed.wait_for(
        lambda: sum(pod["status"].get("phase") == "Running" for pod in bed.pods.values()) == 2,
        PATIENCE_S,
        "both pods run",
    )
    assert bed.api.get(path)["status"]["active"] == 2


def remove_gates(bed: Bed, job: str) -> None:
    """Take the gates of others off a Job's pods."""
    for pod in bed.pods_of(job):
        left = [gate for gate in pod["spec"]["schedulingGates"] if gate not in OTHERS]
        bed.api.patch(pod_path(pod), {"spec": {"schedulingGates": left}})
