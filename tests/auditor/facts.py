"""
What the auditor knows: objects as they were seen, requests as the API server logged them.

A sighting is an object at one resourceVersion. Resource versions of one etcd are totally ordered
over all objects, so sightings of different kinds are put in their true order by `rv`, however
late the watch delivered them; `at` is the time of day at which the auditor saw it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Generic, Literal, TypeVar

Requests = Mapping[str, Fraction]
FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Pod:
    """The part of a pod that some rule looks at."""

    uid: str
    namespace: str
    name: str
    scheduler: str = ""
    group: str = ""
    role: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    deleting: bool = False
    node: str = ""
    phase: str = "Pending"
    requests: Requests = field(default_factory=dict)
    gates: tuple[str, ...] = ()
    pin: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def finished(self) -> bool:
        """Whether it has run to an end; such a pod occupies no node."""
        return self.phase in FINISHED

    @property
    def best_effort(self) -> bool:
        """Whether it asks for nothing at all."""
        return not any(self.requests.values())

    @property
    def counts(self) -> bool:
        """Whether a gang may count it as started: bound and alive, or Succeeded."""
        if self.phase == "Succeeded":
            return True
        return bool(self.node) and not self.deleting and self.phase != "Failed"

    @property
    def waits_for_nothing(self) -> bool:
        """Whether it is pending and asks for nothing: a gang's minimum counts it as there."""
        return not self.node and self.phase == "Pending" and not self.deleting and self.best_effort


@dataclass(frozen=True, slots=True)
class Node:
    """A node and what it can hold."""

    uid: str
    name: str
    allocatable: Requests

    @property
    def key(self) -> str:
        """The name."""
        return self.name


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a label selector."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: frozenset[str] = frozenset()

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels satisfy it; NotIn holds for an absent key."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class SubGroups:
    """A policy that splits a gang: at least `least` parts of `size` pods each must start."""

    name: str
    size: int = 1
    least: int = 0
    selector: tuple[Requirement, ...] = ()
    split_by: tuple[str, ...] = ()

    def part_of(self, labels: Mapping[str, str]) -> tuple[str, ...] | None:
        """The part a pod with these labels belongs to, None when the policy is not for it."""
        values = tuple(labels.get(key, "") for key in self.split_by)
        if not values or "" in values or not all(r.selects(labels) for r in self.selector):
            return None
        return values


@dataclass(frozen=True, slots=True)
class Gang:
    """A PodGroup's minimum: in all, by role, by sub-groups."""

    uid: str
    namespace: str
    name: str
    minimum: int = 0
    roles: Mapping[str, int] = field(default_factory=dict)
    sub_groups: tuple[SubGroups, ...] = ()

    @property
    def key(self) -> str:
        """`namespace/name`, as its members name it."""
        return f"{self.namespace}/{self.name}"


Object = TypeVar("Object", bound=Pod | Node | Gang)


@dataclass(frozen=True, slots=True)
class Sighting(Generic[Object]):
    """An object as it was at `rv`, seen at `at`; `gone` when it no longer is."""

    at: float
    rv: int
    object: Object
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A finished write from the audit log; times are the API server's, in seconds of day."""

    at: float
    done: float
    user: str
    verb: str
    resource: str
    name: str
    namespace: str = ""
    subresource: str = ""
    group: str = ""
    code: int = 200
    uid: str = ""
    node: str = ""
    rv: int | None = None
    dry_run: bool = False
    last_finalizer: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether the API server did as asked."""
        return 200 <= self.code < 300

    @property
    def what(self) -> str:
        """Resource with its subresource, as in `pods/binding`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    @property
    def target(self) -> str:
        """`namespace/name` of the object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def binds(self) -> bool:
        """Whether it is a binding of a pod, by either of the two resources that can bind."""
        pod_binding = self.resource == "pods" and self.subresource == "binding"
        return self.verb == "create" and (pod_binding or self.resource == "bindings")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the extender's ledger."""

    uid: str
    namespace: str
    name: str
    node: str
    state: str


@dataclass(frozen=True, slots=True)
class Dump:
    """The whole ledger, asked for at `at`."""

    at: float
    entries: Mapping[str, Entry]


@dataclass(frozen=True, slots=True)
class Mark:
    """
    Something the test told the auditor.

    `pause` and `resume` enclose time that counts for nobody; `killed` starts the clock of every
    gang again; `limit` changes the number of seconds from then on.
    """

    at: float
    kind: Literal["pause", "resume", "killed", "limit"]
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise: the rule's letter, the object, when, the numbers, and all in words."""

    rule: str
    object: str
    sentence: str
    times: tuple[float, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)
