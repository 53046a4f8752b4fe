"""Object metadata and the other types that every kind shares."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

Quantity = str | int | float
"""A Kubernetes quantity as it stands in JSON; see `pumice.core.quantity`."""

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""An RFC 3339 time as it stands in JSON."""

Template = dict[str, Any]
"""A part of an object that is passed through untouched (pod templates, PVC specs)."""


class Struct(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True, gc=False):
    """
    The base of all API structs: camel case on the wire, defaults left out.

    They are trees, which free themselves; the garbage collector need not look at each of them.
    """


class OwnerReference(Struct):
    """An owner of an object; `controller` marks the one that manages it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct):
    """Identity, version, labels, annotations and owners of an object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None

    @property
    def key(self) -> str:
        """Return `namespace/name`, or the name alone of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def controller(self) -> OwnerReference | None:
        """Return the owner that manages the object, if there is one."""
        return next((o for o in self.owner_references or () if o.controller), None)


class LabelSelectorRequirement(Struct):
    """One expression of a label selector."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Struct):
    """A label query; nil matches nothing, empty matches everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


NonNegative = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
