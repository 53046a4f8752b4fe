"""PodGroups, pods and JobFlows."""

from __future__ import annotations

from pumice.core import names
from pumice.core.admission.conditions import (
    DEFAULT_QUEUE,
    HAS_BUDGET,
    SPEC_CHANGES,
    annotation,
    our_scheduler,
)
from pumice.core.admission.jobflows import NO_ORDER, NO_VERTEX
from pumice.core.admission.pods import BUDGETS, NOT_PERCENT, NOT_POSITIVE
from pumice.core.admission.policy_mode import order
from pumice.core.admission.policy_mode.parts import (
    Mutating,
    NoneOf,
    Rule,
    Step,
    Target,
    Validating,
)
from pumice.core.api import cel

_NAMESPACES_QUEUE = annotation(names.QUEUE_NAME, "namespaceObject")

GROUP_DEFAULTS = Mutating(
    "pumice-podgroup-defaults",
    Target(names.SCHEDULING_API, "podgroups", ("CREATE",), conditions=(DEFAULT_QUEUE,)),
    [
        Step("/spec", "Object.spec{}", "!has(object.spec)"),
        Step("/spec/queue", _NAMESPACES_QUEUE, f"{_NAMESPACES_QUEUE} != ''"),
    ],
)

_VALUE = "object.metadata.annotations[k]"
_PERCENT = f"{_VALUE}.replace('%', '')"
_WHOLE = "'^[-+]?[0-9]+$'"


def _each_budget(name: str, wrong: str, text: str) -> NoneOf:
    """Return the rule about each annotation `k`; `text` is CEL for what is wrong with it."""
    return NoneOf(name, f"variables.given.filter(k, {wrong}).map(k, {text})", "invalid value")


def _invalid(why: str) -> str:
    return f"'invalid value <\"' + {_VALUE} + '\"> for ' + k + ', {why}'"


PODS = Validating(
    "pumice-pods",
    Target(
        "v1",
        "pods",
        ("CREATE",),
        conditions=(our_scheduler((names.DEFAULT_SCHEDULER,)), HAS_BUDGET),
    ),
    [
        _each_budget(
            "notPositive",
            f"{_VALUE}.matches({_WHOLE}) && !{_VALUE}.matches('^[+]?0*[1-9]')",
            _invalid(NOT_POSITIVE),
        ),
        _each_budget(
            "noNumber",
            f"!{_VALUE}.matches({_WHOLE}) && !{_PERCENT}.matches({_WHOLE})",
            f"'invalid value strconv.Atoi: parsing \"' + {_PERCENT} + '\": invalid syntax for '"
            " + k",
        ),
        _each_budget(
            "notPercent",
            f"!{_VALUE}.matches({_WHOLE}) && {_PERCENT}.matches({_WHOLE})"
            f" && !{_PERCENT}.matches('^[+]?0*[1-9][0-9]?$')",
            _invalid(NOT_PERCENT),
        ),
        Rule(
            "size(variables.given) < 2",
            f"not allow configure multiple annotations <[{' '.join(BUDGETS)}]> at same time",
        ),
    ],
    {"given": f"{cel.words(BUDGETS)}.filter(k, k in object.metadata.?annotations.orValue({{}}))"},
    failure_policy="Ignore",
)

_TARGETS = "it.?dependsOn.?targets.orValue([])"

FLOWS = Validating(
    "pumice-jobflows",
    Target(names.FLOW_API, "jobflows", ("CREATE", "UPDATE"), conditions=(SPEC_CHANGES,)),
    [
        NoneOf(
            "unknown",
            f"size(variables.items) > {order.MOST} ? [] : variables.items.map(it, {_TARGETS}"
            f".filter(other, !(other in variables.names)).map(other, '{NO_VERTEX}: ' + other))"
            ".flatten()",
            NO_VERTEX,
        ),
        Rule(order.has_order(), NO_ORDER),
    ],
    order.variables("object.?spec.?flows.orValue([])", "it.name", _TARGETS),
)
