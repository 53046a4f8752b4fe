"""
The three ways to let a held pod go, as patches; and how to see from a pod which was taken.

A pin is required node affinity on the field `metadata.name`. kube-scheduler then evaluates that
one node and skips scoring. It can be added only while the pod is gated, in the same patch that
removes the gate, and it stays for the pod's life: a new plan needs a new pod.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pumice.core import names
from pumice.core.api.core import NodeSelectorTerm, Pod
from pumice.core.ids import JobKey, PodUid
from pumice.core.ledger import NO_VERDICT, Arm, PodView, Verdict

FINISHED = frozenset({"Succeeded", "Failed"})
Patch = dict[str, Any]


def arm_of(pod: Pod, min_member: int, *, bound: bool = False, claims: bool = False) -> Arm:
    """
    Choose how to release a pod; `bound` tells that its group must stay within HyperNodes.

    Pods of our Job controller are pinned, unless they have `claims` that kube-scheduler settles:
    those are nominated. kube-scheduler then tries the planned node first, with the room there
    hidden from others, and every other node where the claims cannot be had on that one. Were the
    gate alone removed, it would choose among all nodes by rules of its own, and see none of the
    room that is promised to pods which are still held. The price: that it is at work on the claims
    is not seen while it agrees with us, since it writes a nomination only where there is another.

    Pods of other owners are never pinned, as nobody would make a new pod where a new plan is
    needed: a gang is nominated, as are pods that may not go everywhere, and where one pod is
    enough the gate alone is removed.
    """
    if is_replaceable(pod):
        return Arm.NOMINATE if claims else Arm.PIN
    return Arm.NOMINATE if min_member > 1 or bound else Arm.UNGATE


def is_replaceable(pod: Pod) -> bool:
    """Tell whether our Job controller makes a new pod in place of this one when it is asked to."""
    owner = pod.metadata.controller
    return owner is not None and owner.kind == "Job" and owner.api_version == names.BATCH_API


def pinned_node(pod: Pod) -> str:
    """Return the one node that every required affinity term names, or an empty string."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    terms = affinity.required.node_selector_terms if affinity and affinity.required else None
    nodes = {_named_node(term) for term in terms or () if _says_something(term)}
    return nodes.pop() if len(nodes) == 1 else ""


def _says_something(term: NodeSelectorTerm) -> bool:
    """Tell whether any node can match the term: an empty one matches none, and stays empty."""
    return bool(term.match_expressions or term.match_fields)


def _named_node(term: NodeSelectorTerm) -> str:
    for field in term.match_fields or ():
        if field.key == "metadata.name" and field.operator == "In" and len(field.values or ()) == 1:
            return (field.values or [""])[0]
    return ""


def ungate_patch(pod: Pod) -> Patch:
    """Return the merge patch that removes our gate and leaves the others."""
    return _without_gate(pod, names.GATE_HELD)


def admit_patch(pod: Pod) -> Patch:
    """Return the merge patch that removes the gate of the queue and leaves the others."""
    return _without_gate(pod, names.QUEUE_ALLOCATION_GATE)


def _without_gate(pod: Pod, removed: str) -> Patch:
    gates = pod.spec.scheduling_gates or ()
    others = [{"name": gate.name} for gate in gates if gate.name != removed]
    return {"spec": {"schedulingGates": others or None}}


def pin_patch(pod: Pod, node: str) -> Patch:
    """Return the merge patch that removes our gate and pins the pod to `node`."""
    patch = ungate_patch(pod)
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity.required if affinity else None
    pin = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms: list[Patch] = []
    for old in (required and required.node_selector_terms) or ():
        term = msgspec.to_builtins(old)
        if _says_something(old):
            term["matchFields"] = [*term.get("matchFields", ()), pin]
        terms.append(term)
    terms = terms or [{"matchFields": [pin]}]
    patch["metadata"] = {"annotations": {names.PLANNED_NODE: node}}
    patch["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }
    return patch


def nominate_patch(node: str) -> Patch:
    """Return the merge patch of the status that nominates `node`."""
    return {"status": {"nominatedNodeName": node}}


def out_of_sync_patch() -> Patch:
    """Return the merge patch that asks the Job controller for a new pod in place of this one."""
    return {"metadata": {"annotations": {names.OUT_OF_SYNC: "true"}}}


def is_held(pod: Pod) -> bool:
    """Tell whether our gate is on the pod."""
    return any(gate.name == names.GATE_HELD for gate in pod.spec.scheduling_gates or ())


def is_gated(pod: Pod) -> bool:
    """Tell whether any gate is on the pod."""
    return bool(pod.spec.scheduling_gates)


def group_of(pod: Pod) -> JobKey | None:
    """Return the key of the PodGroup that the pod names, if it names one."""
    group = (pod.metadata.annotations or {}).get(names.GROUP_NAME)
    return JobKey(f"{pod.metadata.namespace}/{group}") if group else None


def verdict_of(pod: Pod) -> Verdict:
    """Return reason and message of PodScheduled where it is False."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.reason, condition.message
    return NO_VERDICT


def view_of(pod: Pod) -> PodView:
    """Return what the ledger reads of a pod."""
    deleted_unbound = bool(pod.metadata.deletion_timestamp) and not pod.spec.node_name
    return PodView(
        uid=PodUid(pod.metadata.uid),
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        job=group_of(pod),
        held=is_gated(pod),
        node=pod.spec.node_name,
        pin=pinned_node(pod),
        nominated=pod.status.nominated_node_name,
        verdict=verdict_of(pod),
        gone=pod.status.phase in FINISHED or deleted_unbound,
        leaving=names.OUT_OF_SYNC in (pod.metadata.annotations or {}) and is_replaceable(pod),
    )
