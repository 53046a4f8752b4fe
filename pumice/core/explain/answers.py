"""
The shapes of explanations: what the debug API sends and `pumice explain` prints.

Amounts are Kubernetes quantities in text, moments RFC 3339.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Amounts = dict[str, str]
Kind = Literal["job", "podgroup", "pod"]
State = Literal["waiting", "starting", "running", "finished"]
Scope = Literal["gang", "queue", "cluster", "node"]
HolderKind = Literal["queue", "job", "others", "ending", "outside"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two numbers of which the first was too large, or just fits."""

    plugin: str
    """Who compared them: a plugin, or the action itself."""
    scope: Scope
    """Whose numbers they are. That of a node is the node with the most left, of those short."""
    resource: str
    """What was counted; `members` are pods of the gang."""
    wanted: str
    had: str
    of: str = ""
    """What there is in all, used or not, where that is known."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Nodes that were refused for one reason; a node may be refused for several."""

    nodes: int
    reason: str
    """As kube-scheduler puts it."""
    words: str
    """The same in plain words."""


@dataclass(frozen=True, slots=True)
class Cramped:
    """A HyperNode that was to hold a gang, or a sub-group of it, as a whole and could not."""

    name: str
    found: int
    """How many of the pods found a node in it."""
    wanted: int
    """How many had to, at the same time."""
    resource: str = ""
    """What it has not enough of for all pods that wait, where its nodes were not even looked at."""
    asked: str = ""
    had: str = ""


@dataclass(frozen=True, slots=True)
class Holder:
    """
    Who holds what is short.

    A `queue` holds what its jobs hold. `others` are all jobs that are not listed: too many, or not
    the reader's to see. `ending` are pods on their way out, `outside` pods of other schedulers.
    """

    kind: HolderKind
    holds: Amounts
    namespace: str = ""
    name: str = ""
    queue: str = ""
    jobs: int = 0
    """How many jobs they are, of `others`."""


@dataclass(frozen=True, slots=True)
class Nack:
    """The last time that kube-scheduler would not have a pod of the job."""

    pod: str
    node: str
    at: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Members:
    """The pods of a job, counted."""

    minimum: int = 0
    """How many must run at the same time."""
    total: int = 0
    waiting: int = 0
    found: int = 0
    """Of those that wait: how many there is a node for, were the gang whole."""
    placed: int = 0
    """Pods that were given a node, those that have one and those that succeeded included."""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    ledger: dict[str, int] = field(default_factory=dict)
    """How far they have got: Held, Released, Arrived, Bound."""


@dataclass(frozen=True, slots=True)
class Decision:
    """When a session last said something of the job, or placed the pod."""

    session: str
    at: str
    action: str = ""
    plugin: str = ""
    message: str = ""
    """The record's own words."""


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """One node, as things stand, as if the pod were not on it."""

    name: str
    takes: bool
    """Whether the pod could go there."""
    refusals: tuple[str, ...] = ()
    """Why it could not, in plain words."""
    asks: Amounts = field(default_factory=dict)
    has: Amounts = field(default_factory=dict)
    """What the node has left of what the pod asks for."""
    score: float | None = None
    best: float | None = None
    """The highest score of all nodes that take the pod."""
    better: int = 0
    """How many nodes score higher."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The nodes that there were to choose from, as things stand."""

    nodes: int
    open: int
    """How many would take the pod."""
    refused: tuple[Refused, ...] = ()
    verdict: NodeVerdict | None = None
    """The node in question."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a pod is, or is to go, and how that came about."""

    node: str
    how: str
    since: str = ""
    decision: Decision | None = None
    """The session that chose the node, where it is remembered."""
    together: int = 0
    """How many pods of the job it placed at once, this one included."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a job, its gang or one pod does not run, or where it does."""

    kind: Kind
    namespace: str
    name: str
    state: State
    sentence: str
    """The answer in short. While a gang waits, its PodGroup's condition ends with it."""
    obstacle: str = ""
    """What is in the way, in a word: admission, queue, room, too few pods and so on."""
    pod_group: str = ""
    queue: str = ""
    phase: str = ""
    """The PodGroup's."""
    members: Members | None = None
    compared: tuple[Comparison, ...] = ()
    nodes: int = 0
    """How many nodes were looked at for the pod that found none."""
    refused: tuple[Refused, ...] = ()
    hypernodes: tuple[Cramped, ...] = ()
    """The HyperNodes that were tried, where all of the gang must be in one."""
    holders: tuple[Holder, ...] = ()
    nack: Nack | None = None
    condition: str = ""
    """The text of the PodGroup's condition by the last session."""
    decision: Decision | None = None
    placement: Placement | None = None
    choice: Choice | None = None
    expected_start: str = ""
    """When it starts at the latest, where the plugin `reservation` keeps room for it."""


@dataclass(frozen=True, slots=True)
class Member:
    """One pod in the ledger."""

    name: str
    uid: str
    state: str
    node: str
    """Where it is, or is planned to go."""
    since: str
    nack: Nack | None = None


@dataclass(frozen=True, slots=True)
class Barrier:
    """The calls of a gang that wait in `bind`."""

    needed: int
    """How many members must have arrived before the first is bound."""
    here: int
    """How many have, those that are bound included."""
    parked: int
    """Open calls."""
    posting: int
    """Bindings on their way to the API server."""
    waiting_s: float = 0.0
    """For how long the oldest call has been open."""


@dataclass(frozen=True, slots=True)
class Gang:
    """A PodGroup, its members in the ledger, and its barrier."""

    namespace: str
    name: str
    queue: str
    phase: str
    minimum: int
    states: Mapping[str, int]
    """How many members are in each state."""
    barrier: Barrier
    members: tuple[Member, ...]
    more: int = 0
    """Members that are not listed."""


@dataclass(frozen=True, slots=True)
class Group:
    """A PodGroup in a list."""

    namespace: str
    name: str
    queue: str
    phase: str
    state: State
    minimum: int
    total: int
    waiting: int
    running: int
    priority: int
    obstacle: str
    """What is in the way, in a word; empty where nothing is."""
    sentence: str


@dataclass(frozen=True, slots=True)
class Groups:
    """PodGroups by namespace and name."""

    items: tuple[Group, ...]
    next_page: str = ""
    """What to give as `after` for those that follow; empty when these are the last."""


@dataclass(frozen=True, slots=True)
class QueueShare:
    """A queue and its share of the cluster; what it holds includes what those below it hold."""

    name: str
    parent: str
    state: str
    weight: int
    priority: int
    deserved: Amounts | None
    """None where no configured plugin shares the cluster out, and the queue names nothing."""
    allocated: Amounts
    requested: Amounts
    """What is allocated and what waiting pods ask for."""
    capability: Amounts | None
    guarantee: Amounts
    share: float | None
    """How much of what it deserves the queue holds, of the resource where that is most."""
    pod_groups: Mapping[str, int]
    """How many PodGroups are in each phase."""


@dataclass(frozen=True, slots=True)
class Queues:
    """Queues by name."""

    items: tuple[QueueShare, ...]
    next_page: str = ""
    """What to give as `after` for those that follow; empty when these are the last."""
