"""
The short form of a case file: what a reader needs, the rest filled in.

    scenario: ...                         a file without `schemaVersion`; its name is the case's id
    config: {actions: ..., plugins: [[priority, {name: gang, enablePreemptable: false}], [drf]]}
    nodes: {n1 n2: {cpu: 4}}              names, and what is allocatable; `labels`, `annotations`
    queues: {lab: {weight: 3}}            its spec
    priorities: {high: 10}                value, or value and preemptionPolicy
    groups: {team-a/pair: {minMember: 2}}
    pods: {team-a/p0 team-a/p1: {group: pair, requests: {cpu: 1}}}
    jobs: {team-a/ring: {minAvailable: 4, tasks: {w: {replicas: 4, requests: {cpu: 1}}}}}
    commands: {team-a/stop: AbortJob job/ring}
    others: [...]                         whole objects of further kinds
    refused: [job/team-a/bad]             what is there to be refused
    steps:
    - apply: [job/team-a/ring]            the operation with its main key, then the others; or `op`
    - settle: 60
    - snapshot: running
    expect:
      running:                            the moment at which all of these are to hold
      - {boundCount: {job: team-a/ring}, equals: 4}

A pod asks by `requests` and `limits`, has `labels`, belongs to a `group`; whatever else is said of
it belongs in its spec. Pods are of scheduler `volcano` and are not restarted; nodes have 16Gi and
110 pods. Without `config` the answer does not depend on the scheduler's configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pumice.core import names
from pumice.local.api import Object
from tests.cases.errors import MalformedError

Tree = dict[str, Any]

QUIET_S = 4
ROOM: Tree = {"memory": "16Gi", "pods": "110"}
IMAGE = "registry.k8s.io/pause:3.10"
TASK_KEYS = (
    "replicas",
    "minAvailable",
    "dependsOn",
    "partitionPolicy",
    "topologyPolicy",
    "policies",
)
TARGETS = {"job": (names.BATCH_API, "Job"), "queue": (names.SCHEDULING_API, "Queue")}

OPERATIONS = {
    "apply": "refs",
    "applyMany": "template",
    "delete": "refs",
    "setPodPhase": "select",
    "kubelet": "select",
    "settle": "timeoutSeconds",
    "snapshot": "as",
    "watch": "as",
    "stop": "component",
    "start": "component",
    "restart": "component",
}
"""The key that an operation's name stands for; `ref` elsewhere."""

CHECKS = {
    "admission": "step",
    "absent": "ref",
    "boundCountOf": "jobs",
    "boundTotal": "selects",
    "exactlyOneFullyBound": "jobs",
    "exists": "ref",
    "field": "ref",
    "jobPhase": "job",
    "jobPhaseOf": "jobs",
    "jobsInPhase": "jobs",
    "nodeRequestedAtMost": "node",
    "podGroupCondition": "podGroup",
    "podGroupPhase": "podGroup",
    "queueState": "queue",
    "restartCount": "component",
}
"""The key that a check's name stands for; `select` elsewhere."""


def is_short(tree: object) -> bool:
    """Whether a file's content is in the short form."""
    return isinstance(tree, dict) and "schemaVersion" not in tree and "scenario" in tree


def expanded(tree: Tree, name: str) -> Tree:
    """Return the case in its long form; raise MalformedError where the short one is none."""
    try:
        return _expanded(tree, name)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise MalformedError(f"not the short form of a case: {error!r}") from error


def _expanded(tree: Tree, name: str) -> Tree:
    tree = dict(tree)
    case = {
        "schemaVersion": 1,
        "id": name,
        "config": _config(tree.pop("config", None)),
        "nodes": list(_each(tree.pop("nodes", {}), _node)),
        "queues": list(_each(tree.pop("queues", {}), _queue)),
        "priorityClasses": list(_each(tree.pop("priorities", {}), _priority)),
        "podGroups": list(_each(tree.pop("groups", {}), _group)),
        "pods": list(_each(tree.pop("pods", {}), _pod)),
        "jobs": list(_each(tree.pop("jobs", {}), _job)),
        "extras": [*_each(tree.pop("commands", {}), _command), *tree.pop("others", ())],
        "intentionallyInvalid": tree.pop("refused", []),
        "steps": [_step(step) for step in tree.pop("steps")],
        "expect": [
            {**_main("check", check, CHECKS, "select"), "at": moment}
            for moment, checks in tree.pop("expect").items()
            for check in checks
        ],
    }
    return case | tree


def _config(config: Tree | None) -> Tree:
    """Return a configuration whose plugins are named or given with their options."""
    if config is None:
        return {"actions": "", "tiers": [], "matters": "no"}
    tiers = [
        {"plugins": [{"name": p} if isinstance(p, str) else p for p in tier]}
        for tier in config["plugins"]
    ]
    return {"actions": config["actions"], "tiers": tiers, "matters": "yes"}


def _main(tag: str, given: Tree, keys: Mapping[str, str], otherwise: str) -> Tree:
    """Return a step or check whose first key is its name, with its main key as the value."""
    (name, value), *rest = given.items()
    return {tag: name, keys.get(name, otherwise): value, **dict(rest)}


def _step(step: Tree) -> Tree:
    found = step if "op" in step else _main("op", step, OPERATIONS, "ref")
    return {"quietSeconds": QUIET_S, **found} if found["op"] == "settle" else found


def _each(given: Mapping[str, Any], make: Callable[[Object, Any], Object]) -> Iterator[Object]:
    """Yield an object for each of the names in a key, `namespace/name` or a name alone."""
    for key, fields in given.items():
        for name in key.split():
            namespace, _, last = name.rpartition("/")
            meta = {"name": last, "namespace": namespace} if namespace else {"name": last}
            yield make(meta, fields)


def _node(meta: Object, fields: Tree) -> Object:
    described = {key: fields[key] for key in ("labels", "annotations") if key in fields}
    room = ROOM | {key: str(value) for key, value in fields.items() if key not in described}
    labels = {"kubernetes.io/hostname": meta["name"], **described.pop("labels", {})}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta | {"labels": labels} | described,
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def _queue(meta: Object, spec: Tree) -> Object:
    whole = {"weight": 1, "reclaimable": True, **spec}
    return {"apiVersion": names.SCHEDULING_API, "kind": "Queue", "metadata": meta, "spec": whole}


def _priority(meta: Object, given: int | Tree) -> Object:
    fields = given if isinstance(given, dict) else {"value": given}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": meta,
        **fields,
    }


def _group(meta: Object, spec: Tree) -> Object:
    return {"apiVersion": names.SCHEDULING_API, "kind": "PodGroup", "metadata": meta, "spec": spec}


def _pod(meta: Object, fields: Tree) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", **_described(meta, fields)}


def _job(meta: Object, fields: Tree) -> Object:
    tasks = []
    for name, task in _pairs(fields["tasks"]):
        own = {key: task[key] for key in TASK_KEYS if key in task}
        of_pod = {key: value for key, value in task.items() if key not in own}
        template = _described({}, {"schedulerName": None, **of_pod})
        tasks.append({"name": name, **own, "template": template})
    spec = {"schedulerName": "volcano", **fields, "tasks": tasks}
    return {"apiVersion": names.BATCH_API, "kind": "Job", "metadata": meta, "spec": spec}


def _pairs(tasks: Tree | list[Tree]) -> Iterator[tuple[str, Tree]]:
    """Yield tasks with their names; a list of mappings may give one name twice."""
    for mapping in tasks if isinstance(tasks, list) else [tasks]:
        yield from mapping.items()


def _described(meta: Object, fields: Tree) -> Object:
    """Return the metadata and spec of a pod."""
    spec = {"schedulerName": "volcano", "restartPolicy": "Never", **fields}
    amounts = {key: spec.pop(key) for key in ("requests", "limits") if key in spec}
    resources = {
        key: {name: str(amount) for name, amount in of.items()} for key, of in amounts.items()
    }
    meta = dict(meta)
    if "labels" in spec:
        meta["labels"] = spec.pop("labels")
    if "group" in spec:
        meta["annotations"] = {names.GROUP_NAME: spec.pop("group")}
    container = {"name": "main", "image": IMAGE, "resources": resources}
    kept = {key: value for key, value in spec.items() if value is not None}
    return {"metadata": meta, "spec": {**kept, "containers": [container]}}


def _command(meta: Object, said: str) -> Object:
    """Return a Command from `AbortJob job/name`; its target's uid is put in when it is sent."""
    action, _, target = said.partition(" ")
    kind, _, name = target.partition("/")
    version, kind = TARGETS[kind]
    return {
        "apiVersion": names.BUS_API,
        "kind": "Command",
        "metadata": meta,
        "action": action,
        "target": {"apiVersion": version, "kind": kind, "name": name, "uid": ""},
    }
