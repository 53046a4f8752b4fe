"""Queues, and what is checked against them."""

from __future__ import annotations

from typing import Final

from pumice.core import names
from pumice.core.admission.conditions import QUEUE_CHANGES, annotation
from pumice.core.admission.hierarchy import SAME_LENGTH
from pumice.core.admission.policy_mode.parts import (
    Mutating,
    NoneOf,
    Rule,
    Step,
    Target,
    Validating,
)
from pumice.core.admission.queues import PROTECTED, ROOT_RESOURCES

_PATH: Final = annotation(names.HIERARCHY)
_THEIR_PATH: Final = annotation(names.HIERARCHY, "params")
_WEIGHTS: Final = annotation(names.HIERARCHY_WEIGHTS)


def _at(key: str) -> str:
    """Return the path of an annotation in a JSON patch."""
    return f"/metadata/annotations/{key.replace('/', '~1')}"


# Defaults. The second annotation is given first: the first one tells whether they are wanted.
_ROOTLESS = f"{_PATH} != '' && {_WEIGHTS} != '' && !{_PATH}.startsWith('{names.ROOT_QUEUE}')"
DEFAULTS = Mutating(
    "pumice-queue-defaults",
    Target(names.SCHEDULING_API, "queues", ("CREATE",), namespaced=False),
    [
        Step("/spec", "Object.spec{}", "!has(object.spec)"),
        Step("/spec/reclaimable", "true", "!has(object.spec.reclaimable)"),
        Step("/spec/weight", "1", "object.spec.?weight.orValue(0) == 0"),
        Step(_at(names.HIERARCHY_WEIGHTS), f"'1/' + {_WEIGHTS}", _ROOTLESS),
        Step(_at(names.HIERARCHY), f"'{names.ROOT_QUEUE}/' + {_PATH}", _ROOTLESS),
    ],
)


# A queue by itself.

_NUMBER = "[+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?"
_MARKED = f"({_PATH} != '' || {_WEIGHTS} != '')"
_BODY = "requestBody.metadata.annotations: Invalid value: "


def _each_weight(name: str, wrong: str, text: str) -> NoneOf:
    parts = f"({_MARKED} ? {_WEIGHTS}.split('/') : [])"
    shown = f"'{_BODY}\"' + {_WEIGHTS} + '\": ' + w + ' in the ' + {_WEIGHTS} + ' {text}'"
    return NoneOf(name, f"{parts}.filter(w, {wrong}).map(w, {shown})", text)


def _same(field: str) -> str:
    now, before = (f"{of}.?spec.?{field}.orValue({{}})" for of in ("object", "oldObject"))
    return f"{now} == {before}"


ALONE = Validating(
    "pumice-queues",
    Target(
        names.SCHEDULING_API,
        "queues",
        ("CREATE", "UPDATE"),
        namespaced=False,
        conditions=(QUEUE_CHANGES,),
    ),
    [
        Rule(
            f"!{_MARKED} || size({_PATH}.split('/')) == size({_WEIGHTS}.split('/'))",
            SAME_LENGTH,
            f"'{_BODY}\"' + {_PATH} + '\": {SAME_LENGTH}'",
        ),
        _each_weight("noNumbers", f"!w.matches('^[-]?{_NUMBER}$')", "is invalid number"),
        _each_weight(
            "tooSmall",
            "w.startsWith('-') || w.matches('^[+]?[0.]+([eE].*)?$')",
            "must be larger than 0",
        ),
        Rule(
            f"request.operation != 'UPDATE' || request.name != '{names.ROOT_QUEUE}' || "
            + " && ".join(_same(f) for f in ("capability", "deserved", "guarantee.?resource")),
            ROOT_RESOURCES,
        ),
    ],
)
DELETION = Validating(
    "pumice-queue-deletions",
    Target(names.SCHEDULING_API, "queues", ("DELETE",), namespaced=False),
    [
        Rule(f"request.name != '{name}'", f"`{name}` queue can not be deleted")
        for name in sorted(PROTECTED)
    ],
)


# A queue beside the others, and things beside their queue.

_PARENT = "object.?spec.?parent.orValue('')"
_IS_PARENT = f"params.metadata.name == {_PARENT} && {_PARENT} != '{names.ROOT_QUEUE}'"
_IS_CHILD = (
    "params.?spec.?parent.orValue('') == object.metadata.name"
    f" && object.metadata.name != '{names.ROOT_QUEUE}'"
)
_OWN = "object.?spec.?capability.orValue({})"
_OTHER = "params.?spec.?capability.orValue({})"


def _capability(name: str, related: str, comparison: str, words: str) -> NoneOf:
    """Return the rule that no capability is beyond that of the queue above, or one below."""
    own, other = (f"quantity(string({of}[r]))" for of in (_OWN, _OTHER))
    wrong = f"{_OWN}.filter(r, r in {_OTHER} && {own}.{comparison}({other}))"
    shown = f"'queue ' + object.metadata.name + ' capability[' + r + ']=' + string({_OWN}[r])"
    texts = f"{wrong}.map(r, {shown} + ' {words} capability=' + string({_OTHER}[r]))"
    return NoneOf(name, f"({related} ? {texts} : [])", f"capability {words} capability")


TREE = Validating(
    "pumice-queue-tree",
    ALONE.target,
    [
        _capability("tooLarge", _IS_PARENT, "isGreaterThan", r"exceeds its ancestor\'s"),
        _capability("small", _IS_CHILD, "isLessThan", r"is smaller than its descendants\' max"),
        Rule(
            f"{_PATH} == '' || params.metadata.name == object.metadata.name"
            f" || !{_THEIR_PATH}.startsWith({_PATH} + '/')",
            "the hierarchy is not allowed to be in the sub path of another queue's",
            f"'{_BODY}\"' + {_PATH} + '\": ' + {_PATH}"
            f" + ' is not allowed to be in the sub path of ' + {_THEIR_PATH}"
            " + ' of queue ' + params.metadata.name",
        ),
    ],
    failure_policy="Ignore",
    for_each_queue=True,
)
CHILDREN = Validating(
    "pumice-queue-children",
    DELETION.target,
    [
        Rule(
            # Of the queue `root` there is a rule of its own.
            f"request.name == '{names.ROOT_QUEUE}'"
            " || params.?spec.?parent.orValue('') != request.name",
            "a queue can not be deleted because it has child queues",
            "'queue ' + request.name + ' can not be deleted because it has child queues: '"
            " + params.metadata.name",
        )
    ],
    failure_policy="Ignore",
    for_each_queue=True,
)

_QUEUE = "object.?spec.?queue.orValue('')"
# One that was made a moment ago has no state yet, and will be opened.
_IS_OPEN = "params.?status.?state.orValue('') in ['', 'Open']"


def _open(who: str, end: str) -> Rule:
    text = f"can only submit {who} to queue with state `Open`"
    return Rule(
        f"params.metadata.name != {_QUEUE} || {_IS_OPEN}",
        text,
        f"'{text}, queue `' + {_QUEUE} + '` status is `' + params.status.state + '`{end}'",
    )


JOBS = Validating(
    "pumice-job-queues",
    Target(names.BATCH_API, "jobs", ("CREATE",)),
    [
        _open("job", ""),
        Rule(
            f"params.?spec.?parent.orValue('') != {_QUEUE} || {_QUEUE} == '{names.ROOT_QUEUE}'",
            "can only submit job to leaf queue",
            f"'can only submit job to leaf queue, queue `' + {_QUEUE} + '` has child queues'",
        ),
    ],
    failure_policy="Ignore",
    for_each_queue=True,
)
GROUPS = Validating(
    "pumice-podgroup-queues",
    Target(names.SCHEDULING_API, "podgroups", ("CREATE",)),
    [_open("PodGroup", ".")],
    failure_policy="Ignore",
    for_each_queue=True,
)
