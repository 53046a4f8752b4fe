"""
Zones of volumes (kube-scheduler's VolumeZone).

A bound volume with a label of a zone or region goes with nodes of the same; its label may name
several, with `__` between them. Nodes that name neither zone nor region are not refused.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pumice.core.extension import Code, Refusal
from pumice.core.model.columns import Columns
from pumice.core.plugins.predicates.masks import any_of
from pumice.core.plugins.predicates.volumes.needs import ZONE_LABELS, Needs
from pumice.core.resources import Bools

OTHER_ZONE: Final = "node(s) had no available volume zone"


def refuse_other_zones(needs: Needs, columns: Columns) -> list[Refusal]:
    """Refuse the nodes of zones and regions that some volume is not in."""
    if not needs.zones:
        return []
    somewhere = any_of(columns.label(key).present for key in ZONE_LABELS)
    inside = columns.all()
    for key, values in needs.zones:
        inside &= _within(key, values, columns)
    return [Refusal(Code.UNRESOLVABLE, OTHER_ZONE, somewhere & ~inside)]


def _within(key: str, values: frozenset[str], columns: Columns) -> Bools:
    """Return the nodes whose label has one of the values: the label of today for want of it."""
    within = _having(key, values, columns)
    absent = ~columns.label(key).present
    return within | (absent & _having(ZONE_LABELS[key], values, columns))


def _having(key: str, values: frozenset[str], columns: Columns) -> Bools:
    column = columns.label(key)
    having: Bools = np.array([value in values for value in (*column.values, None)], bool)
    return np.asarray(having[column.codes])
