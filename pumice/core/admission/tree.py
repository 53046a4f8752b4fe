"""
The place of a queue in the tree: how deep it is, and what the queues around it leave for it.

A capability is at most the nearest one above and at least the largest one below; what children
are guaranteed, or deserve, is together at most what their parent is, a resource that the parent
does not name being zero. The children of root are exempt: root's amounts are the cluster's. A
queue that holds pods itself cannot become a parent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pumice.core import names, quantity
from pumice.core.admission import views
from pumice.core.admission.errors import FieldError
from pumice.core.admission.views import Queues
from pumice.core.api.core import ResourceList
from pumice.core.api.scheduling import Queue, QueueSpec
from pumice.core.quantity import QuantityError
from pumice.core.resources import EPSILON, as_text, in_units

Amounts = Mapping[str, float]
"""Resource -> amount in the unit that the scheduler counts it in."""


def place(queue: Queue, queues: Queues, max_depth: int) -> Iterator[FieldError]:
    """Yield what is wrong with the parent that a queue asks for."""
    name, parent_name = queue.metadata.name, queue.spec.parent
    if not parent_name or parent_name == names.ROOT_QUEUE:
        return
    if parent_name == name:
        yield FieldError("spec.parent", f"queue {name} cannot use itself as parent")
        return
    parent = queues.get(parent_name)
    if parent is None:
        text = f"failed to get parent queue {parent_name} of queue {name}: "
        yield FieldError("spec.parent", text + views.not_found(parent_name))
        return
    above = [other.metadata.name for other in queues.ancestors(queue, max_depth)]
    if name in above:
        text = f"queue {name} cannot be below queue {parent_name}, which is below it"
        yield FieldError("spec.parent", text)
        return
    if 1 + len(above) > max_depth:
        text = f"queue {name} exceeds the maximum allowed depth of {max_depth}"
        yield FieldError("spec.parent", text)
    pods = allocated_pods(parent)
    if pods and not queues.children(parent_name):
        text = f"queue {parent_name} cannot be the parent queue of queue {name} because it has"
        yield FieldError("spec.parent", f"{text} allocated Pods: {pods}")


def amounts(queue: Queue, queues: Queues) -> Iterator[FieldError]:
    """Yield where the queue's amounts don't fit those above and below it."""
    name = queue.metadata.name
    if name == names.ROOT_QUEUE:
        return
    parent = queues.get(views.parent_of(queue))
    if parent is not None and parent.metadata.name not in (names.ROOT_QUEUE, name):
        yield from _below_ancestors(queue, queues)
        siblings = [q for q in queues.children(parent.metadata.name) if q.metadata.name != name]
        yield from _sums([*siblings, queue], parent, f"parent queue {parent.metadata.name}")
    children = queues.children(name)
    yield from _above_descendants(queue, queues)
    yield from _sums(children, queue, f"queue {name}")


def allocated_pods(queue: Queue) -> str:
    """Return how many pods hold something of the queue; empty for none."""
    given = (queue.status.allocated or {}).get("pods", 0)
    return str(given) if _amounts({"pods": given}).get("pods") else ""


def _below_ancestors(queue: Queue, queues: Queues) -> Iterator[FieldError]:
    above = [_amounts(q.spec.capability) for q in queues.ancestors(queue, len(queues.by_name))]
    for resource, amount in _amounts(queue.spec.capability).items():
        limit = next((found[resource] for found in above if found.get(resource)), None)
        if amount >= EPSILON and limit is not None and amount >= limit + EPSILON:
            text = f"queue {queue.metadata.name} capability[{resource}]={_text(resource, amount)}"
            text += f" exceeds its ancestor's capability={_text(resource, limit)}"
            yield FieldError(f"spec.capability.{resource}", text)


def _above_descendants(queue: Queue, queues: Queues) -> Iterator[FieldError]:
    for resource, amount in _amounts(queue.spec.capability).items():
        most = _largest(queue, resource, queues, {queue.metadata.name})
        if amount >= EPSILON and most >= amount + EPSILON:
            text = f"queue {queue.metadata.name} capability[{resource}]={_text(resource, amount)}"
            text += f" is smaller than its descendants' max capability={_text(resource, most)}"
            yield FieldError(f"spec.capability.{resource}", text)


def _largest(queue: Queue, resource: str, queues: Queues, seen: set[str]) -> float:
    """Return the largest capability below: of each branch, the first one on the way down."""
    most = 0.0
    for child in queues.children(queue.metadata.name):
        if child.metadata.name in seen:
            continue
        seen.add(child.metadata.name)
        own = _amounts(child.spec.capability).get(resource)
        most = max(most, _largest(child, resource, queues, seen) if own is None else own)
    return most


def _sums(children: Sequence[Queue], parent: Queue, who: str) -> Iterator[FieldError]:
    for word, part in _SHARES.items():
        total: dict[str, float] = {}
        for child in children:
            for resource, amount in _amounts(part(child.spec)).items():
                total[resource] = total.get(resource, 0.0) + amount
        limit = _amounts(part(parent.spec))
        if any(amount >= limit.get(r, 0.0) + EPSILON for r, amount in total.items()):
            text = f"{who} validation failed: sum of children's {word} ({_sum_text(total)})"
            text += f" exceeds parent's {word} limit ({_sum_text(limit)})"
            yield FieldError(f"spec.{word}", text)


def _guaranteed(spec: QueueSpec) -> ResourceList | None:
    return spec.guarantee.resource if spec.guarantee else None


def _deserved(spec: QueueSpec) -> ResourceList | None:
    return spec.deserved


_SHARES: Mapping[str, Callable[[QueueSpec], ResourceList | None]] = {
    "guarantee": _guaranteed,
    "deserved": _deserved,
}


def _amounts(given: ResourceList | None) -> Amounts:
    """Return amounts in the scheduler's units; what is no quantity is refused elsewhere."""
    found = {}
    for resource, amount in (given or {}).items():
        try:
            found[resource] = in_units(resource, quantity.parse(amount))
        except QuantityError:
            continue
    return found


def _text(resource: str, amount: float) -> str:
    return as_text(resource, amount) if resource in ("cpu", "memory") else f"{amount:.2f}"


def _sum_text(amounts: Amounts) -> str:
    rest = {r: a for r, a in amounts.items() if r not in ("cpu", "memory")}
    named = {"cpu": amounts.get("cpu", 0.0), "memory": amounts.get("memory", 0.0), **rest}
    return ", ".join(f"{resource} {amount:.2f}" for resource, amount in named.items())
