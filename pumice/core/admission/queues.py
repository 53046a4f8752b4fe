"""
Defaults and validation of a queue by itself; what concerns its place in the tree is in `tree`.

Amounts must be in order: what is guaranteed is part of what is deserved, and what is deserved is
at most what the queue may hold. A resource that the upper amount does not name is not limited,
save that whatever is guaranteed must be deserved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from pumice.core import names, quantity
from pumice.core.admission import hierarchy, tree, views
from pumice.core.admission.containers import is_extended
from pumice.core.admission.errors import FieldError, invalid
from pumice.core.admission.views import Queues
from pumice.core.api.core import ResourceList
from pumice.core.api.meta import Quantity
from pumice.core.api.scheduling import Queue, QueueSpec
from pumice.core.quantity import Exact, QuantityError

PROTECTED = frozenset({names.DEFAULT_QUEUE, names.ROOT_QUEUE})
ROOT_RESOURCES = (
    "root queue's resource attributes (capability, deserved, guarantee) cannot be modified"
)
_BODY = "requestBody"


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules that an installation chooses."""

    max_depth: int = 5
    #: the resources of root may not be changed
    protects_root: bool = True
    #: a queue may not be deleted while pods hold something of it
    keeps_allocated: bool = False


def defaults(queue: Queue) -> Queue:
    """Return the queue with everything filled in; a weight of zero counts as none."""
    spec = queue.spec
    reclaimable = True if spec.reclaimable is None else spec.reclaimable
    spec = msgspec.structs.replace(spec, reclaimable=reclaimable, weight=spec.weight or 1)
    return msgspec.structs.replace(queue, spec=spec, metadata=hierarchy.rooted(queue.metadata))


def check_create(queue: Queue, queues: Queues, rules: Rules) -> list[FieldError]:
    """Return what is wrong with a new queue."""
    found = [*_fields(queue, queues)]
    if queue.status.state not in ("", "Open", "Closed"):
        # Only here: a queue that is being closed may be changed all the same.
        why = "queue state must be in [Open Closed]"
        found.append(_wrong("spec.state", queue.status.state, why))
    return [*found, *tree.place(queue, queues, rules.max_depth), *tree.amounts(queue, queues)]


def check_update(old: Queue, new: Queue, queues: Queues, rules: Rules) -> list[FieldError]:
    """Return what is wrong with a change."""
    found = [*_fields(new, queues)]
    resized = _amounts(old.spec) != _amounts(new.spec)
    moved = old.spec.parent != new.spec.parent
    if moved:
        found += tree.place(new, queues, rules.max_depth)
    if resized and new.metadata.name == names.ROOT_QUEUE and rules.protects_root:
        found.append(FieldError("spec", ROOT_RESOURCES))
    if resized or moved:
        found += tree.amounts(new, queues)
    return found


def check_delete(name: str, queues: Queues, rules: Rules) -> list[FieldError]:
    """Return what stands against deleting a queue; its state does not."""
    if name in PROTECTED:
        return [FieldError("metadata.name", f"`{name}` queue can not be deleted")]
    queue = queues.get(name)
    if queue is None:
        return [FieldError("metadata.name", views.not_found(name))]
    found = []
    pods = tree.allocated_pods(queue)
    if rules.keeps_allocated and pods:
        text = f"queue {name} cannot be deleted because it has allocated Pods: {pods}"
        found.append(FieldError("status.allocated", text))
    if children := [child.metadata.name for child in queues.children(name)]:
        text = f"queue {name} can not be deleted because it has {len(children)} child queues: "
        found.append(FieldError("metadata.name", text + ", ".join(children)))
    return found


def _fields(queue: Queue, queues: Queues) -> Iterator[FieldError]:
    capability, deserved, guarantee = _amounts(queue.spec)
    for at, given in (
        ("spec.capability", capability),
        ("spec.deserved", deserved),
        ("spec.guarantee.resource", guarantee),
    ):
        for resource, amount in given.items():
            yield from _quantity(f"{at}.{resource}", resource, amount)
    yield from _order(capability, deserved, guarantee)
    yield from hierarchy.check(queue, queues)


def _amounts(spec: QueueSpec) -> tuple[ResourceList, ResourceList, ResourceList]:
    """Return capability, deserved and guarantee."""
    guarantee = spec.guarantee.resource if spec.guarantee else None
    return spec.capability or {}, spec.deserved or {}, guarantee or {}


def _quantity(field: str, resource: str, amount: Quantity) -> Iterator[FieldError]:
    number = _number(amount)
    if number is None:
        yield _wrong(field, amount, "must be a quantity")
    elif number < 0:
        yield _wrong(field, amount, "must be greater than or equal to 0")
    elif not isinstance(number, int) and (resource == "pods" or is_extended(resource)):
        yield _wrong(field, amount, "must be an integer")


def _order(
    capability: ResourceList, deserved: ResourceList, guarantee: ResourceList
) -> Iterator[FieldError]:
    for resource, least in guarantee.items():
        if resource not in deserved:
            why = f"deserved[{resource}] must be >= guarantee[{resource}]={least}"
            yield _wrong(f"spec.deserved.{resource}", "<nil>", why)
        elif _exceeds(least, deserved[resource]):
            amount = deserved[resource]
            why = f"deserved[{resource}]={amount} must be >= guarantee[{resource}]={least}"
            yield _wrong(f"spec.deserved.{resource}", amount, why)
    for resource, amount in deserved.items():
        if resource in capability and _exceeds(amount, capability[resource]):
            most = capability[resource]
            why = f"deserved[{resource}]={amount} must be <= capability[{resource}]={most}"
            yield _wrong(f"spec.deserved.{resource}", amount, why)


def _exceeds(amount: Quantity, limit: Quantity) -> bool:
    left, right = _number(amount), _number(limit)
    return left is not None and right is not None and left > right


def _number(amount: Quantity) -> Exact | None:
    try:
        return quantity.parse(amount)
    except QuantityError:
        return None


def _wrong(field: str, value: object, why: str) -> FieldError:
    return FieldError(field, invalid(f"{_BODY}.{field}", value, why))
