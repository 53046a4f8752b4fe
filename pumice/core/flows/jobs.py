"""The Jobs of a JobFlow: their names, and what they are made of."""

from __future__ import annotations

from typing import Final

import msgspec

from pumice.core import names, ownership
from pumice.core.api.batch import Job, JobSpec
from pumice.core.api.flow import Flow, JobFlow, JobTemplate
from pumice.core.api.meta import ObjectMeta
from pumice.core.flows.patching import patched

KIND: Final = "JobFlow"
LABEL_LIMIT: Final = 63


def name_of(flow: JobFlow, step: str) -> str:
    """Return the name of a step's Job."""
    return f"{flow.metadata.name}-{step}"


def new(flow: JobFlow, step: Flow, template: JobTemplate) -> Job:
    """
    Return the Job of a step.

    Raises msgspec.ValidationError where the patch leaves no specification of a Job.
    """
    meta = flow.metadata
    origin = {
        names.CREATED_BY_TEMPLATE: f"{meta.namespace}.{step.name}",
        names.CREATED_BY_FLOW: f"{meta.namespace}.{meta.name}",
    }
    labels = {key: value for key, value in origin.items() if len(value) <= LABEL_LIMIT}
    return Job(
        metadata=ObjectMeta(
            name=name_of(flow, step.name),
            namespace=meta.namespace,
            labels=labels or None,
            annotations=origin,
            owner_references=[ownership.reference(names.FLOW_API, KIND, meta)],
        ),
        spec=_spec(step, template),
    )


def template_key(job: Job) -> str:
    """Return `namespace/name` of the JobTemplate that a Job was made of; empty where of none."""
    meta = job.metadata
    notes = (meta.annotations or {}) | (meta.labels or {})
    prefix = f"{meta.namespace}."
    origin = notes.get(names.CREATED_BY_TEMPLATE, "")
    return f"{meta.namespace}/{origin.removeprefix(prefix)}" if origin.startswith(prefix) else ""


def _spec(step: Flow, template: JobTemplate) -> JobSpec:
    change = step.patch.job_spec if step.patch else None
    if not change:
        return template.spec
    return msgspec.convert(patched(msgspec.to_builtins(template.spec), change), JobSpec)
