"""Places: from which nodes a volume can be reached, as columns of the node table."""

from __future__ import annotations

import numpy as np

from pumice.core.model.columns import Columns
from pumice.core.plugins.predicates.volumes.needs import Reach
from pumice.core.resources import Bools, Ints
from pumice.core.selectors import NodeTerm

_NONE: Ints = np.zeros(0, np.int64)


class Places:
    """Answers for many volumes: most of them name one node by one label."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._holders: dict[str, dict[str, Ints]] = {}

    def at(self, reach: Reach) -> Ints:
        """Return the columns of the nodes that some term means, in order."""
        found = [self._meant(term) for term in reach]
        if len(found) == 1:
            return found[0]
        return np.unique(np.concatenate([_NONE, *found]))

    def mask(self, reach: Reach) -> Bools:
        """Return the nodes that some term means."""
        mask = np.zeros(self.columns.size, bool)
        mask[self.at(reach)] = True
        return mask

    def _meant(self, term: NodeTerm) -> Ints:
        if not term.names and len(term.labels) == 1 and term.labels[0].operator == "In":
            [wanted] = term.labels
            holders = self._with_label(wanted.key)
            found = [holders[value] for value in set(wanted.values) if value in holders]
            return np.sort(np.concatenate(found)) if found else _NONE
        return np.flatnonzero(self.columns.matching(term))

    def _with_label(self, key: str) -> dict[str, Ints]:
        """Return the nodes that have a label, by its value."""
        found = self._holders.get(key)
        if found is None:
            column = self.columns.label(key)
            order = np.argsort(column.codes, kind="stable")
            starts = np.searchsorted(column.codes[order], np.arange(len(column.values) + 1))
            found = self._holders[key] = {
                value: order[starts[code] : starts[code + 1]]
                for code, value in enumerate(column.values)
            }
        return found
