"""
The status of a HyperNode: how many node names its members select, and whether all are there.

As in Volcano, a name given exactly counts whether or not there is such a node, and members that
are HyperNodes are counted by name. How many nodes that comes to in the end stands in the
condition `MembersFound`, with what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from pumice.core import re2, selectors
from pumice.core.api.topology import Condition, HyperNode, HyperNodeStatus, Member
from pumice.core.hypernodes.types import PatchStatus

MEMBERS_FOUND: Final = "MembersFound"
LISTED: Final = 3
"""How many missing members a message names."""

Labels = Mapping[str, str]
_compiled = lru_cache(maxsize=1_024)(re2.compiled)


def reconcile(
    hypernode: HyperNode,
    nodes: Mapping[str, Labels],
    hypernodes: Mapping[str, HyperNode],
    now: str,
) -> PatchStatus | None:
    """Return the status to be written, or None where it says the truth already."""
    meta, told = hypernode.metadata, hypernode.status
    if meta.deletion_timestamp is not None:
        return None
    truth = HyperNodeStatus(
        node_count=len(_names(hypernode, nodes)),
        conditions=_conditions(hypernode, nodes, hypernodes, now),
    )
    if truth == told:
        return None
    return PatchStatus(meta.name, meta.uid, meta.resource_version, truth)


def _names(hypernode: HyperNode, nodes: Mapping[str, Labels]) -> set[str]:
    """Return the node names that the members select."""
    return {name for member in hypernode.spec.members or () for name in _selected(member, nodes)}


def _selected(member: Member, candidates: Mapping[str, Labels]) -> Iterator[str]:
    """Return the names that one member selects; one that cannot be read selects nothing."""
    selector = member.selector
    try:
        if selector.exact_match:
            yield selector.exact_match.name
        elif selector.regex_match:
            pattern = _compiled(selector.regex_match.pattern)
            yield from (name for name in candidates if pattern.search(name))
        elif wanted := selector.label_match:
            chosen = selectors.label_selector(wanted)
            if chosen.requirements:
                yield from (n for n, labels in candidates.items() if chosen.matches(labels))
    except (re2.PatternError, selectors.SelectorError):
        return


def _conditions(
    hypernode: HyperNode,
    nodes: Mapping[str, Labels],
    hypernodes: Mapping[str, HyperNode],
    now: str,
) -> list[Condition]:
    """Return the conditions with ours brought up to date, its time only where it turned."""
    old = hypernode.status.conditions or []
    before = next((c for c in old if c.type == MEMBERS_FOUND), None)
    fault, reason = _fault(hypernode, nodes, hypernodes)
    reached = len(_reached(hypernode, nodes, hypernodes))
    count = f"{reached} node{'' if reached == 1 else 's'}"
    condition = Condition(
        type=MEMBERS_FOUND,
        status="False" if fault else "True",
        reason=reason,
        message=f"{count}; {fault}" if fault else count,
        last_transition_time=now,
        observed_generation=hypernode.metadata.generation,
    )
    if before and before.status == condition.status:
        condition = msgspec.structs.replace(
            condition, last_transition_time=before.last_transition_time
        )
    return [c for c in old if c.type != MEMBERS_FOUND] + [condition]


def _fault(
    hypernode: HyperNode, nodes: Mapping[str, Labels], hypernodes: Mapping[str, HyperNode]
) -> tuple[str, str]:
    """Return what is wrong with the members, and the reason in one word."""
    missing = []
    for member in hypernode.spec.members or ():
        selector = member.selector
        try:
            if selector.regex_match:
                _compiled(selector.regex_match.pattern)
            if selector.label_match:
                selectors.label_selector(selector.label_match)
        except (re2.PatternError, selectors.SelectorError) as error:
            return str(error), "InvalidSelector"
        there = nodes if member.type == "Node" else hypernodes
        if selector.exact_match and selector.exact_match.name not in there:
            missing.append(f"{member.type} {selector.exact_match.name}")
    if not missing:
        return "", "AllFound"
    more = f" and {len(missing) - LISTED} more" if len(missing) > LISTED else ""
    return f"not found: {', '.join(missing[:LISTED])}{more}", "NotFound"


def _reached(
    hypernode: HyperNode, nodes: Mapping[str, Labels], hypernodes: Mapping[str, HyperNode]
) -> set[str]:
    """Return the nodes below a HyperNode; one that contains itself is gone through once."""
    found: set[str] = set()
    labels = {name: h.metadata.labels or {} for name, h in hypernodes.items()}
    left, seen = [hypernode], {hypernode.metadata.name}
    while left:
        for member in left.pop().spec.members or ():
            if member.type == "Node":
                found.update(name for name in _selected(member, nodes) if name in nodes)
                continue
            below = [name for name in _selected(member, labels) if name in hypernodes]
            left += [hypernodes[name] for name in below if name not in seen]
            seen.update(below)
    return found
