"""
Recall: what a session need not find out again.

A session that decided nothing and promised nothing has left everything as it was: every job was
refused, in its turn, before the same nodes and queues. So where the next session sees these
unchanged, a job that is unchanged, too, is refused again, and all that is said of it is what was
said then. Such jobs are left out, and the others are decided alone. If any of them gets anything,
that would have been before or after the turns of those left out, and all are looked at after all.

This needs plugins and actions whose answers depend on the snapshot alone: not on the time, on
nothing outside, not on tasks that run (beyond what queues and nodes hold), and, for one job, not
on whether others are left out. Those say so by `steady`. Where one that is configured does not,
nothing is left out; and so a plan is the same with and without recall.

Of the snapshot everything counts but jobs, each of which counts for itself alone, and who the
tasks are that nodes are charged with. A job is unchanged if it is the same object: what changes
one makes a copy of it first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from operator import is_
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import numpy as np

from pumice.core.conf import Configuration
from pumice.core.ids import JobKey
from pumice.core.model.nodes import NodeTable
from pumice.core.model.snapshots import Snapshot
from pumice.core.plan import GroupStatus, Plan

_JOBS = frozenset({"jobs", "active"})
_NOTHING: Mapping[JobKey, GroupStatus] = MappingProxyType({})


@runtime_checkable
class Steady(Protocol):
    """A plugin or action that can say that its answers depend on the snapshot alone."""

    steady: bool


def is_steady(thing: object) -> bool:
    """Return whether a plugin or action says that its answers depend on the snapshot alone."""
    return isinstance(thing, Steady) and thing.steady


@dataclass(frozen=True, slots=True)
class Former:
    """A session that is over: what it saw, by which configuration, and what it came to."""

    snapshot: Snapshot
    conf: Configuration
    plan: Plan


def recalled(
    former: Former | None, snapshot: Snapshot, conf: Configuration
) -> Mapping[JobKey, GroupStatus]:
    """Return the jobs that need not be looked at, with what is to be said of them."""
    if former is None or not former.plan.steady or former.conf != conf:
        return _NOTHING
    if not _are_surroundings_alike(former.snapshot, snapshot):
        return _NOTHING
    then, now = former.snapshot.jobs, snapshot.jobs
    return {
        group.job: group
        for group in former.plan.groups
        if group.job in snapshot.active and now[group.job] is then[group.job]
    }


def _are_surroundings_alike(one: Snapshot, other: Snapshot) -> bool:
    return all(
        _are_alike(getattr(one, field.name), getattr(other, field.name))
        for field in fields(Snapshot)
        if field.name not in _JOBS
    )


def _are_alike(one: object, other: object) -> bool:
    """Return whether two values say the same; most often they are one object."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, NodeTable) and isinstance(other, NodeTable):
        return one.columns is other.columns and np.array_equal(one.amounts, other.amounts)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if [*one] != [*other]:
            return False
        # There may be a hundred thousand, of which most often none was exchanged.
        return all(map(is_, one.values(), other.values())) or all(
            map(_are_alike, one.values(), other.values())
        )
    if is_dataclass(one):
        return all(
            _are_alike(getattr(one, field.name), getattr(other, field.name))
            for field in fields(one)
            if field.compare
        )
    return bool(one == other)
