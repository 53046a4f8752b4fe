"""
Geometries of MIG cards as an administrator lists them, in the ConfigMap of Volcano's vGPU plugin.

Beside much that is for device plugins it has `nvidia.knownMigGeometries`: models of cards, and for
each the groups of instances that such a card can have at the same time. The list takes the place of
the one that is built in; without a list, or without the ConfigMap, that one holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
import yaml

from pumice.core.devices.mig import KNOWN, Group, Known, Profile

KEY: Final = "device-config.yaml"

_Count = Annotated[int, msgspec.Meta(gt=0)]


class _Instances(msgspec.Struct):
    name: str
    memory: _Count
    count: _Count


class _Group(msgspec.Struct):
    group: str
    geometries: list[_Instances]


class _Models(msgspec.Struct, rename={"allowed": "allowedGeometries"}):
    models: list[str]
    allowed: list[_Group]


class _Cards(msgspec.Struct, rename={"known": "knownMigGeometries"}):
    known: list[_Models] = []


class _Config(msgspec.Struct):
    nvidia: _Cards = msgspec.field(default_factory=_Cards)


class GeometryError(ValueError):
    """A list of geometries that cannot be used; says where."""


def geometries_in(data: Mapping[str, str] | None) -> Known:
    """Return the geometries that a ConfigMap lists, else those built in; raise GeometryError."""
    text = (data or {}).get(KEY)
    if text is None:
        return KNOWN
    try:
        found = msgspec.convert(yaml.safe_load(text) or {}, _Config)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise GeometryError(f"{KEY}: {error}") from error
    listed = [(tuple(entry.models), entry.allowed) for entry in found.nvidia.known]
    return tuple((models, tuple(map(_group, allowed))) for models, allowed in listed) or KNOWN


def _group(listed: _Group) -> Group:
    return Group(listed.group, tuple(Profile(i.name, i.memory, i.count) for i in listed.geometries))
