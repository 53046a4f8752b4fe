"""Claims: what those of a pod are, and what keeps it from starting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from pumice.core.api.core import PodSpec
from pumice.core.cluster import Cluster
from pumice.core.ids import PodUid
from pumice.core.model.claims import BOUND_BY, CLASS, Mount, claims_of, lean, mounts, waits_for_node
from pumice.core.model.storage import Stored
from tests.builders import a_cluster, a_pod
from tests.volumes import a_claim, a_class, a_mounting_pod, a_volume, mounting, store

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
CLASSES = [a_class("local"), a_class("fast", by="csi.example.com", waits=False)]


@dataclass(frozen=True)
class Case:
    spec: PodSpec
    stored: Sequence[Stored] = ()
    fault: str = ""
    bound: str = ""
    delayed: str = ""
    immediate: str = ""
    storage: Sequence[Stored] = field(default_factory=lambda: CLASSES)


CASES = {
    "a pod without claims": Case(PodSpec()),
    "volumes that are no claims": Case(mounting()),
    "a bound claim": Case(mounting("a"), [a_claim("a", volume="v")], bound="a"),
    "a bound claim whose class is gone": Case(
        mounting("a"), [a_claim("a", volume="v", of="gone")], bound="a"
    ),
    "a claim that waits for its pod": Case(mounting("a"), [a_claim("a")], delayed="a"),
    "one whose class stands in the annotation of old": Case(
        mounting("a"), [a_claim("a", of="fast", annotations={CLASS: "local"})], delayed="a"
    ),
    "a claim that somebody else is to bind": Case(
        mounting("a"), [a_claim("a", of="fast")], UNBOUND, immediate="a"
    ),
    "one that is half bound": Case(
        mounting("a"), [a_claim("a", volume="v", bound=False)], UNBOUND, immediate="a"
    ),
    "one without a class": Case(mounting("a"), [a_claim("a", of=None)], UNBOUND, immediate="a"),
    "one whose class does not exist": Case(
        mounting("a"), [a_claim("a", of="gone")], UNBOUND, immediate="a"
    ),
    "a claim that does not exist": Case(mounting("a"), [], 'persistentvolumeclaim "a" not found'),
    "a claim that lost its volume": Case(
        mounting("a"),
        [a_claim("a", volume="v", phase="Lost")],
        'persistentvolumeclaim "a" bound to non-existent persistentvolume "v"',
        bound="a",
    ),
    "a claim on its way out": Case(
        mounting("a"),
        [a_claim("a", volume="v", deleting=True)],
        'persistentvolumeclaim "a" is being deleted',
        bound="a",
    ),
    "some of each, in the order of the volumes; what is missing is told first": Case(
        mounting("d", "b", "gone", "i", "c", "d"),
        [a_claim("b", volume="v"), a_claim("c", volume="w"), a_claim("d"), a_claim("i", of="fast")],
        'persistentvolumeclaim "gone" not found',
        bound="b c",
        delayed="d",
        immediate="i",
    ),
    "an ephemeral volume whose claim is there": Case(
        mounting(ephemeral=["e"]), [a_claim("p-e", owner="p")], delayed="p-e"
    ),
    "one whose claim is still to be made": Case(
        mounting(ephemeral=["e"]),
        [],
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-e"',
    ),
    "one whose claim belongs to another pod": Case(
        mounting(ephemeral=["e"]),
        [a_claim("p-e", owner="q")],
        "PVC ns/p-e was not created for pod ns/p (pod is not owner)",
        delayed="p-e",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_claims_of_a_pod(case: Case) -> None:
    pod = a_pod("p", spec=case.spec)
    storage = store(Cluster(), case.storage, case.stored).inputs.storage

    got = claims_of(pod, mounts(pod), storage)

    names = [" ".join(c.metadata.name for c in part) for part in (got.bound, got.delayed)]
    assert [got.fault, *names] == [case.fault, case.bound, case.delayed]
    assert " ".join(c.metadata.name for c in got.immediate) == case.immediate
    assert waits_for_node(pod, storage) is bool(case.delayed)


def test_a_claim_that_is_mounted_twice_is_one() -> None:
    pod = a_pod("p", spec=mounting("a", "b", "a"))
    assert mounts(pod) == (Mount("a"), Mount("b"))


def test_the_cluster_knows_who_mounts_claims_and_who_of_them_waits() -> None:
    cluster = a_cluster(
        a_pod("plain"),
        a_mounting_pod("waits", "a"),
        a_mounting_pod("runs", "a", node="n"),
    )
    assert set(cluster.claimants) == {"waits"}
    assert set(cluster.snapshot().mounting) == {"waits", "runs"}

    cluster.assume(PodUid("waits"), "n")
    assert not cluster.claimants
    assert cluster.snapshot().mounting[PodUid("waits")].node == "n"

    cluster.forget(PodUid("waits"))
    assert set(cluster.claimants) == {"waits"}

    cluster.remove_pod(PodUid("waits"))
    cluster.set_pod(a_pod("runs", node="n", phase="Succeeded", spec=mounting("a")))
    assert not cluster.claimants
    assert not cluster.snapshot().mounting


def test_a_snapshot_keeps_the_storage_of_its_time() -> None:
    cluster = store(Cluster(), a_claim("a"), a_volume("v"))
    seen = cluster.snapshot().inputs.storage
    store(cluster, a_claim("a", volume="v"))
    cluster.inputs.storage.volumes.clear()
    assert not seen.claims["ns/a"].spec.volume_name
    assert set(seen.volumes) == {"v"}


def test_of_what_is_kept_the_metadata_is_what_is_read() -> None:
    claim = a_claim("a", volume="v", owner="p", deleting=True, annotations={"kubectl": "{...}"})
    claim.metadata.finalizers = ["kubernetes.io/pvc-protection"]
    kept = lean(claim)
    assert (kept.spec, kept.status) == (claim.spec, claim.status)
    assert kept.metadata.key == "ns/a"
    assert kept.metadata.annotations == {BOUND_BY: "yes"}
    assert kept.metadata.finalizers is None
    for name in ("uid", "deletion_timestamp", "labels", "owner_references"):
        assert getattr(kept.metadata, name) == getattr(claim.metadata, name)
