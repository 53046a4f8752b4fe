"""
B: no binding of a pod of ours puts more on a node than it can hold.

Sightings are replayed in the order of their resource versions, which is the order in which the
API server made the changes, so a watch that lags does no harm. At each binding the requests of
all pods on the node that have not finished are added up; compared are the resources that the
bound pod asks for, and pod slots. A node that shrinks under its pods breaks nothing; the next
binding to it does. An excess that a foreign pod makes is only counted; where another scheduler
works on the same nodes, so is every excess in which foreign pods take part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tests.auditor.facts import Node, Pod, Sighting, Violation
from tests.auditor.history import History, Settings
from tests.auditor.requests import added

SLOTS = "pods"


@dataclass(frozen=True, slots=True)
class Excess:
    """A binding after which the node held more than it can."""

    pod: Pod
    at: float
    resource: str
    bound: Fraction
    bound_ours: Fraction
    allocatable: Fraction


@dataclass(slots=True)
class Nodes:
    """What can be held and what is held, replayed up to some version."""

    allocatable: dict[str, Mapping[str, Fraction]] = field(default_factory=dict)
    held: dict[str, dict[str, Pod]] = field(default_factory=dict)
    place: dict[str, str] = field(default_factory=dict)

    def see_node(self, seen: Sighting[Node]) -> None:
        """Take in what a node can hold."""
        if seen.gone:
            self.allocatable.pop(seen.object.name, None)
        else:
            self.allocatable[seen.object.name] = seen.object.allocatable

    def see_pod(self, seen: Sighting[Pod]) -> bool:
        """Take in a pod; return whether it has just come to its node."""
        pod = seen.object
        before = self.place.pop(pod.uid, None)
        if before is not None:
            del self.held[before][pod.uid]
        if seen.gone or pod.finished or not pod.node:
            return False
        self.place[pod.uid] = pod.node
        self.held.setdefault(pod.node, {})[pod.uid] = pod
        return before is None


def judge(history: History, settings: Settings) -> list[Violation]:
    """Return one violation for each binding of ours that overfilled its node."""
    return [
        _violation(excess)
        for excess in excesses(history, settings)
        if excess.pod.scheduler in settings.schedulers
        and (not settings.shared_nodes or excess.bound_ours > excess.allocatable)
    ]


def excesses(history: History, settings: Settings) -> Iterator[Excess]:
    """Yield every binding, of anyone's pod, after which a node held too much of a resource."""
    nodes = Nodes()
    for seen in in_order(history):
        if isinstance(seen.object, Node):
            nodes.see_node(seen)
        elif nodes.see_pod(seen):
            yield from _excesses(nodes, seen.object, seen.at, settings)


def in_order(history: History) -> list[Sighting[Node] | Sighting[Pod]]:
    """Return sightings of nodes and pods as the API server made them."""
    return sorted([*history.nodes, *history.pods], key=lambda seen: seen.rv)


def _excesses(nodes: Nodes, pod: Pod, at: float, settings: Settings) -> Iterator[Excess]:
    can_hold = nodes.allocatable.get(pod.node)
    if can_hold is None:
        return
    here = list(nodes.held[pod.node].values())
    ours = [p for p in here if p.scheduler in settings.schedulers]
    bound, bound_ours = _total(here), _total(ours)
    for resource in sorted({*(r for r, n in pod.requests.items() if n), SLOTS}):
        allocatable = can_hold.get(resource, Fraction(0))
        if bound[resource] > allocatable:
            of_ours = bound_ours.get(resource, Fraction(0))
            yield Excess(pod, at, resource, bound[resource], of_ours, allocatable)


def _total(pods: list[Pod]) -> Mapping[str, Fraction]:
    return added({SLOTS: Fraction(len(pods))}, *(pod.requests for pod in pods))


def _violation(excess: Excess) -> Violation:
    pod, bound, can_hold = excess.pod, float(excess.bound), float(excess.allocatable)
    return Violation(
        "B",
        pod.node,
        f"node {pod.node} holds {bound:g} {excess.resource} of the {can_hold:g} it can "
        f"since pod {pod.key} was bound to it",
        (excess.at,),
        {"bound": bound, "ours": float(excess.bound_ours), "allocatable": can_hold},
    )
