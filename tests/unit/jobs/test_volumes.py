"""Claims of a Job: which must exist, which are made, and that trying again makes no second."""

from __future__ import annotations

from pumice.core.api.batch import VolumeSpec
from pumice.core.jobs import types as t
from pumice.core.jobs.reconcile import SYNCHRONISE, reconcile
from pumice.core.jobs.volumes import prepare, wanted
from tests.unit.jobs.builders import NOW, a_job, a_pod, observed

CLAIM = {"accessModes": ["ReadWriteOnce"]}
NAMED = VolumeSpec(mount_path="/data", volume_claim_name="data")
DESCRIBED = VolumeSpec(mount_path="/out", volume_claim=CLAIM)


def test_a_claim_by_name_must_exist() -> None:
    job = a_job(phase="", volumes=[NAMED])
    text = "pvc data is not found, the job will be in the Pending state until the PVC is created"

    assert reconcile(observed(job, group=None), SYNCHRONISE, NOW) == [
        t.RecordEvent("Warning", "PVCError", f"Failed to create PVC, err: {text}"),
        t.Fail(text),
    ]
    assert prepare(observed(job, claims=frozenset({"data"}))) == []


def test_a_described_claim_is_made_and_then_named_in_the_job() -> None:
    job = a_job(phase="", volumes=[NAMED, DESCRIBED])
    _, name = wanted(job)
    effects = reconcile(observed(job, claims=frozenset({"data"})), SYNCHRONISE, NOW)

    (create, patch) = effects
    assert isinstance(create, t.CreateClaim)
    assert create.name == name
    assert create.body["spec"] == CLAIM
    assert create.body["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert patch == t.PatchJob(
        "u1",
        "7",
        {
            "spec": {
                "volumes": [
                    {"mountPath": "/data", "volumeClaimName": "data"},
                    {"mountPath": "/out", "volumeClaimName": name, "volumeClaim": CLAIM},
                ]
            }
        },
    )


def test_trying_again_finds_the_same_claim() -> None:
    job = a_job(phase="", volumes=[DESCRIBED])
    (name,) = wanted(job)
    again = prepare(observed(job, claims=frozenset({name})))

    assert wanted(a_job(phase="", volumes=[DESCRIBED])) == [name]
    assert wanted(a_job(phase="", volumes=[DESCRIBED], uid="u2")) != [name]
    assert [type(e) for e in again] == [t.PatchJob]


def test_the_status_lists_the_claims() -> None:
    job = a_job(volumes=[NAMED])
    (write,) = reconcile(observed(job, a_pod()), SYNCHRONISE, NOW)

    assert isinstance(write, t.PatchStatus)
    assert write.status.controlled_resources == {"volume-pvc-data": "data"}
