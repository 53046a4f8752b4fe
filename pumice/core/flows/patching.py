"""
Patch the specification of a Job: what the patch says goes over what the template says.

    objects          merged, key by key; null removes a key
    lists with keys  merged, entry by entry: those that are not there yet come at the end
    everything else  replaced

An entry of a list without its key stands for the one at the same place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard


@dataclass(frozen=True, slots=True)
class _Entries:
    """How the entries of a list are told apart, and whether two of one key are merged."""

    keys: tuple[str, ...] = ("name",)
    are_merged: bool = True


_LISTS: Final[Mapping[str, _Entries]] = {
    "tasks": _Entries(),
    "containers": _Entries(),
    "initContainers": _Entries(),
    "volumeMounts": _Entries(("mountPath",)),
    "ports": _Entries(("containerPort",)),
    "hostAliases": _Entries(("ip",)),
    "tolerations": _Entries(("key",)),
    # Of several ways to say what an entry is (a value, where it comes from) there may be one.
    "env": _Entries(are_merged=False),
    "imagePullSecrets": _Entries(are_merged=False),
    # Those of pods have names, those of Jobs a place.
    "volumes": _Entries(("name", "mountPath"), are_merged=False),
}
_WHOLE: Final = frozenset(
    {
        "affinity",
        "securityContext",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "networkTopology",
    }
)
"""Objects that mean something only as a whole."""


def patched(old: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object as the patch leaves it; neither is changed."""
    result = dict(old)
    for key, new in patch.items():
        before = result.get(key)
        if new is None:
            result.pop(key, None)
        elif key not in _WHOLE and isinstance(before, Mapping) and isinstance(new, Mapping):
            result[key] = patched(before, new)
        elif key in _LISTS and _are_objects(before) and _are_objects(new):
            result[key] = _patched_list(_LISTS[key], before, new)
        else:
            result[key] = new
    return result


def _are_objects(value: Any) -> TypeGuard[list[Mapping[str, Any]]]:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def _patched_list(
    entries: _Entries, old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    result = list(old)
    for index, entry in enumerate(new):
        place = _place(entries.keys, old, entry, index)
        if place is None:
            result.append(entry)
        else:
            result[place] = patched(result[place], entry) if entries.are_merged else entry
    return result


def _place(
    keys: Sequence[str], old: Sequence[Mapping[str, Any]], entry: Mapping[str, Any], index: int
) -> int | None:
    """Return where the entry is that a new one stands for; None where there is none."""
    key = next((key for key in keys if key in entry), None)
    if key is None:
        return index if index < len(old) else None
    found = (place for place, before in enumerate(old) if before.get(key) == entry[key])
    return next(found, None)
