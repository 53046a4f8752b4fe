"""Kubernetes' own limits that some plugins heed: ResourceQuota and PodDisruptionBudget."""

from __future__ import annotations

import msgspec

from pumice.core.api.core import ResourceList
from pumice.core.api.meta import LabelSelector, ObjectMeta, Struct, Time


class ResourceQuotaStatus(Struct):
    """What a namespace may have, and has."""

    hard: ResourceList | None = None
    used: ResourceList | None = None


class ResourceQuota(Struct):
    """A quota of v1; the status is what is in force."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: ResourceQuotaStatus = msgspec.field(default_factory=ResourceQuotaStatus)


class PodDisruptionBudgetSpec(Struct):
    """Whose pods the budget is for."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Struct):
    """How many pods may be disturbed now, and which have been."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, Time] | None = None


class PodDisruptionBudget(Struct):
    """A budget of policy/v1."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)
