"""
Make the HyperNodes of a source what the source has found.

HyperNodes of a source carry its name in a label; all others are nobody's business here. What was
found keeps the HyperNode that stands for it already; a new one gets a name that follows from what
it stands for, so that whoever creates it a second time creates the same.

Lower tiers are made first and higher ones removed first: no HyperNode names a member that is not
there yet, or not any more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, Literal

from pumice.core import names
from pumice.core.api.meta import ObjectMeta
from pumice.core.api.topology import (
    ExactMatch,
    HyperNode,
    HyperNodeSpec,
    Member,
    MemberSelector,
)
from pumice.core.hypernodes.types import (
    Complain,
    CreateHyperNode,
    DeleteHyperNode,
    Effect,
    Found,
    Id,
    PatchHyperNode,
    SourceKind,
)

ATTEMPTS: Final = 20
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


def reconcile(
    source: SourceKind, found: Sequence[Found], existing: Collection[HyperNode]
) -> list[Effect]:
    """Return what makes the source's HyperNodes those that it found."""
    mine = {h.metadata.name: h for h in existing if is_of(source, h)}
    wanted = sorted(found, key=lambda one: (one.tier, one.id))
    chosen = _held(wanted, mine)
    taken = {h.metadata.name for h in existing}
    effects: list[Effect] = []
    for one in wanted:
        if one.id in chosen:
            continue
        if new := _new_name(one, taken):
            taken.add(new)
            chosen[one.id] = new
        else:
            effects.append(Complain(f"{one.prefix}: the name is taken by another HyperNode"))
    kept: set[str] = set()
    for one in wanted:
        spec = _spec(one, chosen)
        if one.id in chosen and spec.members:
            labels = {**one.labels, names.TOPOLOGY_SOURCE: source}
            kept.add(chosen[one.id])
            effects += _step(chosen[one.id], spec, labels, mine.get(chosen[one.id]))
    gone = [h for h in mine.values() if h.metadata.name not in kept]
    gone.sort(key=lambda h: (-h.spec.tier, h.metadata.name))
    return effects + [DeleteHyperNode(h.metadata.name, h.metadata.uid) for h in gone]


def is_of(source: SourceKind, hypernode: HyperNode) -> bool:
    """Tell whether a source keeps a HyperNode; one that is being deleted is nobody's."""
    meta = hypernode.metadata
    return (meta.labels or {}).get(
        names.TOPOLOGY_SOURCE
    ) == source and meta.deletion_timestamp is None


def _held(wanted: Sequence[Found], mine: Mapping[str, HyperNode]) -> dict[Id, str]:
    """Return the HyperNodes that stand already for what was found, the first name where several."""
    by_label: dict[tuple[str, str], list[str]] = {}
    for name in sorted(mine):
        for label in (mine[name].metadata.labels or {}).items():
            by_label.setdefault(label, []).append(name)
    chosen: dict[Id, str] = {}
    claimed: set[str] = set()
    for one in wanted:
        if one.is_named:
            fitting = [one.prefix] if one.prefix in mine else []
        else:
            sharing = (by_label.get(label, []) for label in one.labels.items())
            fitting = [name for name in next(sharing, []) if name.startswith(one.prefix + "-")]
        free = next((name for name in fitting if name not in claimed), None)
        if free:
            chosen[one.id] = free
            claimed.add(free)
    return chosen


def _new_name(one: Found, taken: Collection[str]) -> str | None:
    """Return a name that nobody has; None where there is none to be had."""
    if one.is_named:
        return None if one.prefix in taken else one.prefix
    options = (f"{one.prefix}-{_suffix(one.id, attempt)}" for attempt in range(ATTEMPTS))
    return next((name for name in options if name not in taken), None)


def _suffix(what: Id, attempt: int) -> str:
    """Return five characters that follow from what the HyperNode stands for."""
    digest = hashlib.sha256("\0".join((*what, str(attempt))).encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:5])


def _spec(one: Found, chosen: Mapping[Id, str]) -> HyperNodeSpec:
    below = {chosen[lower] for lower in one.below if lower in chosen}
    members = [_member("HyperNode", name) for name in sorted(below)]
    members += [_member("Node", name) for name in sorted(one.nodes)]
    return HyperNodeSpec(tier=one.tier, tier_name=one.tier_name, members=members)


def _member(kind: Literal["Node", "HyperNode"], name: str) -> Member:
    return Member(type=kind, selector=MemberSelector(exact_match=ExactMatch(name=name)))


def _step(
    name: str, spec: HyperNodeSpec, labels: Mapping[str, str], has: HyperNode | None
) -> Iterator[Effect]:
    """Create a HyperNode, or put right what differs."""
    if has is None:
        meta = ObjectMeta(name=name, labels=dict(labels))
        yield CreateHyperNode(HyperNode(metadata=meta, spec=spec))
    elif has.spec != spec or not labels.items() <= (has.metadata.labels or {}).items():
        meta = has.metadata
        yield PatchHyperNode(name, meta.uid, meta.resource_version, spec, labels)
