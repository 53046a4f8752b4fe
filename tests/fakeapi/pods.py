"""What is special about pods: gates, binding, eviction, graceful deletion."""

from __future__ import annotations

import copy
from typing import Any

from pumice.kube.clock import rfc3339
from tests.fakeapi.refusals import Json, conflict, invalid

_CHANGEABLE = ("activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations")
_ONLY_GATES = "spec.schedulingGates: Forbidden: only deletion is allowed"
_ONLY_SOME = "spec: Forbidden: pod updates may not change fields other than "
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def defaulted(pod: Json, now: float) -> Json:
    """Return a new pod with what the server adds to it."""
    spec = {
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        **pod.get("spec", {}),
    }
    status: Json = {"phase": "Pending", "qosClass": "BestEffort"}
    if spec.get("schedulingGates"):
        if spec.get("nodeName"):
            message = "spec.nodeName: Forbidden: cannot be set until all schedulingGates"
            raise invalid("Pod", pod["metadata"]["name"], message)
        gated = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastTransitionTime": rfc3339(now),
        }
        status["conditions"] = [gated]
    return {**pod, "spec": spec, "status": status}


def check_update(old: Json, new: Json) -> None:
    """Refuse changes that a pod does not allow."""
    name = new["metadata"]["name"]
    was, now = copy.deepcopy(old["spec"]), copy.deepcopy(new["spec"])
    gates = [g["name"] for g in was.pop("schedulingGates", None) or ()]
    left = [g["name"] for g in now.pop("schedulingGates", None) or ()]
    if not set(left) <= set(gates):
        raise invalid("Pod", name, f"{_ONLY_GATES}, but found new scheduling gate")
    if new["status"].get("nominatedNodeName") and old["spec"].get("nodeName"):
        nominated = old["status"].get("nominatedNodeName")
        if new["status"]["nominatedNodeName"] != nominated:
            message = "status.nominatedNodeName: Forbidden: may not be set on pods that are bound"
            raise invalid("Pod", name, message)
    if gates:
        _check_narrowed(name, was, now)
        for spec in (was, now):
            spec.pop("nodeSelector", None)
            (spec.get("affinity") or {}).pop("nodeAffinity", None)
            if not spec.get("affinity"):
                spec.pop("affinity", None)
    for spec in (was, now):
        for field in _CHANGEABLE:
            spec.pop(field, None)
        for container in (spec.get("containers") or []) + (spec.get("initContainers") or []):
            container.pop("image", None)
    if was != now:
        raise invalid("Pod", name, _ONLY_SOME + "`spec.containers[*].image` and others")


def _check_narrowed(name: str, was: Json, now: Json) -> None:
    """A gated pod's node selection may only become narrower."""
    old, new = was.get("nodeSelector") or {}, now.get("nodeSelector") or {}
    if any(new.get(k) != v for k, v in old.items()):
        message = "spec.nodeSelector: Invalid value: only additions are allowed"
        raise invalid("Pod", name, message)
    had, has = _terms(was), _terms(now)
    if not had:
        return
    where = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if len(had) != len(has):
        raise invalid("Pod", name, f"{where}: no additions/deletions are allowed")
    for a, b in zip(had, has, strict=True):
        for field in ("matchExpressions", "matchFields"):
            kept = a.get(field) or []
            if (b.get(field) or [])[: len(kept)] != kept or (
                not any(a.values()) and any(b.values())
            ):
                raise invalid("Pod", name, f"{where}: only additions are allowed")


def _terms(spec: Json) -> list[Json]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms: list[Json] = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    return terms


def bound(pod: Json, binding: Json, now: float) -> Json:
    """Return the pod on the node that the binding names."""
    meta, name = pod["metadata"], pod["metadata"]["name"]
    uid = binding["metadata"].get("uid")
    if uid and uid != meta["uid"]:
        message = f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
        raise conflict("pods", name, message + meta["uid"])
    version = binding["metadata"].get("resourceVersion")
    if version and version != meta["resourceVersion"]:
        message = f"Precondition failed: ResourceVersion in precondition: {version}, "
        message += f"ResourceVersion in object meta: {meta['resourceVersion']}"
        raise conflict("pods", name, message)
    what = "pods/binding"
    if meta.get("deletionTimestamp"):
        raise conflict(what, name, f"pod {name} is being deleted, cannot be assigned to a host")
    if node := pod["spec"].get("nodeName"):
        raise conflict(what, name, f'pod {name} is already assigned to node "{node}"')
    if pod["spec"].get("schedulingGates"):
        raise conflict(what, name, f"pod {name} has non-empty .spec.schedulingGates")
    notes = {**(meta.get("annotations") or {}), **(binding["metadata"].get("annotations") or {})}
    status = {k: v for k, v in pod["status"].items() if k != "nominatedNodeName"}
    return {
        **pod,
        "metadata": {**meta, "annotations": notes} if notes else meta,
        "spec": {**pod["spec"], "nodeName": binding["target"]["name"]},
        "status": with_condition(status, "PodScheduled", "True", now),
    }


def with_condition(
    status: Json, kind: str, value: str, now: float, reason: str = "", message: str = ""
) -> Json:
    """Return the status with one condition set."""
    condition: dict[str, Any] = {"type": kind, "status": value, "lastTransitionTime": rfc3339(now)}
    if reason:
        condition |= {"reason": reason, "message": message}
    others = [c for c in status.get("conditions") or () if c["type"] != kind]
    return {**status, "conditions": [*others, condition]}


def grace_s(pod: Json, asked: int | None) -> int:
    """Return how long the pod may take to end: only one on a node may take any time."""
    if not pod["spec"].get("nodeName") or pod["status"].get("phase") in ("Succeeded", "Failed"):
        return 0
    return pod["spec"]["terminationGracePeriodSeconds"] if asked is None else asked
