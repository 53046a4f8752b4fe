"""Pods: what stays as it is, there being no resource groups, and annotations about disruption."""

from __future__ import annotations

from typing import Any

from pumice.core import names
from tests.unit.admission.rows.row import Object, Row, an_object

CONTAINER = {"name": "c", "image": "busybox"}


def a_pod(scheduler: str = "", *, notes: dict[str, str] | None = None, **spec: Any) -> Object:
    """Return a pod with these annotations; without a name its scheduler is Kubernetes' own."""
    body = {
        "containers": [CONTAINER],
        "automountServiceAccountToken": False,
        **({"schedulerName": scheduler} if scheduler else {}),
        **spec,
    }
    return an_object("v1", "Pod", body, annotations=notes or {})


def in_group(name: str) -> dict[str, str]:
    return {"volcano.sh/resource-group": name}


AFFINITY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
        ]
    }
}
TOLERATION = {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}
UNTOUCHED = {
    "spec.nodeSelector": None,
    "spec.affinity": None,
    "spec.schedulerName": "default-scheduler",
}
NOTE = "metadata.annotations.volcano|sh/resource-group"

DEFAULTS = {
    "one like any other gets no node selector": Row(a_pod(), stored={"spec.nodeSelector": None}),
    "one of a group for processors": Row(
        a_pod(notes=in_group("cpu")), stored={NOTE: "cpu", "spec.nodeSelector": None}
    ),
    "one of a group for accelerators": Row(
        a_pod(notes=in_group("gpu")), stored={NOTE: "gpu", "spec.nodeSelector": None}
    ),
    "one like any other gets no affinity": Row(a_pod(), stored={"spec.affinity": None}),
    "affinity of its own stays": Row(a_pod(affinity=AFFINITY), stored={"spec.affinity": AFFINITY}),
    "one like any other gets Kubernetes' tolerations alone": Row(
        a_pod(),
        stored={
            "spec.tolerations.0.key": "node.kubernetes.io/not-ready",
            "spec.tolerations.1.key": "node.kubernetes.io/unreachable",
            "spec.tolerations.2": None,
        },
    ),
    "tolerations of its own stay": Row(
        a_pod(tolerations=[TOLERATION]), stored={"spec.tolerations.0": TOLERATION}
    ),
    "the scheduler stays Kubernetes' own": Row(a_pod(), stored=UNTOUCHED),
    "a node selector of its own stays": Row(
        a_pod(nodeSelector={"disk": "ssd"}), stored={"spec.nodeSelector": {"disk": "ssd"}}
    ),
    "one of a group that there is not": Row(a_pod(notes=in_group("none")), stored=UNTOUCHED),
    "annotations of its own stay": Row(
        a_pod(notes=in_group("custom-group")), stored={NOTE: "custom-group"}
    ),
    "a scheduler of its own stays": Row(
        a_pod("custom-scheduler"), stored={"spec.schedulerName": "custom-scheduler"}
    ),
}


def budget(least: str = "", most: str = "", scheduler: str = "volcano") -> Object:
    """Return a pod of ours that says how many of its kind may be disturbed."""
    notes = {names.JDB_MIN_AVAILABLE: least, names.JDB_MAX_UNAVAILABLE: most}
    return a_pod(scheduler, notes={key: value for key, value in notes.items() if value})


POSITIVE = "must be a positive integer"
PERCENT = "percentage which between 1% ~ 99%"

MADE = {"status.phase": "Pending"}

ROWS = {
    "a number": Row(budget("2"), stored=MADE),
    "a share": Row(budget(most="50%"), stored=MADE),
    "a negative number": Row(budget("-1"), (POSITIVE,)),
    "nothing": Row(budget(most="0"), (POSITIVE,)),
    "no share": Row(budget("0%"), (PERCENT,)),
    "the whole": Row(budget(most="100%"), (PERCENT,)),
    "a word": Row(budget("some"), ("invalid value", 'parsing "some"')),
    "both at once": Row(budget("1", "1"), ("not allow configure multiple annotations",)),
    "neither": Row(budget(), stored=MADE),
    "a word, for another scheduler": Row(
        budget("some", scheduler="default-scheduler"), stored=MADE
    ),
}
