"""
A picture of the cluster at one moment, and how a case refers to what is in it.

    kind/namespace/name, kind/name      an object
    namespace/name                      a PodGroup, where nothing else can be meant
    ownedBy:kind/namespace/name         the PodGroup with an owner reference to that object's uid
    namePrefix:namespace/prefix         a PodGroup whose name begins like this, the newest of them

The last three have `podgroup:` before them where any kind of object may be named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pumice.local.api import Object

GROUP = "podgroup:"
OWNED_BY = "ownedBy:"
NAME_PREFIX = "namePrefix:"


class Reference(NamedTuple):
    """The parts of `kind/namespace/name`; the namespace is empty for `kind/name`."""

    kind: str
    namespace: str
    name: str


def parse(text: str) -> Reference:
    """Return the parts; raise ValueError where it is no reference."""
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise ValueError(f"{text!r} is not kind/namespace/name or kind/name")
    return Reference(parts[0], parts[1] if len(parts) == 3 else "", parts[-1])


def reference(body: Object) -> str:
    """Return the reference to an object."""
    meta = body["metadata"]
    parts = (body["kind"].lower(), meta.get("namespace"), meta["name"])
    return "/".join(part for part in parts if part)


def is_group(text: str) -> bool:
    """Whether it is one of the forms that only PodGroups have."""
    return text.startswith((GROUP, OWNED_BY, NAME_PREFIX))


@dataclass(frozen=True, slots=True)
class Moment:
    """
    The objects of one moment, each collection by `namespace/name`, or by name.

    `others` are objects of further kinds by their references, None where there is none.
    """

    at: float = 0.0
    pods: Mapping[str, Object] = field(default_factory=dict)
    jobs: Mapping[str, Object] = field(default_factory=dict)
    groups: Mapping[str, Object] = field(default_factory=dict)
    queues: Mapping[str, Object] = field(default_factory=dict)
    nodes: Mapping[str, Object] = field(default_factory=dict)
    others: Mapping[str, Object | None] = field(default_factory=dict)

    def find(self, text: str) -> Object | None:
        """Return the object that is referred to."""
        if text in self.others:
            return self.others[text]
        if is_group(text):
            return self.group(text)
        kind, namespace, name = parse(text)
        return self._table(kind).get(f"{namespace}/{name}" if namespace else name)

    def group(self, text: str) -> Object | None:
        """Return the PodGroup that is referred to."""
        return self.groups.get(self.group_key(text) or "")

    def group_key(self, text: str) -> str | None:
        """Return `namespace/name` of a PodGroup, there or not; None where that cannot be told."""
        text = text.removeprefix(GROUP)
        if text.startswith(OWNED_BY):
            owner = self.find(text.removeprefix(OWNED_BY))
            return _newest(self._owned_by(owner)) if owner else None
        if text.startswith(NAME_PREFIX):
            start = text.removeprefix(NAME_PREFIX)
            return _newest((k, g) for k, g in self.groups.items() if k.startswith(start))
        return text.removeprefix("podgroup/")

    def _owned_by(self, owner: Object) -> Iterator[tuple[str, Object]]:
        for key, group in self.groups.items():
            if owner["metadata"]["uid"] in owners(group):
                yield key, group

    def _table(self, kind: str) -> Mapping[str, Object]:
        return {
            "pod": self.pods,
            "job": self.jobs,
            "podgroup": self.groups,
            "queue": self.queues,
            "node": self.nodes,
        }[kind]


def owners(body: Object) -> set[str]:
    """Return the uids of an object's owners."""
    return {owner["uid"] for owner in body["metadata"].get("ownerReferences", ())}


def _newest(found: Iterator[tuple[str, Object]]) -> str | None:
    made = [(group["metadata"].get("creationTimestamp", ""), key) for key, group in found]
    return max(made)[1] if made else None
