"""
What the API server itself refuses about Jobs, PodGroups and Queues, as CEL rules of the CRDs.

These are the rules of Volcano's webhooks that need nothing but the object: they hold even where
no webhook runs, and no outage can switch them off. The texts are Volcano's, so that whoever
looks for them in a refusal finds them. Rules that need other objects (queues, their tree), the
templates of pods, or the old object are not here.

Kubernetes bounds the cost that a rule could have, so lists that a rule walks have an upper
bound in the structs: 256 tasks, 32 policies of 16 events each.
"""

from __future__ import annotations

from pumice.core.api.batch import JobSpec, LifecyclePolicy, TaskSpec
from pumice.core.api.scheduling import NetworkTopology, Queue, QueueSpec
from pumice.core.api.schema import Rules, Schema

ACTIONS = (
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
)
"""Actions that a policy may name."""

EVENTS = (
    "*",
    "PodFailed",
    "PodEvicted",
    "PodPending",
    "Unknown",
    "TaskCompleted",
    "TaskFailed",
    "JobUpdated",
)
"""Events that a policy may name; the others are internal."""

JOB_PLUGINS = ("ssh", "env", "svc", "tensorflow", "mpi", "pytorch", "hcclrank", "ray")
"""Plugins that a Job may name."""


def _rule(rule: str, message: str, *, named: str = "") -> Schema:
    """Return one validation; `named` is CEL for a message that names the culprit."""
    expression = {"messageExpression": named} if named else {}
    return {"rule": rule, "message": message} | expression


def _cel(words: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


def _zero(field: str) -> str:
    """Return CEL for a number that counts as 0 where it is absent."""
    return f"(has({field}) ? {field} : 0)"


def _each_once(items: str, item: str, key: str, message: str) -> Schema:
    """
    Return the rule that no two items have the same text for a key, where they have it.

    A rule has no variables, and whatever it reads of the object is wrapped anew each time it is
    read: 256 tasks compared pairwise take the API server 4 s. So the messages that the keys would
    give are collected once, as the only element of a list that the rest ranges over, and compared
    there, which takes 40 ms.
    """
    messages = f"{items}.map({item}, has({item}.{key}) ? '{message} ' + {item}.{key} : '')"
    twice = "m != '' && x.indexOf(m) != x.lastIndexOf(m)"
    return _rule(
        f"!has({items}) || [{messages}].all(x, !x.exists(m, {twice}))",
        message,
        named=f"[{messages}].map(x, x.filter(m, {twice})[0])[0]",
    )


_EVENT_LISTS = (
    "self.policies.map(p, (has(p.events) ? p.events : []) + (has(p.event) ? [p.event] : []))"
)
_TWICE = "(x.exists(events, e in events) && !x.exists_one(events, e in events))"
_NAMES_EVENT = "(has(p.event) && p.event == e || has(p.events) && e in p.events)"
_NAMED_TWICE = (
    f"(self.policies.exists(p, {_NAMES_EVENT}) && !self.policies.exists_one(p, {_NAMES_EVENT}))"
)
_CODES = "self.policies.map(p, has(p.exitCode) ? p.exitCode : 0)"
_STARRED = "x.exists(events, '*' in events)"
_ONLY_STAR = "x.all(events, events.all(e, e == '*'))"

_POLICY_LIST = [
    _rule(
        f"!has(self.policies) || [{_EVENT_LISTS}].all(x, !{_cel(EVENTS)}.exists(e, {_TWICE}))",
        "duplicate event across different policy",
        named=f"'duplicate event ' + {_cel(EVENTS)}.filter(e, {_NAMED_TWICE})[0]"
        " + '  across different policy'",
    ),
    _rule(
        f"!has(self.policies) || [{_EVENT_LISTS}].all(x, !{_STARRED} || {_ONLY_STAR})",
        "if there's * here, no other policy should be here",
    ),
    _rule(
        f"!has(self.policies)"
        f" || [{_CODES}].all(x, x.all(c, c == 0 || x.indexOf(c) == x.lastIndexOf(c)))",
        "duplicate exitCode",
    ),
]

_HAS_EVENTS = "(has(self.event) || has(self.events) && size(self.events) > 0)"
_POLICY = [
    _rule(
        f"!(has(self.exitCode) && {_HAS_EVENTS})",
        "must not specify event and exitCode simultaneously",
    ),
    _rule(
        f"has(self.exitCode) || {_HAS_EVENTS}",
        "either event and exitCode should be specified",
    ),
    _rule(
        "!has(self.exitCode) || self.exitCode != 0",
        "0 is not a valid error code",
    ),
    _rule(
        f"(!has(self.event) || self.event in {_cel(EVENTS)})"
        f" && (!has(self.events) || self.events.all(e, e in {_cel(EVENTS)}))",
        f"invalid policy event, valid events are {', '.join(EVENTS)}",
    ),
    _rule(
        f"has(self.action) && self.action in {_cel(ACTIONS)}",
        f"invalid policy action, valid actions are {', '.join(ACTIONS)}",
    ),
]

_PARTITIONS = "self.partitionPolicy.totalPartitions * self.partitionPolicy.partitionSize"
_MIN_PARTITIONS = "self.partitionPolicy.minPartitions"
_TASK = [
    _rule(
        f"{_zero('self.minAvailable')} <= {_zero('self.replicas')}",
        "'minAvailable' is greater than 'replicas' in task",
        named="\"'minAvailable' is greater than 'replicas' in task: \""
        " + (has(self.name) ? self.name : '')",
    ),
    _rule(
        f"!has(self.partitionPolicy) || {_zero('self.replicas')} == {_PARTITIONS}",
        "'Replicas' are not equal to TotalPartitions*PartitionSize in task",
    ),
    _rule(
        f"!has(self.partitionPolicy) || !has(self.minAvailable) || {_zero(_MIN_PARTITIONS)} == 0"
        f" || {_MIN_PARTITIONS} * self.partitionPolicy.partitionSize == self.minAvailable",
        "'MinAvailable' is not equal to MinPartitions*PartitionSize in task",
    ),
    *_POLICY_LIST,
]

_JOB = [
    _rule(
        "has(self.tasks)",
        "No task specified in job spec",
    ),
    _rule(
        f"!has(self.tasks) || {_zero('self.minAvailable')}"
        f" <= self.tasks.map(t, {_zero('t.replicas')}).sum()",
        "job 'minAvailable' should not be greater than total replicas in tasks",
    ),
    _each_once("self.tasks", "t", "name", "duplicated task name"),
    _rule(
        f"!has(self.plugins) || self.plugins.all(p, p in {_cel(JOB_PLUGINS)})",
        "unable to find job plugin",
        named="'unable to find job plugin: '"
        f" + self.plugins.filter(p, !(p in {_cel(JOB_PLUGINS)}))[0]",
    ),
    _each_once("self.volumes", "v", "mountPath", "duplicated mountPath:"),
    _rule(
        "!has(self.volumes) || self.volumes.all(v, has(v.volumeClaim)"
        " || has(v.volumeClaimName) && v.volumeClaimName != '')",
        "either VolumeClaim or VolumeClaimName must be specified",
    ),
    *_POLICY_LIST,
]

_TOPOLOGY = [
    _rule(
        "!has(self.highestTierAllowed) || !has(self.highestTierName) || self.highestTierName == ''",
        "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology"
        " simultaneously",
    )
]


def _at_most(less: str, more: str, *, needed: bool) -> str:
    """Return CEL: each quantity of map `less` is at most that of `more`, where it is there."""
    missing = f"r in {more} && " if needed else f"!(r in {more}) || "
    compared = f"quantity(string({less}[r])).compareTo(quantity(string({more}[r]))) <= 0"
    return f"{less}.all(r, {missing}{compared})"


def _not_negative(quantities: str) -> str:
    return f"{quantities}.all(r, !quantity(string({quantities}[r])).isLessThan(quantity('0')))"


_GUARANTEE = "has(self.guarantee) && has(self.guarantee.resource)"
_QUEUE_SPEC = [
    _rule(
        "!has(self.deserved) || !has(self.capability) || "
        + _at_most("self.deserved", "self.capability", needed=False),
        "deserved must be <= capability for each resource that both name",
    ),
    _rule(
        f"!({_GUARANTEE}) || size(self.guarantee.resource) == 0 || has(self.deserved) && "
        + _at_most("self.guarantee.resource", "self.deserved", needed=True),
        "deserved must be >= guarantee for each resource that guarantee names",
    ),
    _rule(
        f"!has(self.capability) || {_not_negative('self.capability')}",
        "capability must be greater than or equal to 0",
    ),
    _rule(
        f"!has(self.deserved) || {_not_negative('self.deserved')}",
        "deserved must be greater than or equal to 0",
    ),
    _rule(
        f"!({_GUARANTEE}) || {_not_negative('self.guarantee.resource')}",
        "guarantee must be greater than or equal to 0",
    ),
]

_QUEUE = [
    _rule(
        "!has(self.spec) || !has(self.spec.parent) || self.spec.parent != self.metadata.name",
        "a queue cannot use itself as parent",
        named="'queue ' + self.metadata.name + ' cannot use itself as parent'",
    ),
]

RULES: Rules = {
    JobSpec: _JOB,
    TaskSpec: _TASK,
    LifecyclePolicy: _POLICY,
    NetworkTopology: _TOPOLOGY,
    Queue: _QUEUE,
    QueueSpec: _QUEUE_SPEC,
}
"""All rules, by the struct that they are about."""
