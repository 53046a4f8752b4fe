"""
Rankings: scores that compare the candidates with each other, and that of images.

A raw figure becomes a score by its place among the candidates, so it depends on which nodes
those are. Where the raw figure is the same on all of them the score is one constant.
"""

from __future__ import annotations

import numpy as np

from pumice.core.model.columns import Columns
from pumice.core.model.peers import Peers
from pumice.core.model.signatures import Selection, Signature, Spread
from pumice.core.model.spreading import node_tally, spread_tally
from pumice.core.plugins.nodeorder.load import MAX_SCORE
from pumice.core.resources import Bools, Floats, Ints

HOSTNAME = "kubernetes.io/hostname"
MIB = 1024 * 1024
LEAST_IMAGE_BYTES = 23 * MIB
MOST_IMAGE_BYTES = 1000 * MIB
"""For each container."""


def of_highest(raw: Ints) -> Floats:
    """Return each figure's share of the highest, 0..100; 0 where there is none."""
    highest = raw.max(initial=0)
    return np.floor(MAX_SCORE * raw / highest) if highest else np.zeros(raw.size)


def reversed_of_highest(raw: Ints) -> Floats:
    """Return 100 for none, 0 for the highest figure."""
    return MAX_SCORE - of_highest(raw)


def between_extremes(raw: Ints) -> Floats:
    """Return 0 for the lowest figure, 100 for the highest; 0 where all are alike."""
    if raw.size == 0 or raw.min() == raw.max():
        return np.zeros(raw.size)
    lowest, highest = int(raw.min()), int(raw.max())
    return np.floor(MAX_SCORE * ((raw - lowest) / (highest - lowest)))


def preferred_by_pod(selection: Selection, columns: Columns) -> Ints:
    """Return the weights of the preferred node affinity terms that each node matches, summed."""
    raw = np.zeros(columns.size, np.int64)
    for preference in selection.preferred:
        raw += preference.weight * columns.matching(preference.term)
    return raw


def pod_affinity(signature: Signature, peers: Peers) -> Ints:
    """
    Return the sum of preferred terms, the pod's own and those of pods that are there.

    A term weighs once for each pod that it ties to the node's domain; anti-affinity is negative.
    Required terms of pods that are there weigh nothing, as in Volcano.
    """
    presence = signature.presence
    raw = np.zeros(peers.columns.size, np.int64)
    for wish in presence.preferred:
        raw += wish.weight * peers.matching((wish.term,), wish.term.topology_key).at_nodes()
    for tally in peers.wishing_pod(presence):
        raw += tally.at_nodes()
    return raw


def evenness(signature: Signature, peers: Peers, candidates: Bools) -> Floats:
    """
    Return the score of ScheduleAnyway spread constraints: 100 where fewest pods are.

    Domains weigh by the logarithm of their number, so that a constraint over few zones counts as
    much as one over many nodes; candidates that lack a topology key get 0. Constraints that
    kube-scheduler gives by default to pods of Services and ReplicaSets are not known here.
    """
    keys = frozenset(c.topology_key for c in signature.soft_spread)
    scored = candidates.copy()
    for key in keys:
        scored &= peers.columns.label(key).present
    crowding = sum(
        (_crowding(c, signature, peers, scored, keys) for c in signature.soft_spread),
        start=np.zeros(candidates.size),
    )
    crowding = np.floor(crowding + 0.5)
    score = np.zeros(candidates.size)
    if scored.any():
        highest, lowest = crowding[scored].max(), crowding[scored].min()
        score[scored] = MAX_SCORE
        if highest:
            even = np.floor(MAX_SCORE * (highest + lowest - crowding) / highest)
            score[scored] = even[scored]
    return score


def _crowding(
    constraint: Spread, signature: Signature, peers: Peers, scored: Bools, keys: frozenset[str]
) -> Floats:
    if constraint.topology_key == HOSTNAME:
        domains = int(scored.sum())
        counts = node_tally(peers, constraint, signature).at_nodes()
    else:
        tally = spread_tally(peers, constraint, signature, keys)
        domains = np.unique(tally.domains[scored]).size
        counts = tally.at_nodes()
    crowding: Floats = counts * np.log(domains + 2) + (constraint.max_skew - 1)
    return crowding


def images_present(signature: Signature, columns: Columns) -> Floats:
    """
    Return 0..100 for the bytes of the pod's images that each node holds already.

    An image counts in proportion to the nodes that hold it, so that the few that do are not
    overrun.
    """
    if not signature.images:
        return np.zeros(columns.size)
    held = np.zeros(columns.size)
    for image in signature.images:
        size, holders = columns.image(image)
        held[holders] += np.trunc(size * (holders.size / max(columns.size, 1)))
    most = MOST_IMAGE_BYTES * len(signature.images)
    held = np.clip(held, LEAST_IMAGE_BYTES, most) - LEAST_IMAGE_BYTES
    score: Floats = np.floor(MAX_SCORE * held / (most - LEAST_IMAGE_BYTES))
    return score
