"""The words of the HyperNode controller: what a source finds, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pumice.core.api.topology import HyperNode, HyperNodeSpec, HyperNodeStatus

SourceKind = Literal["label", "ufm"]
Id = tuple[str, ...]
"""What a HyperNode stands for in its source, whatever it is called in the cluster."""


@dataclass(frozen=True, slots=True)
class Found:
    """One HyperNode as a source sees it; its members are nodes or HyperNodes, not both."""

    id: Id
    #: the whole name where `is_named`, else what the name begins with
    prefix: str
    tier: int
    tier_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    nodes: frozenset[str] = frozenset()
    below: frozenset[Id] = frozenset()
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class CreateHyperNode:
    """Create a HyperNode."""

    hypernode: HyperNode


@dataclass(frozen=True, slots=True)
class PatchHyperNode:
    """Replace the specification and add labels, on the version that was seen."""

    name: str
    uid: str
    resource_version: str
    spec: HyperNodeSpec
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DeleteHyperNode:
    """Delete a HyperNode that its source no longer finds."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """Write the status, on the version that was seen."""

    name: str
    uid: str
    resource_version: str
    status: HyperNodeStatus


@dataclass(frozen=True, slots=True)
class Complain:
    """Tell the owner of the configuration what cannot be done."""

    message: str


Effect = CreateHyperNode | PatchHyperNode | DeleteHyperNode | Complain
