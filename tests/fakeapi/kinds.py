"""The kinds that the fake API server knows, and what it checks of their objects."""

from __future__ import annotations

import re

import msgspec

from pumice.kube import resources
from pumice.kube.resources import AnyResource, Resource
from tests.fakeapi.refusals import Json, Refusal, bad_request, invalid

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def known() -> list[AnyResource]:
    """Return every resource of the kube layer."""
    return [r for r in vars(resources).values() if isinstance(r, Resource)]


def qualified(resource: AnyResource) -> str:
    """Return the plural as errors have it: `jobs.batch.volcano.sh`."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def titled(resource: AnyResource) -> str:
    """Return the kind as errors have it: `Job.batch.volcano.sh`."""
    return f"{resource.kind}.{resource.group}" if resource.group else resource.kind


def check(resource: AnyResource, obj: Json) -> None:
    """Refuse what is no object of the kind; nulls count as absent."""
    name = obj["metadata"].get("name", "")
    if not name:
        message = "metadata.name: Required value: name or generateName is required"
        raise invalid(titled(resource), name, message)
    if resource is not resources.CRDS and not (_NAME.fullmatch(name) and len(name) <= 253):
        message = f'metadata.name: Invalid value: "{name}": a lowercase RFC 1123 subdomain'
        raise invalid(titled(resource), name, message)
    try:
        msgspec.convert(obj, resource.type)
    except msgspec.ValidationError as e:
        raise _malformed(resource, name, str(e)) from e
    if resource is resources.PODS and not obj.get("spec", {}).get("containers"):
        raise invalid("Pod", name, "spec.containers: Required value")


def _malformed(resource: AnyResource, name: str, message: str) -> Refusal:
    # Built-in kinds fail in the decoder, custom ones in the schema.
    if resource.custom:
        return invalid(titled(resource), name, message)
    what = f'{resource.kind} in version "{resource.api_version.rpartition("/")[2]}"'
    return bad_request(f"{what} cannot be handled as a {resource.kind}: {message}")
