"""Resource groups of pods: who is in which, and what becomes of a pod."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pumice.core.admission.resource_groups import (
    ResourceGroupsError,
    group_of,
    membership,
    parse,
)
from pumice.core.api.core import Pod

GROUPS = """
resourceGroups:
- resourceGroup: management
  object: {key: namespace, value: [mng-1, mng-2]}
  schedulerName: default-scheduler
  labels: {node-kind: management}
- resourceGroup: cpu
  object: {key: annotation, value: ["volcano.sh/resource-group: cpu", "kind: processors"]}
  schedulerName: volcano
  labels: {node-kind: cpu}
  tolerations:
  - {key: a, operator: Exists, effect: NoExecute, tolerationseconds: 5}
  affinity: '{"nodeAffinity": {"somethingNew": 1}}'
- resourceGroup: gpu
- resourceGroup: nobody
  object: {key: name, value: [gpu]}
"""


def a_pod(notes: dict[str, str] | None = None, **spec: Any) -> Pod:
    return msgspec.convert({"metadata": {"annotations": notes}, "spec": spec}, Pod)


IN = {
    "a pod of a namespace": (a_pod(), "mng-2", "management"),
    "a pod of another one": (a_pod(), "default", None),
    "a pod with an annotation": (a_pod({"kind": "processors"}), "default", "cpu"),
    "a pod with another annotation": (a_pod({"kind": "cpu"}), "default", None),
    "a pod that names its group": (a_pod({"volcano.sh/resource-group": "gpu"}), "x", "gpu"),
    "the first group counts": (a_pod({"kind": "processors"}), "mng-1", "management"),
}


@pytest.mark.parametrize(("pod", "namespace", "want"), IN.values(), ids=IN.keys())
def test_who_is_in_which(pod: Pod, namespace: str, want: str | None) -> None:
    found = group_of(parse(GROUPS), pod, namespace)
    assert (found and found.resource_group) == want


def steps(group: int, pod: Pod) -> dict[str, object]:
    return {step.path: step.value for step in parse(GROUPS)[group].steps(pod)}


TOLERATION = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}


def test_what_becomes_of_a_pod_of_nothing() -> None:
    assert steps(1, a_pod()) == {
        "/spec/nodeSelector": {"node-kind": "cpu"},
        "/spec/affinity": {"nodeAffinity": {"somethingNew": 1}},
        "/spec/tolerations": [TOLERATION],
        "/spec/schedulerName": "volcano",
    }


def test_what_a_pod_has_stays_but_for_the_scheduler_and_the_group_s_own_nodes() -> None:
    pod = a_pod(
        nodeSelector={"disk": "ssd", "node-kind": "any"},
        affinity={},
        tolerations=[{"key": "b"}],
        schedulerName="mine",
    )
    assert steps(1, pod) == {
        "/spec/nodeSelector": {"disk": "ssd", "node-kind": "cpu"},
        "/spec/tolerations/-": TOLERATION,
        "/spec/schedulerName": "volcano",
    }


def test_a_group_that_says_nothing_changes_nothing() -> None:
    assert steps(2, a_pod()) == {}


def test_who_is_in_any_is_said_in_cel() -> None:
    assert membership(parse(GROUPS)) == (
        'request.namespace in ["mng-1", "mng-2"]'
        ' || object.metadata.?annotations[?"volcano.sh/resource-group"] == optional.of("cpu")'
        ' || object.metadata.?annotations[?"kind"] == optional.of("processors")'
        ' || object.metadata.?annotations[?"volcano.sh/resource-group"] == optional.of("gpu")'
    )


@pytest.mark.parametrize("text", ["", "# nothing\n", "resourceGroups:\n", "resourceGroups: []"])
def test_a_file_of_nothing_is_no_groups(text: str) -> None:
    assert parse(text) == []


WRONG = {
    "no YAML": ("resourceGroups: [", "expected the node content"),
    "another form": ("resourceGroups: {a: b}", "Expected `array | null`, got `object`"),
    "a number for a name": ("resourceGroups: [{resourceGroup: 1}]", "Expected `str`, got `int`"),
    "affinity that is no JSON": (
        "resourceGroups: [{resourceGroup: g, affinity: 'a: b'}]",
        "affinity of resource group g: JSON is malformed",
    ),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_used_says_why(text: str, words: str) -> None:
    with pytest.raises(ResourceGroupsError) as refused:
        parse(text)
    assert words in str(refused.value)
