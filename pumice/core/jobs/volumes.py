"""
The claims that a Job's pods mount: those that must exist, and those that the Job brings along.

A claim without a name gets one that the Job's uid decides, so that trying again after a crash
finds the same claim instead of making another.
"""

from __future__ import annotations

import msgspec

from pumice.core.api.batch import Job, VolumeSpec
from pumice.core.jobs import membership, pods
from pumice.core.jobs import types as t


def wanted(job: Job) -> list[str]:
    """Return the names of all claims that the Job mounts."""
    return [_name(job, index, volume) for index, volume in enumerate(job.spec.volumes or ())]


def prepare(seen: t.Observed) -> list[t.Effect]:
    """Return what is missing before pods can be made, ending in a Fail where only waiting helps."""
    job = seen.job
    effects: list[t.Effect] = []
    named: list[VolumeSpec] = []
    for index, volume in enumerate(job.spec.volumes or ()):
        name = _name(job, index, volume)
        named.append(msgspec.structs.replace(volume, volume_claim_name=name))
        if name in seen.claims:
            continue
        if volume.volume_claim_name or volume.volume_claim is None:
            text = f"pvc {name} is not found, the job will be in the Pending state until the PVC"
            text += " is created"
            event = t.RecordEvent("Warning", "PVCError", f"Failed to create PVC, err: {text}")
            return [event, t.Fail(text)]
        effects.append(t.CreateClaim(name, _claim(job, name, volume)))
    if named != (job.spec.volumes or []):
        patch = {"spec": {"volumes": msgspec.to_builtins(named)}}
        effects.append(t.PatchJob(job.metadata.uid, job.metadata.resource_version, patch))
    return effects


def resources(job: Job) -> dict[str, str]:
    """Return the entries of status.controlledResources for the claims."""
    claims = [volume.volume_claim_name for volume in job.spec.volumes or ()]
    return {f"volume-pvc-{claim}": claim for claim in claims if claim}


def _name(job: Job, index: int, volume: VolumeSpec) -> str:
    if volume.volume_claim_name:
        return volume.volume_claim_name
    return f"{job.metadata.name}-pvc-{pods.token(job.metadata.uid, str(index))}"


def _claim(job: Job, name: str, volume: VolumeSpec) -> dict[str, object]:
    meta = {
        "name": name,
        "namespace": job.metadata.namespace,
        "ownerReferences": [membership.owner(job)],
    }
    return {"metadata": meta, "spec": volume.volume_claim}
