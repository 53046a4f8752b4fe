"""The HyperNodes of a cluster, and the tree that they are over its nodes."""

from __future__ import annotations

from collections.abc import Mapping

from pumice.core.api.topology import HyperNode
from pumice.core.model.columns import Columns
from pumice.core.model.hypernodes import HyperTree, hyper_tree, selecting_labels


class Topology:
    """HyperNodes as they come and go."""

    def __init__(self) -> None:
        self._hypernodes: dict[str, HyperNode] = {}
        #: the tree, the columns that it is over, the labels that it depends on
        self._tree: tuple[HyperTree, Columns, frozenset[str]] | None = None

    @property
    def hypernodes(self) -> Mapping[str, HyperNode]:
        """Return the HyperNodes by name."""
        return self._hypernodes

    def put(self, hypernode: HyperNode) -> None:
        """Take over a HyperNode as it is now."""
        known = self._hypernodes.get(hypernode.metadata.name)
        self._hypernodes[hypernode.metadata.name] = hypernode
        if known is None or known.spec != hypernode.spec:
            self._tree = None

    def drop(self, name: str) -> None:
        """Forget a HyperNode."""
        if self._hypernodes.pop(name, None) is not None:
            self._tree = None

    def tree(self, columns: Columns) -> HyperTree:
        """Return the tree over the nodes as they are now; shared, and never changed."""
        if self._tree is not None:
            tree, over, labels = self._tree
            if over is columns:
                return tree
            if columns.agrees(over, labels):
                self._tree = tree, columns, labels
                return tree
        labels = selecting_labels(self._hypernodes.values())
        self._tree = hyper_tree(self._hypernodes, columns), columns, labels
        return self._tree[0]
