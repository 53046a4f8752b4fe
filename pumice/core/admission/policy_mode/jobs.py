"""Jobs, and what Jobs are made of: JobTemplates and CronJobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from pumice.core import names
from pumice.core.admission import job_update
from pumice.core.admission.conditions import HAS_SPEC, SPEC_CHANGES
from pumice.core.admission.job_creation import BOTH_CLAIMS, NO_MASTER, ROOT
from pumice.core.admission.job_tasks import NO_ORDER
from pumice.core.admission.jobs import MAX_RETRY, NEED_SSH, NEED_SVC
from pumice.core.admission.policy_mode import order
from pumice.core.admission.policy_mode.parts import (
    EachTask,
    Mutating,
    NoneOf,
    Rule,
    Step,
    Target,
    Validating,
)
from pumice.core.admission.templates import RESTART_POLICIES
from pumice.core.api import cel
from pumice.core.api.batch import JobSpec, TaskSpec
from pumice.core.api.job_rules import NAME_LIMIT

_BOTH: Final = ("CREATE", "UPDATE")


# Defaults.

_NO_MINIMUM = "!has(t.minAvailable)"
_PARTITIONS = "t.?partitionPolicy.?minPartitions.orValue(0)"
_MINIMUM = (
    f"{_PARTITIONS} > 0 ? {_PARTITIONS} * t.partitionPolicy.partitionSize : t.?replicas.orValue(0)"
)
_ON_HOST = (
    "t.?template.?spec.?hostNetwork.orValue(false) && t.template.spec.?dnsPolicy.orValue('') == ''"
)


def _absent(field: str, zero: str, of: str = "object.spec") -> str:
    return f"{of}.?{field}.orValue({zero}) == {zero}"


def _needed(plugin: str, by: frozenset[str]) -> Step:
    """Return the step that adds a plugin for those that stand on it."""
    wanted = f"has(object.spec.plugins) && !('{plugin}' in object.spec.plugins)"
    some = f"object.spec.plugins.exists(p, p in {cel.words(sorted(by))})"
    return Step(f"/spec/plugins/{plugin}", "[]", f"{wanted} && {some}")


DEFAULTS = Mutating(
    "pumice-job-defaults",
    Target(names.BATCH_API, "jobs", ("CREATE",), conditions=(HAS_SPEC,)),
    [
        Step("/spec/queue", f"'{names.DEFAULT_QUEUE}'", _absent("queue", "''")),
        Step("/spec/schedulerName", f"'{names.DEFAULT_SCHEDULER}'", _absent("schedulerName", "''")),
        Step("/spec/maxRetry", str(MAX_RETRY), _absent("maxRetry", "0")),
        EachTask("/name", "'default' + string(i)", _absent("name", "''", "t")),
        EachTask("/template/spec/dnsPolicy", "'ClusterFirstWithHostNet'", _ON_HOST),
        EachTask("/minAvailable", _MINIMUM, _NO_MINIMUM),
        EachTask("/maxRetry", str(MAX_RETRY), _absent("maxRetry", "0", "t")),
        Step(
            "/spec/minAvailable",
            "object.spec.tasks.map(t, int(t.minAvailable)).sum()",
            f"has(object.spec.tasks) && {_absent('minAvailable', '0')}",
        ),
        _needed("svc", NEED_SVC),
        _needed("ssh", NEED_SSH),
    ],
)


# What a Job asks for.

_WAITS_FOR = "it.?dependsOn.?name.orValue([])"
_MPI = "has(variables.plugins.mpi) && variables.plugins.mpi != null ? variables.plugins.mpi : []"
_GIVEN_MASTERS = "variables.mpi.filter(a, a.matches('^--?master=')).map(a, a.split('=', 2)[1])"
_MASTER = "size(variables.masters) > 0 ? variables.masters[size(variables.masters) - 1] : 'master'"


def _spec_variables(spec: str, job_name: str) -> Mapping[str, str]:
    tasks = f"{spec}.?tasks.orValue([])"
    return {
        "spec": spec,
        "jobName": job_name,
        **order.variables(tasks, "it.?name.orValue('')", _WAITS_FOR),
        "plugins": "variables.spec.?plugins.orValue({})",
        "mpi": _MPI,
        "masters": _GIVEN_MASTERS,
    }


def _each_container(wrong: str, text: str) -> str:
    """
    Return CEL for the texts about containers that are wrong.

    `wrong` and `text` are CEL about a container `c`, `text` what comes after its place.
    """
    where = "'spec.task[' + string(i) + '].template.spec.' + k + '[' + string(j) + ']'"
    listed = f"t.?template.?spec[?k].orValue([]).transformList(j, c, {wrong}, {where} + {text})"
    kinds = f"['containers', 'initContainers'].map(k, {listed})"
    return f"variables.items.transformList(i, t, {kinds}).flatten(2)"


def _each_task(wrong: str, text: str) -> str:
    """Return CEL for the texts about tasks `t`, at `i`, that are wrong."""
    return f"variables.items.transformList(i, t, {wrong}, {text})"


def _amount(of: str) -> str:
    return f"quantity(string(c.resources.{of}[r]))"


_OVER = "c.?resources.?requests.orValue({}).exists(r, r in c.?resources.?limits.orValue({}) && "
_OVER += f"{_amount('requests')}.isGreaterThan({_amount('limits')}))"
_UNKNOWN_MOUNT = (
    "c.?volumeMounts.orValue([]).exists(m,"
    " !t.template.spec.?volumes.orValue([]).exists(v, v.?name == m.?name))"
)
_CPU = "c.?resources.?requests.orValue(c.?resources.?limits.orValue({}))"
_WHOLE_CPU = (
    f"'cpu' in {_CPU} && quantity(string({_CPU}.cpu)).isInteger()"
    f" && sign(quantity(string({_CPU}.cpu))) > 0"
)
_PINNED = "t.?topologyPolicy.orValue('') in ['', 'none']"
_RESTARTS = ", ".join(f'"{policy}"' for policy in RESTART_POLICIES)
_RESTART = "t.?template.?spec.?restartPolicy.orValue('')"
_POD_NAME = "variables.jobName + '-' + t.?name.orValue('') + '-' + string(i)"
_CLAIM = "v.?volumeClaimName.orValue('')"
_VOLUMES = "variables.spec.?volumes.orValue([])"
_SUBDOMAIN = "[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*"

_SPEC_RULES: Sequence[Rule | NoneOf] = (
    Rule(
        "!('mpi' in variables.plugins)"
        " || variables.mpi.exists(a, a in ['--master', '-master'])"
        f" || ({_MASTER}) in variables.names",
        NO_MASTER,
    ),
    NoneOf(
        "podNames",
        _each_task(
            f"size({_POD_NAME}) > {NAME_LIMIT}",
            f"'create pod with name ' + {_POD_NAME} + ' validate failed [name part must be no"
            f" more than {NAME_LIMIT} characters]'",
        ),
        "create pod validate failed",
    ),
    NoneOf(
        "noName", _each_container("c.?name.orValue('') == ''", "'.name: Required value'"), "no name"
    ),
    NoneOf(
        "noImage",
        _each_container("c.?image.orValue('').trim() == ''", "'.image: Required value'"),
        "no image",
    ),
    NoneOf(
        "overLimit",
        _each_container(
            _OVER, "'.resources.requests: Invalid value: must be less than or equal to the limit'"
        ),
        "requests beyond limits",
    ),
    NoneOf(
        "unmounted",
        _each_container(_UNKNOWN_MOUNT, "'.volumeMounts: Not found: no volume of that name'"),
        "mounts of no volume",
    ),
    NoneOf(
        "restarts",
        _each_task(
            f"{_RESTART} != '' && !({_RESTART} in {cel.words(RESTART_POLICIES)})",
            "'spec.task[' + string(i) + '].template.spec.restartPolicy: Unsupported value: \"' + "
            f"{_RESTART} + '\": supported values: {_RESTARTS}'",
        ),
        "unsupported restartPolicy",
    ),
    NoneOf(
        "shared",
        f"variables.items.transformList(i, t, !({_PINNED}),"
        " (t.?template.?spec.?containers.orValue([])"
        " + t.?template.?spec.?initContainers.orValue([]))"
        f'.transformList(j, c, !({_WHOLE_CPU}), "the cpu request isn\'t an integer in spec.task["'
        " + string(i) + '] container[' + string(j) + '].')).flatten()",
        "the cpu request isn't an integer",
    ),
    Rule(
        f"{_VOLUMES}.all(v, {_CLAIM} == '' || !has(v.volumeClaim))",
        BOTH_CLAIMS,
    ),
    NoneOf(
        "claims",
        f"{_VOLUMES}.filter(v, {_CLAIM} != '' && !{_CLAIM}.matches('^{_SUBDOMAIN}$'))"
        f".map(v, 'invalid VolumeClaimName ' + {_CLAIM})",
        "invalid VolumeClaimName",
    ),
    Rule(
        f"size(variables.items) > {order.MOST} || !variables.items.exists(it, has(it.dependsOn))"
        f" || variables.items.all(it, {_WAITS_FOR}.all(other, other in variables.names)"
        f" && size({_WAITS_FOR}) == size({_WAITS_FOR}.distinct())) && ({order.has_order()})",
        NO_ORDER,
    ),
)

CREATION = Validating(
    "pumice-jobs",
    Target(names.BATCH_API, "jobs", ("CREATE",)),
    [Rule(f"object.spec.?queue.orValue('') != '{names.ROOT_QUEUE}'", ROOT), *_SPEC_RULES],
    _spec_variables("object.spec", "object.metadata.name"),
)
TEMPLATES = Validating(
    "pumice-jobtemplates",
    Target(names.FLOW_API, "jobtemplates", _BOTH, conditions=(SPEC_CHANGES,)),
    _SPEC_RULES,
    _spec_variables("object.spec", "object.metadata.name"),
)
CRON_JOBS = Validating(
    "pumice-cronjobs",
    Target(names.BATCH_API, "cronjobs", _BOTH, conditions=(SPEC_CHANGES,)),
    _SPEC_RULES,
    _spec_variables("object.spec.jobTemplate.spec", "object.metadata.name + '-00000000'"),
)


# What may change.


def _empty(field: msgspec.inspect.Field) -> str:
    """Return CEL for what a field that is absent is the same as."""
    kinds = field.type.types if isinstance(field.type, msgspec.inspect.UnionType) else (field.type,)
    found = kinds[0]
    while isinstance(found, msgspec.inspect.Metadata):
        found = found.type
    match found:
        case msgspec.inspect.ListType():
            return "[]"
        case msgspec.inspect.DictType() | msgspec.inspect.StructType():
            return "{}"
        case msgspec.inspect.IntType():
            return "0"
    return "''"


def _values(kind: type[msgspec.Struct], of: str, free: set[str]) -> list[str]:
    """Return CEL for the values of all fields that may not change."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)  # noqa: S101 - a struct's info is one
    fixed = [field for field in info.fields if field.name not in free]
    return [f"dyn({of}.?{f.encode_name}.orValue({_empty(f)}))" for f in fixed]


def _same(of: str) -> str:
    """Return CEL for a list that must not change: fields, tasks and volumes."""
    spec = f"{of}.spec"
    apart = {"min_available", "priority_class_name", "tasks", "volumes", "plugins"}
    fields = _values(JobSpec, spec, apart)
    tasks = _values(TaskSpec, "t", {"replicas", "min_available"})
    volume = f"dyn(has(v.volumeClaim) ? '' : {_CLAIM})"
    return (
        f"[{', '.join(fields)},"
        f" dyn({spec}.?tasks.orValue([]).map(t, [{', '.join(tasks)}])),"
        f" dyn({spec}.?volumes.orValue([])"
        f".map(v, [dyn(v.mountPath), dyn(v.?volumeClaim.orValue({{}})), {volume}]))]"
    )


_PLUGINS = "object.spec.?plugins.orValue({})"
_OLD_PLUGINS = "oldObject.spec.?plugins.orValue({})"


def _arguments(plugins: str) -> str:
    return f"({plugins}[p] == null ? [] : {plugins}[p])"


UPDATE = Validating(
    "pumice-job-updates",
    Target(names.BATCH_API, "jobs", ("UPDATE",), conditions=(SPEC_CHANGES,)),
    [
        Rule(
            "size(object.spec.?tasks.orValue([])) == size(oldObject.spec.?tasks.orValue([]))",
            job_update.TASKS,
        ),
        Rule(
            "variables.now == variables.before"
            f" && size({_PLUGINS}) == size({_OLD_PLUGINS})"
            f" && {_PLUGINS}.all(p, p in {_OLD_PLUGINS}"
            f" && {_arguments(_PLUGINS)} == {_arguments(_OLD_PLUGINS)})",
            job_update.FIXED,
        ),
    ],
    {"now": _same("object"), "before": _same("oldObject")},
)
