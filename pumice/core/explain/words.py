"""Plain words for what else stands in sentences: counts, amounts, why a node was refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pumice.core.fitness import Cramped
from pumice.core.plugins.predicates import affinity, nodes, ports, slots, spread
from pumice.core.plugins.predicates.volumes import binding, usage, zones
from pumice.core.resources import as_text
from pumice.core.views import AVOIDED

SHORT: Final = "Insufficient "
"""Before the name of a resource that a node lacks."""
SHOWN: Final = 4
"""So many reasons of nodes stand in a sentence."""
OUTSIDE: Final = "node(s) outside the HyperNodes that the gang may be in"

REFUSALS: Final = {
    slots.SLOTS_TAKEN: "no slot left for a pod",
    nodes.CORDONED: "cordoned",
    nodes.NOT_CHOSEN: "not what the pod's node selector or affinity asks for",
    nodes.TAINTED: "a taint that the pod does not tolerate",
    ports.PORT_TAKEN: "the host port that the pod asks for is taken",
    affinity.AFFINITY: "no pod near that the pod must be near to",
    affinity.ANTI_AFFINITY: "a pod near that the pod must keep away from",
    affinity.EXISTING_ANTI_AFFINITY: "a pod near that wants none like this one near it",
    spread.SKEWED: "one pod more would spread the pods unevenly",
    spread.NO_DOMAIN: "no label for the domains that the pods are to be spread over",
    binding.OUT_OF_REACH: "a volume of the pod cannot be reached from there",
    binding.NOTHING_TO_BIND: "no volume left for a claim of the pod, and none can be made there",
    binding.TOO_LITTLE: "not enough storage left to make a volume for a claim of the pod",
    binding.LOST: "a claim of the pod is bound to a volume that does not exist",
    zones.OTHER_ZONE: "a volume of the pod is in another zone",
    usage.TOO_MANY: "no more volumes can be attached there",
    usage.IN_USE: "another pod uses a claim that is for one pod alone",
    OUTSIDE: "too far from where the gang is, or in no HyperNode that it may be in",
    AVOIDED: "kube-scheduler refused a pod of this job there a while ago",
}
"""What a node is refused for -> the same for somebody who does not know the scheduler."""


def count(number: int, noun: str) -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(parts: Iterable[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    *before, last = parts
    return f"{', '.join(before)} and {last}" if before else last


def amount(name: str, units: float) -> str:
    """Return `4 cpu`, from units of `pumice.core.resources`."""
    return f"{as_text(name, units)} {name}"


def refusal(reason: str, asks: Mapping[str, float]) -> str:
    """Return why nodes were refused for a pod that asks for so much, in units by resource."""
    if reason.startswith(SHORT):
        name = reason.removeprefix(SHORT)
        if name == "pods":
            return REFUSALS[slots.SLOTS_TAKEN]
        asked = f" for a pod that asks for {as_text(name, asks[name])}" if name in asks else ""
        return f"not enough {name}{asked}"
    return REFUSALS.get(reason) or reason.removeprefix("node(s) ")


def by_node(refused: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return reasons and numbers of nodes, those of most nodes first."""
    return sorted(refused.items(), key=lambda entry: (-entry[1], entry[0]))


def refusals(refused: Mapping[str, int], asks: Mapping[str, float]) -> str:
    """Return `12 nodes: not enough cpu; 3 nodes: cordoned`, and no more than a sentence takes."""
    parts = [f"{count(n, 'node')}: {refusal(why, asks)}" for why, n in by_node(refused)]
    left = len(parts) - SHOWN
    return "; ".join([*parts[:SHOWN], *([f"{count(left, 'more reason')}"] if left > 0 else [])])


def by_promise(tried: Mapping[str, Cramped]) -> list[tuple[str, Cramped]]:
    """Return HyperNodes that were tried, those first in which most pods found a node."""
    return sorted(
        tried.items(), key=lambda entry: (-entry[1].found, bool(entry[1].short), entry[0])
    )


def cramped(tried: Mapping[str, Cramped]) -> str:
    """Return `s0: 2 find a node; s1: not enough cpu for all`, as much as a sentence takes."""
    parts = [f"{name}: {_cramped(entry)}" for name, entry in by_promise(tried)]
    left = len(parts) - SHOWN
    return "; ".join([*parts[:SHOWN], *([f"and {left} more"] if left > 0 else [])])


def _cramped(entry: Cramped) -> str:
    if entry.short:
        what = "slots for pods" if entry.short == "pods" else entry.short
        return f"not enough {what} for all of them"
    return {0: "none finds a node", 1: "1 finds a node"}.get(
        entry.found, f"{entry.found} find a node"
    )


def sentence_of(text: str) -> str:
    """Return a message as a sentence."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def inside(sentence: str) -> str:
    """Return a sentence as it stands behind a colon."""
    return f"{sentence[:1].lower()}{sentence[1:]}"
