"""
Provisioning: for which nodes a volume can be made.

The class says for which nodes its provisioner works at all. Where the CSI driver tells how much
storage is left, enough of it must be left, in one piece, somewhere that the node reaches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from pumice.core import quantity
from pumice.core.api.storage import CSIStorageCapacity, StorageClass, TopologySelectorTerm
from pumice.core.model.storage import Storage
from pumice.core.plugins.predicates.volumes.needs import Ask, Reach
from pumice.core.plugins.predicates.volumes.places import Places
from pumice.core.quantity import Exact, QuantityError
from pumice.core.resources import Bools
from pumice.core.selectors import NodeTerm, Requirement, SelectorError, label_selector

NOBODY: Final = ("", "kubernetes.io/no-provisioner")


class Provision(NamedTuple):
    """The nodes for which a volume can be made, and those with enough storage left."""

    made: Bools
    enough: Bools


class Provisioning:
    """Answers for the asks of a session, each once."""

    def __init__(self, storage: Storage, places: Places) -> None:
        self._storage = storage
        self._places = places
        self._known: dict[tuple[str, Exact | None], Provision] = {}

    def of(self, ask: Ask) -> Provision:
        """Return for which nodes a volume can be made that is asked for."""
        key = (ask.of, ask.size)
        found = self._known.get(key)
        if found is None:
            kind = self._storage.classes[ask.of]
            found = self._known[key] = Provision(self._made(kind), self._enough(kind, ask.size))
        return found

    def _made(self, kind: StorageClass) -> Bools:
        size = self._places.columns.size
        if kind.provisioner in NOBODY:
            return np.zeros(size, bool)
        if not kind.allowed_topologies:
            return np.ones(size, bool)
        return self._places.mask(tuple(_terms(kind.allowed_topologies)))

    def _enough(self, kind: StorageClass, size: Exact | None) -> Bools:
        driver = self._storage.drivers.get(kind.provisioner)
        if size is None or driver is None or not driver.spec.storage_capacity:
            return np.ones(self._places.columns.size, bool)
        reach: list[NodeTerm] = []
        for _, capacity in sorted(self._storage.capacities.items()):
            if capacity.storage_class_name == kind.metadata.name and _holds(capacity, size):
                reach += _nodes_of(capacity)
        return self._places.mask(tuple(reach))


def _terms(topologies: Iterable[TopologySelectorTerm]) -> Iterable[NodeTerm]:
    for topology in topologies:
        labels = topology.match_label_expressions or ()
        wanted = [Requirement(label.key, "In", tuple(label.values or ())) for label in labels]
        if wanted:
            yield NodeTerm(tuple(wanted))


def _holds(capacity: CSIStorageCapacity, size: Exact) -> bool:
    limit = capacity.maximum_volume_size
    limit = capacity.capacity if limit is None else limit
    try:
        return limit is not None and quantity.parse(limit) >= size
    except QuantityError:
        return False


def _nodes_of(capacity: CSIStorageCapacity) -> Reach:
    """Return the nodes that reach the storage; none where that is not said, or makes no sense."""
    try:
        selector = label_selector(capacity.node_topology)
    except SelectorError:
        return ()
    return () if selector.nothing else (NodeTerm(selector.requirements),)
