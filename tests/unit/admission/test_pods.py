"""Pods: who is held, and what a disruption budget in annotations may say."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pumice.core import names
from pumice.core.admission import pods
from pumice.core.api.core import (
    Container,
    Pod,
    PodSpec,
    ResourceRequirements,
    SchedulingGate,
)
from tests.builders import a_pod
from tests.unit.admission.builders import messages

HELD = names.GATE_HELD
QUEUE_GATE = names.QUEUE_ALLOCATION_GATE
OURS = ("volcano", "mine")


@dataclass(frozen=True)
class Gated:
    pod: Pod
    want: list[str]
    namespace: str = "ns"


GATES = {
    "a pod of ours is held": Gated(a_pod("p"), [HELD]),
    "a pod of another scheduler of ours too": Gated(a_pod("p", scheduler="mine"), [HELD]),
    "a pod of another scheduler is not": Gated(a_pod("p", scheduler="default-scheduler"), []),
    "a pod without a scheduler's name is not": Gated(a_pod("p", scheduler=""), []),
    "a pod that has its node is not": Gated(a_pod("p", node="n1"), []),
    "a pod that waits for its queue keeps that gate alone": Gated(
        a_pod("p", annotations={QUEUE_GATE: "true"}, gates=[QUEUE_GATE]), [QUEUE_GATE]
    ),
    "a pod that need not wait for its queue is held": Gated(
        a_pod("p", annotations={QUEUE_GATE: "false"}), [HELD]
    ),
    "a pod in kube-system is not": Gated(a_pod("p"), [], "kube-system"),
    "a pod in pumice-system is not": Gated(a_pod("p"), [], "pumice-system"),
    "other gates are kept": Gated(a_pod("p", gates=["a/b"]), ["a/b", HELD]),
    "a pod that is held already stays as it is": Gated(
        a_pod("p", gates=[HELD, "a/b"]), [HELD, "a/b"]
    ),
}


@pytest.mark.parametrize("case", GATES.values(), ids=GATES.keys())
def test_the_gate(case: Gated) -> None:
    held = pods.gated(case.pod, case.namespace, OURS)
    want = [SchedulingGate(name=name) for name in case.want] or None
    assert held.spec.scheduling_gates == want
    assert pods.gated(held, case.namespace, OURS) == held


@dataclass(frozen=True)
class Marked:
    pod: Pod
    want: tuple[str, ...] = ()
    namespace: str = "ns"


BATCH, FREE = names.MARKER_RESOURCE, names.FREE_MARKER_RESOURCE
MARKS = {
    "a pod of ours that kube-scheduler chooses the node for": Marked(a_pod("p"), (BATCH, FREE)),
    "a pod of a Job of ours, which will be pinned": Marked(a_pod("p", ours=True), (BATCH,)),
    "a pod that waits for its queue": Marked(
        a_pod("p", annotations={QUEUE_GATE: "true"}, gates=[QUEUE_GATE]), (BATCH, FREE)
    ),
    "a pod of another scheduler is not marked": Marked(a_pod("p", scheduler="default-scheduler")),
    "a pod that has its node is not": Marked(a_pod("p", node="n1")),
    "a pod in kube-system is not": Marked(a_pod("p"), namespace="kube-system"),
}


@pytest.mark.parametrize("case", MARKS.values(), ids=MARKS.keys())
def test_the_marker(case: Marked) -> None:
    marked = pods.marked(case.pod, case.namespace, OURS)
    (asked,) = [container.resources for container in marked.spec.containers or ()]
    marks = dict.fromkeys(case.want, "1")
    assert asked is not None
    assert asked.requests == {"cpu": "1", **marks}
    assert asked.limits == (marks or None)
    assert pods.marked(marked, case.namespace, OURS) == marked


def test_the_marker_goes_to_the_first_container_alone() -> None:
    limited = ResourceRequirements(limits={"memory": "1Gi"})
    containers = [Container(name="a", resources=limited), Container(name="b")]
    pod = a_pod("p", ours=True, spec=PodSpec(containers=containers))

    marked = ResourceRequirements(requests={BATCH: "1"}, limits={"memory": "1Gi", BATCH: "1"})
    want = [Container(name="a", resources=marked), Container(name="b")]
    assert pods.marked(pod, "ns", OURS).spec.containers == want


@dataclass(frozen=True)
class Budget:
    annotations: dict[str, str]
    want: list[str] = field(default_factory=list)
    scheduler: str = "volcano"


LEAST, MOST = names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE
PERCENT = "it must be a valid percentage which between 1% ~ 99%"

BUDGETS = {
    "none": Budget({}),
    "a number": Budget({LEAST: "3"}),
    "a percentage": Budget({MOST: "50%"}),
    "nothing": Budget(
        {LEAST: "0"}, [f'invalid value <"0"> for {LEAST}, it must be a positive integer']
    ),
    "less than nothing": Budget(
        {MOST: "-1"}, [f'invalid value <"-1"> for {MOST}, it must be a positive integer']
    ),
    "no percent": Budget({LEAST: "0%"}, [f'invalid value <"0%"> for {LEAST}, {PERCENT}']),
    "all of it": Budget({LEAST: "100%"}, [f'invalid value <"100%"> for {LEAST}, {PERCENT}']),
    "a word": Budget(
        {LEAST: "many"},
        [f'invalid value strconv.Atoi: parsing "many": invalid syntax for {LEAST}'],
    ),
    "both": Budget(
        {LEAST: "1", MOST: "1"},
        [f"not allow configure multiple annotations <[{LEAST} {MOST}]> at same time"],
    ),
    "the pods of others say what they like": Budget({LEAST: "many"}, [], "default-scheduler"),
}


@pytest.mark.parametrize("case", BUDGETS.values(), ids=BUDGETS.keys())
def test_the_budget(case: Budget) -> None:
    pod = a_pod("p", scheduler=case.scheduler, annotations=case.annotations)
    assert messages(pods.check_create(pod, OURS)) == case.want
