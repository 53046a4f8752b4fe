"""
The webhooks there are: which requests they are asked about, and what happens while we are away.

Who is asked about what follows one rule: nobody else's object may depend on us.

* Jobs and queues are ours alone, and what was wrong when it was stored stays wrong for its life:
  while we are away they are refused, with the name of the webhook in the error (`Fail`).
  Changes that concern no rule of ours, metadata above all, are not asked about, so that
  controllers and the garbage collector go on.
* PodGroups are made for the pods of others too, by controllers: while we are away they pass
  (`Ignore`), and the scheduler copes with a group whose queue is not open.
* Pods pass while we are away (`Ignore`): one without its gate is planned when kube-scheduler asks
  for it. Those of other schedulers, and of the namespaces that the cluster and we run in, are
  not asked about at all.

Names and paths are Volcano's; the name stands in every refusal that users see.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pumice.core import names
from pumice.core.admission.pods import SPARED_NAMESPACES

Operation = Literal["CREATE", "UPDATE", "DELETE"]

BATCH: Final = ("batch.volcano.sh", "v1alpha1")
SCHEDULING: Final = ("scheduling.volcano.sh", "v1beta1")
CORE: Final = ("", "v1")


@dataclass(frozen=True, slots=True)
class Condition:
    """A CEL expression that must hold, or we are not asked."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class Webhook:
    """One path and the requests that come to it."""

    path: str
    name: str
    group: tuple[str, str]
    resource: str
    operations: tuple[Operation, ...]
    failure_policy: Literal["Fail", "Ignore"]
    conditions: tuple[Condition, ...] = ()
    timeout_s: int = 10
    namespaced: bool = True
    #: asked again when a later webhook changed the object
    again: bool = False

    @property
    def mutates(self) -> bool:
        """Whether it gives defaults; otherwise it judges."""
        return self.path.endswith("/mutate")


def _noted(key: str, of: str) -> str:
    return f"{of}.metadata.?annotations[?'{key}'].orValue('')"


_SAME_PATH: Final = " && ".join(
    f"{_noted(key, 'object')} == {_noted(key, 'oldObject')}"
    for key in (names.HIERARCHY, names.HIERARCHY_WEIGHTS)
)
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
        f"{_noted(key, 'object')} != ''"
        for key in (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)
    ),
)


def our_scheduler(scheduler_names: Collection[str]) -> Condition:
    """Return the condition that a pod is one of ours."""
    listed = ", ".join(f"'{name}'" for name in scheduler_names)
    return Condition(
        "our-scheduler",
        f"has(object.spec.schedulerName) && object.spec.schedulerName in [{listed}]",
    )


def webhooks(scheduler_names: Collection[str]) -> Sequence[Webhook]:
    """Return every webhook, for these schedulers."""
    ours = our_scheduler(scheduler_names)
    return (
        Webhook("/jobs/mutate", "mutatejob.volcano.sh", BATCH, "jobs", ("CREATE",), "Fail"),
        Webhook(
            "/jobs/validate",
            "validatejob.volcano.sh",
            BATCH,
            "jobs",
            ("CREATE", "UPDATE"),
            "Fail",
            (SPEC_CHANGES,),
        ),
        Webhook(
            "/queues/mutate",
            "mutatequeue.volcano.sh",
            SCHEDULING,
            "queues",
            ("CREATE",),
            "Fail",
            namespaced=False,
        ),
        Webhook(
            "/queues/validate",
            "validatequeue.volcano.sh",
            SCHEDULING,
            "queues",
            ("CREATE", "UPDATE", "DELETE"),
            "Fail",
            (QUEUE_CHANGES,),
            namespaced=False,
        ),
        Webhook(
            "/podgroups/mutate",
            "mutatepodgroup.volcano.sh",
            SCHEDULING,
            "podgroups",
            ("CREATE",),
            "Ignore",
            (DEFAULT_QUEUE,),
            timeout_s=5,
        ),
        Webhook(
            "/podgroups/validate",
            "validatepodgroup.volcano.sh",
            SCHEDULING,
            "podgroups",
            ("CREATE",),
            "Ignore",
            timeout_s=5,
        ),
        Webhook(
            "/pods/mutate",
            "mutatepod.volcano.sh",
            CORE,
            "pods",
            ("CREATE",),
            "Ignore",
            (ours, NO_NODE_YET),
            timeout_s=2,
            again=True,
        ),
        Webhook(
            "/pods/validate",
            "validatepod.volcano.sh",
            CORE,
            "pods",
            ("CREATE",),
            "Ignore",
            (ours, HAS_BUDGET),
            timeout_s=2,
        ),
    )


GATE_PATH: Final = "/pods/mutate"
"""The one that only API servers without our admission policy need."""


def spared(own_namespace: str) -> list[str]:
    """Return the namespaces that we are never asked about."""
    return sorted({*SPARED_NAMESPACES, own_namespace})
