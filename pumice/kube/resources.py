"""
The kinds we talk about: where the API server keeps them and what type they decode to.

A `Resource` names a collection of objects and carries the struct for one of them. The structs
of foreign kinds are partial: they hold what is read, and are never written back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from pumice.core.api.batch import Job
from pumice.core.api.bus import Command
from pumice.core.api.core import Node, Pod, PriorityClass
from pumice.core.api.cron import CronJob
from pumice.core.api.flow import JobFlow, JobTemplate
from pumice.core.api.limits import PodDisruptionBudget, ResourceQuota
from pumice.core.api.meta import ObjectMeta, Struct, Template, Time
from pumice.core.api.numatopology import Numatopology
from pumice.core.api.scheduling import PodGroup, Queue
from pumice.core.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from pumice.core.api.topology import HyperNode


class Object(Protocol):
    """Anything with Kubernetes metadata."""

    metadata: ObjectMeta


T = TypeVar("T", bound=Object)


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """A collection of the API; compared and hashed by where it is, not by its type."""

    api_version: str
    kind: str
    plural: str
    type: type[T] = field(compare=False)
    namespaced: bool = True
    #: False where the status is written with the object, there being no status subresource
    has_status: bool = field(default=True, compare=False)
    #: defined by a CRD; the server then ignores all metadata but the resourceVersion in /status
    custom: bool = field(default=False, compare=False)

    @property
    def group(self) -> str:
        """Return the API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of the collection, of one object, or of a part of it."""
        parts = ["/apis" if "/" in self.api_version else "/api", self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


class Plain(Struct):
    """An object of which the metadata is all that matters."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class ConfigMap(Plain):
    """Text by key."""

    data: dict[str, str] | None = None


class Secret(Plain):
    """Bytes by key, in base64."""

    type: str = ""
    data: dict[str, str] | None = None


class Service(Plain):
    """A service; its specification is passed through."""

    spec: Template | None = None


class ReplicaSetSpec(Struct):
    """How many pods a set keeps."""

    replicas: int | None = None


class ReplicaSet(Plain):
    """A replica set: it stands between a Deployment and its pods."""

    spec: ReplicaSetSpec = msgspec.field(default_factory=ReplicaSetSpec)


class StatefulSetStatus(Struct):
    """How far a stateful set is."""

    update_revision: str = ""


class StatefulSet(Plain):
    """A stateful set: it owns its pods itself."""

    spec: ReplicaSetSpec = msgspec.field(default_factory=ReplicaSetSpec)
    status: StatefulSetStatus = msgspec.field(default_factory=StatefulSetStatus)


class ObjectReference(Struct):
    """What an event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSource(Struct):
    """Who noticed."""

    component: str = ""
    host: str = ""


class Event(Plain):
    """An event of core/v1."""

    involved_object: ObjectReference = msgspec.field(default_factory=ObjectReference)
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: Time | None = None
    last_timestamp: Time | None = None
    source: EventSource = msgspec.field(default_factory=EventSource)
    reporting_component: str = ""


class LeaseSpec(Struct):
    """Who holds a lease, and until when."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: Time | None = None
    renew_time: Time | None = None
    lease_transitions: int | None = None


class Lease(Plain):
    """A lease of coordination.k8s.io/v1."""

    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


class WebhookConfiguration(Plain):
    """Which requests the API server asks a webhook about; the webhooks are passed through."""

    webhooks: list[Template] | None = None


AnyResource = Resource[Any]

PODS = Resource("v1", "Pod", "pods", Pod)
NODES = Resource("v1", "Node", "nodes", Node, namespaced=False)
NAMESPACES = Resource("v1", "Namespace", "namespaces", Plain, namespaced=False)
EVENTS = Resource("v1", "Event", "events", Event)
SERVICES = Resource("v1", "Service", "services", Service)
CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps", ConfigMap)
SERVICE_ACCOUNTS = Resource("v1", "ServiceAccount", "serviceaccounts", Plain)
SECRETS = Resource("v1", "Secret", "secrets", Secret)
CLAIMS = Resource("v1", "PersistentVolumeClaim", "persistentvolumeclaims", PersistentVolumeClaim)
VOLUMES = Resource(
    "v1", "PersistentVolume", "persistentvolumes", PersistentVolume, namespaced=False
)
_STORAGE = "storage.k8s.io/v1"
STORAGE_CLASSES = Resource(
    _STORAGE, "StorageClass", "storageclasses", StorageClass, namespaced=False, has_status=False
)
CSI_NODES = Resource(_STORAGE, "CSINode", "csinodes", CSINode, namespaced=False, has_status=False)
CSI_DRIVERS = Resource(
    _STORAGE, "CSIDriver", "csidrivers", CSIDriver, namespaced=False, has_status=False
)
CSI_CAPACITIES = Resource(
    _STORAGE, "CSIStorageCapacity", "csistoragecapacities", CSIStorageCapacity, has_status=False
)
REPLICA_SETS = Resource("apps/v1", "ReplicaSet", "replicasets", ReplicaSet)
STATEFUL_SETS = Resource("apps/v1", "StatefulSet", "statefulsets", StatefulSet)
DAEMON_SETS = Resource("apps/v1", "DaemonSet", "daemonsets", Plain)
KUBERNETES_JOBS = Resource("batch/v1", "Job", "jobs", Plain)
NETWORK_POLICIES = Resource("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", Plain)
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", PriorityClass, namespaced=False
)
BUDGETS = Resource("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", PodDisruptionBudget)
QUOTAS = Resource("v1", "ResourceQuota", "resourcequotas", ResourceQuota)
LEASES = Resource("coordination.k8s.io/v1", "Lease", "leases", Lease)
JOBS = Resource("batch.volcano.sh/v1alpha1", "Job", "jobs", Job, custom=True)
POD_GROUPS = Resource(
    "scheduling.volcano.sh/v1beta1",
    "PodGroup",
    "podgroups",
    PodGroup,
    has_status=False,
    custom=True,
)
QUEUES = Resource(
    "scheduling.volcano.sh/v1beta1", "Queue", "queues", Queue, namespaced=False, custom=True
)
HYPERNODES = Resource(
    "topology.volcano.sh/v1alpha1",
    "HyperNode",
    "hypernodes",
    HyperNode,
    namespaced=False,
    custom=True,
)
CRON_JOBS = Resource("batch.volcano.sh/v1alpha1", "CronJob", "cronjobs", CronJob, custom=True)
JOB_FLOWS = Resource("flow.volcano.sh/v1alpha1", "JobFlow", "jobflows", JobFlow, custom=True)
JOB_TEMPLATES = Resource(
    "flow.volcano.sh/v1alpha1", "JobTemplate", "jobtemplates", JobTemplate, custom=True
)
COMMANDS = Resource(
    "bus.volcano.sh/v1alpha1", "Command", "commands", Command, has_status=False, custom=True
)
NUMA_TOPOLOGIES = Resource(
    "nodeinfo.volcano.sh/v1alpha1",
    "Numatopology",
    "numatopologies",
    Numatopology,
    namespaced=False,
    has_status=False,
    custom=True,
)
CRDS = Resource(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    Plain,
    namespaced=False,
)
_ADMISSION = "admissionregistration.k8s.io/v1"
MUTATING_WEBHOOKS = Resource(
    _ADMISSION,
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    WebhookConfiguration,
    namespaced=False,
)
VALIDATING_WEBHOOKS = Resource(
    _ADMISSION,
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    WebhookConfiguration,
    namespaced=False,
)
MUTATING_POLICIES = Resource(
    _ADMISSION,
    "MutatingAdmissionPolicy",
    "mutatingadmissionpolicies",
    Plain,
    namespaced=False,
)
