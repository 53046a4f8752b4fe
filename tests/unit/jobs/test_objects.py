"""The objects that plugins want: made before pods, kept in step, removed with the whole Job."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from pumice.core import names
from pumice.core.api.batch import Job
from pumice.core.jobs import types as t
from pumice.core.jobs.objects import fingerprint, follow
from pumice.core.jobs.plugins.svc import hosts
from pumice.core.jobs.reconcile import SYNCHRONISE, reconcile
from tests.unit.jobs.builders import NOW, a_job, a_pod, a_task, observed
from tests.unit.jobs.test_kill import order
from tests.unit.jobs.test_sync import brief, status_of

FLAG = {"plugin-svc": "svc"}
ALL: dict[t.ObjectKey, t.Owned] = {
    ("ConfigMap", "j-svc"): t.Owned("c", fingerprint(hosts(a_job(a_task("w", 1))))),
    ("Service", "j"): t.Owned("s"),
    ("NetworkPolicy", "j"): t.Owned("n"),
}
CREATE = ["CreateObject j-svc", "CreateObject j", "CreateObject j"]
DELETE = ["DeleteObject j-svc", "DeleteObject j", "DeleteObject j"]


def a_svc_job(phase: str = "Running", replicas: int = 1, flagged: bool = True) -> Job:
    status = {"controlled_resources": FLAG if flagged else None}
    return a_job(a_task("w", replicas), phase=phase, plugins={"svc": []}, status=status)


def without(*keys: t.ObjectKey) -> dict[t.ObjectKey, t.Owned]:
    return {key: owned for key, owned in ALL.items() if key not in keys}


@dataclass(frozen=True)
class Case:
    seen: t.Observed
    want: list[str]
    decision: t.Decision = SYNCHRONISE


CASES = {
    "a new job gets them before its group": Case(
        observed(a_svc_job(""), group=None), [*CREATE, "CreatePodGroup", "PatchStatus"]
    ),
    "a pending job gets them before its pods": Case(
        observed(a_svc_job("Pending")), [*CREATE, "CreatePod j-w-0", "PatchStatus"]
    ),
    "a pending job that has them gets its pods": Case(
        observed(a_svc_job("Pending"), objects=ALL), ["CreatePod j-w-0", "PatchStatus"]
    ),
    "one that is lost is made again before pods": Case(
        observed(a_svc_job(), objects=without(("ConfigMap", "j-svc"))),
        ["CreateObject j-svc", "CreatePod j-w-0", "PatchStatus"],
    ),
    "a service is made again while the job runs": Case(
        observed(a_svc_job(), a_pod(), objects=without(("Service", "j"))),
        ["CreateObject j", "PatchStatus"],
    ),
    "what others hold and the job can live with is left alone": Case(
        observed(a_svc_job(), a_pod(), objects=without(("Service", "j")),
                 foreign=frozenset({("Service", "j")})),
        ["PatchStatus"],
    ),
    "a job that grew has its hosts told before its pods come": Case(
        observed(a_svc_job(replicas=2), a_pod(), objects=ALL),
        ["ReplaceData j-svc", "CreatePod j-w-1", "PatchStatus"],
    ),
    "a job that shrank has its hosts told before its pods go": Case(
        observed(a_svc_job(replicas=0), a_pod(marked=True), objects=ALL),
        ["ReplaceData j-svc", "DeletePod j-w-0", "PatchStatus"],
    ),
    "hosts follow a job that is pending still": Case(
        observed(a_svc_job("Pending", replicas=2), objects=ALL, group="Pending"),
        ["ReplaceData j-svc"],
    ),
    "hosts follow a job that restarts": Case(
        observed(a_svc_job("Restarting", replicas=2), objects=ALL, group="Pending"),
        ["ReplaceData j-svc", "PatchStatus"],
    ),
    "what no plugin wants any more goes": Case(
        observed(a_job(), a_pod(), objects=ALL), [*DELETE, "PatchStatus"]
    ),
    "a restart removes them": Case(
        observed(a_svc_job(), a_pod(marked=True), objects=ALL),
        ["RecordEvent", "PatchStatus", "DeletePod j-w-0", *DELETE, "DeletePodGroup j-u1"],
        order(t.RESTART),
    ),
    "an abort removes them": Case(
        observed(a_svc_job(), a_pod(marked=True), objects=ALL),
        ["RecordEvent", "PatchStatus", "DeletePod j-w-0", *DELETE, "DeletePodGroup j-u1"],
        order(t.ABORT),
    ),
    "a restart of one pod leaves them": Case(
        observed(a_svc_job(), a_pod(marked=True), objects=ALL),
        ["RecordEvent", "PatchStatus", "DeletePod j-w-0"],
        order(t.RESTART_POD, task="w", pod="j-w-0"),
    ),
    "a finished job loses them with its group": Case(
        observed(a_svc_job("Completed"), a_pod(phase="Succeeded"), objects=ALL),
        ["PatchStatus", *DELETE, "DeletePodGroup j-u1"],
    ),
    "a finished job loses one that came back": Case(
        observed(a_svc_job("Completed", flagged=False), group=None,
                 objects={("Service", "j"): t.Owned("s")}),
        ["PatchStatus", "DeleteObject j"],
    ),
    "a finished job is not shown to have any": Case(
        observed(a_svc_job("Completed"), group=None), ["PatchStatus"]
    ),
    "a finished job without any is left alone": Case(
        observed(a_svc_job("Completed", flagged=False), group=None), []
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_effects(case: Case) -> None:
    assert brief(reconcile(case.seen, case.decision, NOW)) == case.want


def test_an_object_whole() -> None:
    (config, *_) = follow(observed(a_svc_job()))

    assert config == t.CreateObject(
        kind="ConfigMap",
        name="j-svc",
        body={
            "metadata": {
                "name": "j-svc",
                "namespace": "ns",
                "labels": {names.JOB_NAME: "j", names.JOB_NAMESPACE: "ns"},
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
            },
            "data": {"w.host": "j-w-0.j", "VC_W_HOSTS": "j-w-0.j", "VC_W_NUM": "1"},
        },
        is_vital=True,
    )


def test_changes_and_deletions_name_the_uid() -> None:
    data = {"w.host": "", "VC_W_HOSTS": "", "VC_W_NUM": "0"}

    assert follow(observed(a_svc_job(replicas=0), objects=ALL)) == [
        t.ReplaceData("ConfigMap", "j-svc", "c", data)
    ]
    assert t.DeleteObject("ConfigMap", "j-svc", "c") in reconcile(
        observed(a_svc_job(), objects=ALL), order(t.ABORT), NOW
    )


def test_the_status_shows_plugins_from_the_first_write_to_the_kill() -> None:
    job = a_svc_job("", flagged=False)
    first = status_of(reconcile(observed(job, group=None), SYNCHRONISE, NOW))
    assert first is not None
    assert first.controlled_resources == FLAG

    job = a_svc_job()
    volume = {**FLAG, "volume-pvc-data": "data"}
    job.status = msgspec.structs.replace(job.status, controlled_resources=volume)
    killed = status_of(reconcile(observed(job, objects=ALL), order(t.ABORT), NOW))
    assert killed is not None
    assert killed.controlled_resources == {"volume-pvc-data": "data"}


def test_a_fingerprint_tells_data_apart_whatever_their_order() -> None:
    assert fingerprint({"a": "1", "b": "2"}) == fingerprint({"b": "2", "a": "1"})
    assert len({fingerprint(d) for d in ({}, {"a": "1"}, {"a": "2"}, {"b": "1"})}) == 4
    assert fingerprint(None) == fingerprint({})
