"""
The webhooks there are: which requests they are asked about, and what happens while we are away.

Who is asked about what follows one rule: nobody else's object may depend on us.

* Jobs, what Jobs are made of, and queues are ours alone, and what was wrong when it was stored
  stays wrong for its life: while we are away they are refused, with the name of the webhook in
  the error (`Fail`). Changes that concern no rule of ours, metadata above all, are not asked
  about, so that controllers and the garbage collector go on.
* What is wrong with a HyperNode its CRD says, too: while we are away they pass (`Ignore`).
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

from pumice.core.admission.conditions import (
    DEFAULT_QUEUE,
    HAS_BUDGET,
    NO_NODE_YET,
    QUEUE_CHANGES,
    SPEC_CHANGES,
    Condition,
    our_scheduler,
)
from pumice.core.admission.pods import SPARED_NAMESPACES
from pumice.core.admission.resource_groups import ResourceGroup, membership

Operation = Literal["CREATE", "UPDATE", "DELETE"]

BATCH: Final = ("batch.volcano.sh", "v1alpha1")
SCHEDULING: Final = ("scheduling.volcano.sh", "v1beta1")
FLOW: Final = ("flow.volcano.sh", "v1alpha1")
TOPOLOGY: Final = ("topology.volcano.sh", "v1alpha1")
CORE: Final = ("", "v1")


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
    #: does what our admission policy does, so that it is not needed where that is
    spare: bool = False

    @property
    def mutates(self) -> bool:
        """Whether it gives defaults; otherwise it judges."""
        return self.path.endswith("/mutate")


def webhooks(
    scheduler_names: Collection[str],
    groups: Sequence[ResourceGroup] = (),
    *,
    queue_gate: bool = False,
) -> Sequence[Webhook]:
    """
    Return every webhook, for these schedulers and resource groups.

    With `queue_gate` pods that ask for Volcano's queue gate get it.
    """
    ours = changed = our_scheduler(scheduler_names)
    if groups:
        either = f"{ours.expression} || {membership(groups)}"
        changed = Condition("our-scheduler-or-in-a-resource-group", either)
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
            "/cronjobs/validate",
            "validatecronjob.volcano.sh",
            BATCH,
            "cronjobs",
            ("CREATE", "UPDATE"),
            "Fail",
            (SPEC_CHANGES,),
        ),
        Webhook(
            "/jobflows/validate",
            "validatejobflow.volcano.sh",
            FLOW,
            "jobflows",
            ("CREATE", "UPDATE"),
            "Fail",
            (SPEC_CHANGES,),
        ),
        Webhook(
            "/jobtemplates/validate",
            "validatejobtemplate.volcano.sh",
            FLOW,
            "jobtemplates",
            ("CREATE", "UPDATE"),
            "Fail",
            (SPEC_CHANGES,),
        ),
        Webhook(
            "/hypernodes/validate",
            "validatehypernodes.volcano.sh",
            TOPOLOGY,
            "hypernodes",
            ("CREATE", "UPDATE"),
            "Ignore",
            (SPEC_CHANGES,),
            timeout_s=5,
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
            (changed, NO_NODE_YET),
            timeout_s=2,
            again=True,
            spare=not groups and not queue_gate,
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


NAMES: Final = frozenset(webhook.name for webhook in webhooks(()))
"""What is ours in the objects that register us."""


def spared(own_namespace: str) -> list[str]:
    """Return the namespaces that we are never asked about."""
    return sorted({*SPARED_NAMESPACES, own_namespace})
