"""Statuses of pods and nodes as a kubelet writes them."""

from __future__ import annotations

from datetime import UTC, datetime

from pumice.local.api import Object

REASONS = {"Succeeded": "Completed", "Failed": "Error"}


def status(pod: Object, phase: str, *, ready: bool = True, exit_code: int | None = None) -> Object:
    """Return the patch that brings a pod into a phase; it applies to this very pod only."""
    if phase in REASONS:
        fields = _ended(pod, phase, exit_code)
    elif phase == "Running":
        fields = _running(pod, ready)
    else:
        fields = {"phase": phase}
    return {"metadata": {"uid": pod["metadata"]["uid"]}, "status": fields}


def readiness(ready: bool) -> Object:
    """Return the condition of a node that is ready or not."""
    reason = "KubeletReady" if ready else "KubeletNotReady"
    times = {"lastTransitionTime": _now(), "lastHeartbeatTime": _now()}
    return {"type": "Ready", "status": str(ready), "reason": reason, **times}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _running(pod: Object, ready: bool) -> Object:
    started = _start(pod)
    return {
        "phase": "Running",
        "startTime": started,
        "conditions": [
            _condition("PodReadyToStartContainers", True),
            _condition("Initialized", True),
            _condition("ContainersReady", ready),
            _condition("Ready", ready),
        ],
        "containerStatuses": [
            _container(body, ready, {"running": {"startedAt": started}})
            for body in pod["spec"]["containers"]
        ],
    }


def _ended(pod: Object, phase: str, exit_code: int | None) -> Object:
    started, ended = _start(pod), _now()
    code = exit_code if exit_code is not None else int(phase == "Failed")
    state = {
        "terminated": {
            "exitCode": code,
            "reason": REASONS[phase],
            "startedAt": started,
            "finishedAt": ended,
        }
    }
    return {
        "phase": phase,
        "startTime": started,
        "conditions": [
            _condition("ContainersReady", False, "PodCompleted"),
            _condition("Ready", False, "PodCompleted"),
        ],
        "containerStatuses": [_container(body, False, state) for body in pod["spec"]["containers"]],
    }


def _start(pod: Object) -> str:
    return str(pod.get("status", {}).get("startTime") or _now())


def _condition(kind: str, holds: bool, reason: str = "") -> Object:
    found: Object = {"type": kind, "status": str(holds), "lastTransitionTime": _now()}
    if not holds:
        found["reason"] = reason or "ContainersNotReady"
    return found


def _container(body: Object, ready: bool, state: Object) -> Object:
    return {
        "name": body["name"],
        "image": body.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": "running" in state,
        "restartCount": 0,
        "state": state,
    }
