"""
What a node says by itself: cordons, labels and taints.

kube-scheduler's NodeUnschedulable, NodeAffinity and TaintToleration. They depend on nothing
that a session changes, so the answer is kept for each selection.
"""

from __future__ import annotations

import numpy as np

from pumice.core.api.core import Taint
from pumice.core.extension import Code, Refusal
from pumice.core.model.columns import Columns
from pumice.core.model.signatures import Selection, Signature
from pumice.core.selectors import tolerates

CORDONED = "node(s) were unschedulable"
NOT_CHOSEN = "node(s) didn't match Pod's node affinity/selector"
TAINTED = "node(s) had untolerated taint(s)"

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeFilter:
    """The filters over nodes alone, with their answers so far."""

    def __init__(self, columns: Columns, *, affinity: bool = True, taints: bool = True) -> None:
        self._columns = columns
        self._affinity = affinity
        self._taints = taints
        self._known: dict[Selection, list[Refusal]] = {}

    def __call__(self, signature: Signature) -> list[Refusal]:
        """Return the refusals; each node is refused for its first reason only."""
        selection = signature.selection
        found = self._known.get(selection)
        if found is None:
            found = self._known[selection] = self._refuse(selection)
        return found

    def _refuse(self, selection: Selection) -> list[Refusal]:
        columns, reasons = self._columns, []
        if not tolerates(selection.tolerations, _CORDON):
            reasons.append((CORDONED, columns.unschedulable))
        if self._affinity and not selection.choice.anywhere:
            reasons.append((NOT_CHOSEN, ~columns.chosen(selection.choice)))
        if self._taints:
            reasons.append((TAINTED, columns.untolerated(selection.tolerations)))
        refusals, left = [], columns.all()
        for message, nodes in reasons:
            refused = nodes & left
            if np.any(refused):
                refusals.append(Refusal(Code.UNRESOLVABLE, message, refused))
                left &= ~nodes
        return refusals
