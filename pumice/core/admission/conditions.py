"""
Who need not be asked: conditions, in CEL, that the API server looks at before it asks us.

Webhooks and admission policies have the same ones. Changes that concern no rule of ours, metadata
above all, are let through, so that controllers and the garbage collector go on whatever an object
looks like.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pumice.core import names
from pumice.core.api import cel


@dataclass(frozen=True, slots=True)
class Condition:
    """A CEL expression that must hold, or we are not asked."""

    name: str
    expression: str


def annotation(key: str, of: str = "object") -> str:
    """Return CEL for the value of an annotation; empty where there is none."""
    return f"{of}.metadata.?annotations[?'{key}'].orValue('')"


_SAME_PATH: Final = " && ".join(
    f"{annotation(key)} == {annotation(key, 'oldObject')}"
    for key in (names.HIERARCHY, names.HIERARCHY_WEIGHTS)
)
HAS_SPEC: Final = Condition("has-specification", "has(object.spec)")
SPEC_CHANGES: Final = Condition(
    "specification-changes", "request.operation != 'UPDATE' || object.?spec != oldObject.?spec"
)
QUEUE_CHANGES: Final = Condition(
    "queue-changes",
    f"request.operation != 'UPDATE' || object.?spec != oldObject.?spec || !({_SAME_PATH})",
)
DEFAULT_QUEUE: Final = Condition(
    "default-queue", f"object.?spec.?queue.orValue('') in ['', '{names.DEFAULT_QUEUE}']"
)
NO_NODE_YET: Final = Condition(
    "no-node-yet", "!has(object.spec.nodeName) || object.spec.nodeName == ''"
)
HAS_BUDGET: Final = Condition(
    "has-budget",
    " || ".join(
        f"{annotation(key)} != ''" for key in (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)
    ),
)


def our_scheduler(scheduler_names: Iterable[str]) -> Condition:
    """Return the condition that a pod is one of ours."""
    return Condition(
        "our-scheduler",
        "has(object.spec.schedulerName)"
        f" && object.spec.schedulerName in {cel.words(scheduler_names)}",
    )
