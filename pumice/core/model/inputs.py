"""
Inputs: what some plugins read besides pods, nodes, groups and queues.

All of it is optional. Who runs the engine fills in what the configured plugins ask for, and a
snapshot takes a copy; a plugin whose input is empty behaves as if there were no such objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pumice.core.api.limits import PodDisruptionBudget, ResourceQuota
from pumice.core.api.numatopology import Numatopology
from pumice.core.ids import JobKey
from pumice.core.model.storage import Storage


@dataclass(frozen=True, slots=True)
class Load:
    """How busy a node was, on average over the last minutes, in percent."""

    cpu: float
    memory: float
    #: when that was measured, in seconds since 1970
    at: float


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room that is kept for a gang until it starts."""

    job: JobKey
    group_uid: str
    #: when it is to fit at the latest, in seconds since 1970
    start: float
    #: node -> what is kept of it, in units by row
    rooms: Mapping[str, Sequence[float]]


@dataclass(slots=True)
class Inputs:
    """The further inputs of a session."""

    #: namespace -> name -> quota
    quotas: dict[str, dict[str, ResourceQuota]] = field(default_factory=dict)
    #: `namespace/name` -> budget
    budgets: dict[str, PodDisruptionBudget] = field(default_factory=dict)
    #: node -> its cpus
    numa: dict[str, Numatopology] = field(default_factory=dict)
    #: node -> how busy it is
    loads: dict[str, Load] = field(default_factory=dict)
    #: plugins that act from time to time -> when they last did, in seconds since 1970
    acted: dict[str, float] = field(default_factory=dict)
    #: as the last session left it
    reservation: Reservation | None = None
    #: what decides where the volumes of pods can be
    storage: Storage = field(default_factory=Storage)

    def copy(self) -> Inputs:
        """Return inputs of their own; the objects themselves are never changed."""
        quotas = {namespace: dict(named) for namespace, named in self.quotas.items()}
        return Inputs(
            quotas,
            dict(self.budgets),
            dict(self.numa),
            dict(self.loads),
            dict(self.acted),
            self.reservation,
            self.storage.copy(),
        )

    def set_quota(self, quota: ResourceQuota) -> None:
        """Take over a quota as it is now."""
        self.quotas.setdefault(quota.metadata.namespace, {})[quota.metadata.name] = quota

    def remove_quota(self, key: str) -> None:
        """Forget a quota by `namespace/name`."""
        namespace, _, name = key.partition("/")
        self.quotas.get(namespace, {}).pop(name, None)

    def set_budget(self, budget: PodDisruptionBudget) -> None:
        """Take over a budget as it is now; one is forgotten by deleting it from `budgets`."""
        self.budgets[budget.metadata.key] = budget

    def set_numa(self, topology: Numatopology) -> None:
        """Take over the cpus of a node; they are forgotten by deleting them from `numa`."""
        self.numa[topology.metadata.name] = topology
