"""Case files: what is read of them, and what is said of those that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases import needs
from tests.cases.errors import LackingError, MalformedError
from tests.cases.loading import identity, load
from tests.cases.schema import Case

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"}}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
LATER = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "later"}}
APPLY = {"op": "apply", "refs": ["pod/a/p"]}
BOUND = {"check": "boundCount", "select": {"pods": "a/p"}, "equals": 1}
PLUGINS = {"plugins": [{"name": "gang"}]}


def a_case(**fields: Any) -> dict[str, Any]:
    """Return a sound case, some of its fields replaced."""
    case: dict[str, Any] = {
        "schemaVersion": 1,
        "id": "one-pod",
        "config": {"actions": "allocate", "tiers": [PLUGINS], "matters": "no"},
        "nodes": [NODE, LATER],
        "pods": [POD],
        "steps": [
            APPLY,
            {"op": "apply", "refs": ["node/later"]},
            {"op": "settle"},
            {"op": "snapshot", "as": "bound"},
            {"op": "watch", "as": "window", "seconds": 5},
            {"op": "tryDelete", "ref": "pod/a/p", "as": "deleted"},
        ],
        "expect": [BOUND],
    }
    return {**case, **fields}


def loaded(directory: Path, content: object) -> Case:
    file = directory / "case.yaml"
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return load(file)


def test_a_case_is_read(tmp_path: Path) -> None:
    case = loaded(tmp_path, a_case())
    assert (case.id, len(case.steps), len(case.expect)) == ("one-pod", 6, 1)
    assert case.standing() == [NODE]
    assert case.namespaces() == {"a"}


def steps(*found: dict[str, Any]) -> dict[str, Any]:
    return a_case(steps=[APPLY, *found])


def expect(**check: Any) -> dict[str, Any]:
    return a_case(expect=[check])


SELECT = {"pods": "a/*"}

WRONG: dict[str, tuple[object, str]] = {
    "no YAML": ("a: [", "not YAML: while parsing"),
    "no mapping": ("- 1", "Expected `object`, got `array`"),
    "a future form": (a_case(schemaVersion=2), r"Invalid enum value 2 - at `\$.schemaVersion`"),
    "an unknown key": (a_case(quques=[]), "unknown field `quques`"),
    "an unknown step": (steps({"op": "aply"}), r"Invalid value 'aply' - at `\$.steps\[1\].op`"),
    "a step without its key": (
        steps({"op": "apply"}),
        r"missing required field `refs` - at `\$.steps\[1\]`",
    ),
    "a step with a key too many": (
        steps({"op": "settle", "quiet": 3}),
        r"unknown field `quiet` - at `\$.steps\[1\]`",
    ),
    "an unknown component": (
        steps({"op": "stop", "component": "etcd"}),
        r"Invalid enum value 'etcd' - at `\$.steps\[1\].component`",
    ),
    "an unknown mode": (
        steps({"op": "kubelet", "select": SELECT, "mode": "sleep"}),
        "Invalid enum value 'sleep'",
    ),
    "an object that is not listed": (
        steps({"op": "apply", "refs": ["pod/a/q"]}),
        "a step creates pod/a/q, which is not listed",
    ),
    "a template that is not listed": (
        steps({"op": "applyMany", "template": "pod/a/q", "names": "q-{i}", "from": 0, "to": 1}),
        "a step creates pod/a/q, which is not listed",
    ),
    "a reference that is none": (
        steps({"op": "delete", "refs": ["p"]}),
        r"steps\[1\]: 'p' is not kind/namespace/name",
    ),
    "a node that is a pod": (
        steps({"op": "setNode", "ref": "pod/a/p", "ready": False}),
        r"steps\[1\]: pod/a/p is no node",
    ),
    "a snapshot named end": (
        steps({"op": "snapshot", "as": "end"}),
        "end is the moment after the last step",
    ),
    "a rule for whoever wins": (
        steps({"op": "kubelet", "select": {"winnerOf": ["a/j"]}, "mode": "run"}),
        "winnerOf and anyBoundOf are for setPodPhase",
    ),
    "an unknown check": (
        expect(check="bound", select=SELECT, equals=1),
        r"Invalid value 'bound' - at `\$.expect\[0\].check`",
    ),
    "a check with a key too many": (
        expect(check="boundCount", select=SELECT, eqals=1),
        "unknown field `eqals`",
    ),
    "a count of nothing": (
        expect(check="boundCount", select=SELECT),
        "needs `equals`, `min` or `max`",
    ),
    "a phase of no kind": (expect(check="jobPhase", job="a/j"), "needs `in` or `notIn`"),
    "an unknown selector": (
        expect(check="boundCount", select={"pod": "a/p"}, equals=1),
        "unknown field `pod`",
    ),
    "a moment without a name": (
        expect(check="boundCount", select=SELECT, equals=1, at="bond"),
        r"expect\[0\]: no snapshot is named 'bond'",
    ),
    "an earlier moment without a name": (
        expect(check="sameUID", select=SELECT, since="bond"),
        "no snapshot is named 'bond'",
    ),
    "a window without a name": (
        a_case(expect=[{**BOUND, "check": "evictedDuring", "window": "w"}]),
        "no watch is named 'w'",
    ),
    "an answer without a name": (
        expect(check="admission", step="created", allowed=True),
        "no try step is named 'created'",
    ),
    "a check of nothing": (expect(check="exists", ref="p"), "'p' is not kind/namespace/name"),
    "a count of an object": (
        expect(check="boundCount", select={"object": "pod/a/p"}, equals=1),
        "`object` is for checks of uids",
    ),
    "a check of whoever is bound": (
        expect(check="boundCount", select={"anyBoundOf": ["a/p"]}, equals=1),
        "winnerOf and anyBoundOf are for setPodPhase",
    ),
    "nothing expected": (a_case(expect=[]), "nothing is expected"),
    "an object without a name": (a_case(pods=[{"kind": "Pod"}]), "no kind or no name"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG.keys())
def test_a_file_that_is_no_case_is_told_why(case: tuple[object, str], tmp_path: Path) -> None:
    content, why = case
    with pytest.raises(MalformedError, match=why):
        loaded(tmp_path, content)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MalformedError, match="cannot be read: No such file"):
        load(tmp_path / "absent.yaml")


def test_a_file_goes_by_its_id_or_else_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "fallback.yaml"
    assert identity(file) == "fallback"
    for content, name in (("id: mine\nsteps: 3", "mine"), ("a: [", "fallback"), ("7", "fallback")):
        file.write_text(content)
        assert identity(file) == name


def config(actions: str = "allocate", plugin: str = "gang", matters: str = "yes") -> dict[str, Any]:
    tiers = [{"plugins": [{"name": plugin}]}]
    return a_case(config={"actions": actions, "tiers": tiers, "matters": matters})


def a_job(**spec: Any) -> dict[str, Any]:
    meta = {"name": "j", "namespace": "a"}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": meta,
        "spec": spec,
    }


NEEDS = {
    "an unheard-of plugin": (config(plugin="magic"), "not available yet: plugin magic"),
    "an unheard-of Job plugin": (
        a_case(jobs=[a_job(plugins={"env": [], "magic": []})]),
        "not available yet: Job plugin magic",
    ),
}


@pytest.mark.parametrize("case", NEEDS.values(), ids=NEEDS.keys())
def test_what_the_product_lacks_is_named(case: tuple[object, str], tmp_path: Path) -> None:
    content, why = case
    with pytest.raises(LackingError, match=why):
        needs.require(loaded(tmp_path, content))


ENOUGH = {
    "a configuration that does not matter is not looked at": config(plugin="magic", matters="no"),
    "what is to be refused is not needed": a_case(
        jobs=[a_job(plugins={"magic": []})], intentionallyInvalid=["job/a/j"]
    ),
    "what there is": config(actions="enqueue, allocate, gangpreempt"),
}


@pytest.mark.parametrize("content", ENOUGH.values(), ids=ENOUGH.keys())
def test_nothing_is_lacking(content: object, tmp_path: Path) -> None:
    needs.require(loaded(tmp_path, content))


def test_a_configuration_that_nobody_could_use_is_an_error_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(MalformedError, match="config: failed to find Action dance"):
        needs.require(loaded(tmp_path, config(actions="dance")))
