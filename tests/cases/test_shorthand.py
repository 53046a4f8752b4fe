"""The short form of a case: what it stands for, and that every scenario is one that can be run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases import needs, shorthand
from tests.cases.command import cases
from tests.cases.errors import MalformedError
from tests.cases.loading import load
from tests.cases.schema import Apply, Case, SetNode, Settle

SCENARIOS = Path(__file__).parent / "scenarios"
SHORT = """
scenario: Two ways to say the same.
nodes: {n1 n2: {cpu: 4, labels: {zone: east}}}
queues: {lab: {weight: 3}}
priorities: {low: 5, polite: {value: 9, preemptionPolicy: Never}}
groups: {a/pair: {minMember: 2}}
pods: {a/p: {group: pair, labels: {x: y}, limits: {cpu: 1}, nodeName: n1}}
jobs: {a/j: {minAvailable: 1, tasks: {t: {replicas: 2, requests: {cpu: 500m}}}}}
commands: {a/stop: AbortJob job/j}
refused: [queue/lab]
steps:
- apply: [pod/a/p]
- {setNode: node/n1, unschedulable: true}
- settle: 30
expect:
  end:
  - {boundCount: {job: a/j}, equals: 2}
  - {jobPhase: a/j, in: [Running]}
"""


@pytest.fixture
def case(tmp_path: Path) -> Case:
    file = tmp_path / "short.yaml"
    file.write_text(SHORT)
    return load(file)


def test_nodes_have_what_is_usual(case: Case) -> None:
    first, second = case.nodes
    assert [node["metadata"]["name"] for node in (first, second)] == ["n1", "n2"]
    assert first["metadata"]["labels"] == {"kubernetes.io/hostname": "n1", "zone": "east"}
    assert first["status"]["allocatable"] == {"cpu": "4", "memory": "16Gi", "pods": "110"}
    assert first["status"]["capacity"] == first["status"]["allocatable"]


def test_pods_and_tasks_are_described_alike(case: Case) -> None:
    (pod,), (job,) = case.pods, case.jobs
    assert pod["metadata"] == {
        "name": "p",
        "namespace": "a",
        "labels": {"x": "y"},
        "annotations": {"scheduling.k8s.io/group-name": "pair"},
    }
    assert pod["spec"] == {
        "schedulerName": "volcano",
        "restartPolicy": "Never",
        "nodeName": "n1",
        "containers": [
            {"name": "main", "image": shorthand.IMAGE, "resources": {"limits": {"cpu": "1"}}}
        ],
    }
    (task,) = job["spec"]["tasks"]
    assert (task["name"], task["replicas"]) == ("t", 2)
    assert "schedulerName" not in task["template"]["spec"]
    assert task["template"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "500m"}}


def test_the_other_objects_have_their_specs(case: Case) -> None:
    (queue,), (group,), (command,) = case.queues, case.pod_groups, case.extras
    assert queue["spec"] == {"weight": 3, "reclaimable": True}
    assert group["spec"] == {"minMember": 2}
    assert [c.get("preemptionPolicy") for c in case.priority_classes] == [None, "Never"]
    assert (command["action"], command["target"]["kind"]) == ("AbortJob", "Job")
    assert case.intentionally_invalid == ["queue/lab"]


def test_steps_and_checks_have_their_main_keys(case: Case) -> None:
    assert case.id == "short"
    assert case.steps == [
        Apply(refs=["pod/a/p"]),
        SetNode(ref="node/n1", unschedulable=True),
        Settle(quiet_seconds=shorthand.QUIET_S, timeout_seconds=30),
    ]
    assert [(check.at, check.subject) for check in case.expect] == [
        ("end", "job a/j"),
        ("end", "a/j"),
    ]


BROKEN: dict[str, tuple[str, Any, str]] = {
    "no steps": ("steps", None, "not the short form"),
    "an unknown key": ("nods", {}, "unknown field `nods`"),
    "an unknown operation": ("steps", [{"aply": []}], "Invalid value 'aply'"),
    "a command to nobody": ("commands", {"a/c": "AbortJob"}, "not the short form"),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_case_is_told_why(broken: tuple[str, Any, str], tmp_path: Path) -> None:
    key, value, why = broken
    file = tmp_path / "broken.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(SHORT) | {key: value}, sort_keys=False))
    with pytest.raises(MalformedError, match=why):
        load(file)


def test_a_directory_stands_for_its_cases(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yaml", "notes.md"):
        (tmp_path / name).touch()
    assert [path.name for path in cases([tmp_path, tmp_path / "b.yaml"])] == [
        "a.yaml",
        "b.yaml",
        "b.yaml",
    ]


@pytest.mark.parametrize("path", list(cases([SCENARIOS])), ids=lambda path: path.stem)
def test_a_scenario_can_be_run(path: Path) -> None:
    needs.require(load(path))


def test_scenarios_have_names_of_their_own() -> None:
    names = [path.stem for path in cases([SCENARIOS])]
    assert len(names) == len(set(names)) == 52
