"""A gang whose members mount a claim: it waits for the claim, not for the right to read it."""

from __future__ import annotations

from pumice.kube.resources import CLAIMS, POD_GROUPS, STORAGE_CLASSES
from tests.adapters.extender.bed import Bed

SIZE = 2
MOUNTS = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
CLASS = {
    "metadata": {"name": "made"},
    "provisioner": "csi.example.com",
    "volumeBindingMode": "WaitForFirstConsumer",
}


async def test_it_waits_for_the_claim_and_says_so() -> None:
    bed = Bed()
    bed.nodes(1)
    bed.api.add(STORAGE_CLASSES, CLASS)
    bed.gang("g", SIZE, spec=MOUNTS)
    async with bed.extender(), bed.scheduler():
        await bed.until(lambda: 'persistentvolumeclaim "data" not found' in said(bed))
        assert not bed.released()

        claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "made"}}
        bed.api.add(CLAIMS, claim, "ns")
        await bed.until(lambda: len(bed.bound()) == SIZE)


async def test_it_goes_on_where_claims_cannot_be_read() -> None:
    bed = Bed()
    bed.nodes(1)
    bed.api.fail(403, times=10**9, path="persistentvolumeclaims")
    bed.gang("g", SIZE, spec=MOUNTS)
    async with bed.extender(), bed.scheduler():
        await bed.until(lambda: len(bed.bound()) == SIZE)


def said(bed: Bed) -> str:
    """Return the messages of the gang's group."""
    group = bed.api.get(POD_GROUPS, "ns", "g") or {}
    return " ".join(c["message"] for c in group.get("status", {}).get("conditions", ()))
