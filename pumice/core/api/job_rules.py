"""
What the API server refuses about the specification of a Job, wherever one stands.

A JobTemplate has one, and a CronJob; what is wrong with it is told when it is written there, not
when Jobs are made of it.

Kubernetes bounds the cost that a rule could have, so lists that a rule walks have an upper
bound in the structs: 256 tasks, 32 policies of 16 events each.
"""

from __future__ import annotations

from pumice.core.api import cel
from pumice.core.api.batch import Job, JobSpec, LifecyclePolicy, TaskSpec
from pumice.core.api.flow import JobTemplate
from pumice.core.api.scheduling import NetworkTopology
from pumice.core.api.schema import Rules

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

NO_TASKS = "No task specified in job spec"

NAME_LIMIT = 63
"""How long a Job's name may be: it is the value of labels, and the beginning of pods' names."""


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
    cel.rule(
        f"!has(self.policies) || [{_EVENT_LISTS}].all(x, !{cel.words(EVENTS)}.exists(e, {_TWICE}))",
        "duplicate event across different policy",
        named=f"'duplicate event ' + {cel.words(EVENTS)}.filter(e, {_NAMED_TWICE})[0]"
        " + '  across different policy'",
    ),
    cel.rule(
        f"!has(self.policies) || [{_EVENT_LISTS}].all(x, !{_STARRED} || {_ONLY_STAR})",
        "if there's * here, no other policy should be here",
    ),
    cel.rule(
        f"!has(self.policies)"
        f" || [{_CODES}].all(x, x.all(c, c == 0 || x.indexOf(c) == x.lastIndexOf(c)))",
        "duplicate exitCode",
    ),
]

_HAS_EVENTS = "(has(self.event) || has(self.events) && size(self.events) > 0)"
_POLICY = [
    cel.rule(
        f"!(has(self.exitCode) && {_HAS_EVENTS})",
        "must not specify event and exitCode simultaneously",
    ),
    cel.rule(
        f"has(self.exitCode) || {_HAS_EVENTS}",
        "either event and exitCode should be specified",
    ),
    cel.rule(
        "!has(self.exitCode) || self.exitCode != 0",
        "0 is not a valid error code",
    ),
    cel.rule(
        f"(!has(self.event) || self.event in {cel.words(EVENTS)})"
        f" && (!has(self.events) || self.events.all(e, e in {cel.words(EVENTS)}))",
        f"invalid policy event, valid events are {', '.join(EVENTS)}",
    ),
    cel.rule(
        f"has(self.action) && self.action in {cel.words(ACTIONS)}",
        f"invalid policy action, valid actions are {', '.join(ACTIONS)}",
    ),
]

_PARTITIONS = "self.partitionPolicy.totalPartitions * self.partitionPolicy.partitionSize"
_MIN_PARTITIONS = "self.partitionPolicy.minPartitions"
_TASK = [
    cel.rule(
        f"{cel.zero('self.minAvailable')} <= {cel.zero('self.replicas')}",
        "'minAvailable' is greater than 'replicas' in task",
        named="\"'minAvailable' is greater than 'replicas' in task: \""
        " + (has(self.name) ? self.name : '')",
    ),
    cel.rule(
        f"!has(self.partitionPolicy) || {cel.zero('self.replicas')} == {_PARTITIONS}",
        "'Replicas' are not equal to TotalPartitions*PartitionSize in task",
    ),
    cel.rule(
        f"!has(self.partitionPolicy) || !has(self.minAvailable) || {cel.zero(_MIN_PARTITIONS)} == 0"
        f" || {_MIN_PARTITIONS} * self.partitionPolicy.partitionSize == self.minAvailable",
        "'MinAvailable' is not equal to MinPartitions*PartitionSize in task",
    ),
    *_POLICY_LIST,
]

_SPEC = [
    cel.rule("has(self.tasks)", NO_TASKS),
    cel.rule(
        f"!has(self.tasks) || {cel.zero('self.minAvailable')}"
        f" <= self.tasks.map(t, {cel.zero('t.replicas')}).sum()",
        "job 'minAvailable' should not be greater than total replicas in tasks",
    ),
    cel.each_once("self.tasks", "t", "name", "duplicated task name"),
    cel.rule(
        f"!has(self.plugins) || self.plugins.all(p, p in {cel.words(JOB_PLUGINS)})",
        "unable to find job plugin",
        named="'unable to find job plugin: '"
        f" + self.plugins.filter(p, !(p in {cel.words(JOB_PLUGINS)}))[0]",
    ),
    cel.each_once("self.volumes", "v", "mountPath", "duplicated mountPath:"),
    cel.rule(
        "!has(self.volumes) || self.volumes.all(v, has(v.volumeClaim)"
        " || has(v.volumeClaimName) && v.volumeClaimName != '')",
        "either VolumeClaim or VolumeClaimName must be specified",
    ),
    *_POLICY_LIST,
]

_JOB = [
    cel.rule("has(self.spec)", NO_TASKS),
    cel.rule(
        f"size(self.metadata.name) <= {NAME_LIMIT}",
        "create job validate failed",
        named="'create job with name ' + self.metadata.name + ' validate failed [name part"
        f" must be no more than {NAME_LIMIT} characters]'",
    ),
]

_TOPOLOGY = [
    cel.rule(
        "!has(self.highestTierAllowed) || !has(self.highestTierName) || self.highestTierName == ''",
        "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology"
        " simultaneously",
    )
]

_TEMPLATE = [cel.rule("has(self.spec)", NO_TASKS)]

JOB_RULES: Rules = {
    Job: _JOB,
    JobTemplate: _TEMPLATE,
    JobSpec: _SPEC,
    TaskSpec: _TASK,
    LifecyclePolicy: _POLICY,
    NetworkTopology: _TOPOLOGY,
}
"""The rules by the struct that they are about."""
