"""
The bodies of the scheduler extender's wire protocol (k8s.io/kube-scheduler/extender/v1).

The Go types have no JSON tags: names are in upper camel case, and absent pointers come as null.
A reply is always an object in full: `null` and `{}` decode as success on the other side. Nodes are
spoken of by name alone (`nodeCacheCapable: true`): a request with whole nodes is not understood.
"""

from __future__ import annotations

import msgspec

from pumice.core.api.core import Pod


class GoStruct(msgspec.Struct, rename="pascal", kw_only=True):
    """The base of all bodies."""


class BindingArgs(GoStruct, forbid_unknown_fields=False):
    """What kube-scheduler asks of `bind`."""

    pod_name: str
    pod_namespace: str
    pod_uid: str = msgspec.field(name="PodUID")
    node: str


class BindingResult(GoStruct):
    """The answer to `bind`: empty means that the API server has accepted the binding."""

    error: str


class Args(GoStruct):
    """What kube-scheduler asks of `filter` and `prioritize`: one pod and candidate nodes."""

    pod: Pod
    node_names: list[str]


class FilterResult(GoStruct):
    """Which candidates remain, and why the others do not."""

    node_names: list[str]
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""


class HostPriority(GoStruct):
    """The score of one node, 0 to 10."""

    host: str
    score: int


class MetaPod(GoStruct):
    """A victim."""

    uid: str = msgspec.field(name="UID")


class MetaVictims(GoStruct):
    """The victims on one node."""

    pods: list[MetaPod] | None = None
    num_pdb_violations: int = msgspec.field(default=0, name="NumPDBViolations")


class PreemptionArgs(GoStruct):
    """What kube-scheduler asks of `preempt`: where it could preempt, and whom."""

    pod: Pod
    node_name_to_meta_victims: dict[str, MetaVictims]


class PreemptionResult(GoStruct):
    """The nodes that remain; an empty map vetoes the preemption."""

    node_name_to_meta_victims: dict[str, MetaVictims]
