"""Selections: which pods are meant."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.cases.builders import a_group, a_moment, a_pod, an_object, select
from tests.cases.selection import expanded, leader

SCENE = a_moment(
    a_pod("j-w-0", job="j", task="w", group="j-1", node="n", phase="Running"),
    a_pod("j-x-0", job="j", task="x", group="j-1"),
    a_pod("k-w-0", job="k", task="w", group="k-1", node="n", phase="Failed"),
    a_pod("lone", queue="own"),
    jobs=(an_object("j", uid="1"),),
    groups=(a_group("j-1", owner="1", queue="q"), a_group("k-1", queue="r")),
)

PICKED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a Job's pods": ({"job": "a/j"}, ["j-w-0", "j-x-0"]),
    "one task of them": ({"job": "a/j", "task": "x"}, ["j-x-0"]),
    "a Job that is gone": ({"jobName": "a/k"}, ["k-w-0"]),
    "several Jobs": ({"jobs": ["a/j", "a/k"], "task": "w"}, ["j-w-0", "k-w-0"]),
    "Jobs by a pattern": ({"jobs": "a/k*"}, ["k-w-0"]),
    "all Jobs, which single pods are not of": ({"jobs": "*"}, ["j-w-0", "j-x-0", "k-w-0"]),
    "pods by name": ({"pods": ["a/lone", "a/absent"]}, ["lone"]),
    "pods by a pattern": ({"pods": "a/*-0"}, ["j-w-0", "j-x-0", "k-w-0"]),
    "another namespace has none": ({"pods": "b/*"}, []),
    "a PodGroup's pods": ({"podGroup": "a/j-1"}, ["j-w-0", "j-x-0"]),
    "a PodGroup by its owner": ({"podGroup": "ownedBy:job/a/j"}, ["j-w-0", "j-x-0"]),
    "a PodGroup without an owner there": ({"podGroup": "ownedBy:job/a/k"}, []),
    "a PodGroup's queue": ({"queue": "q"}, ["j-w-0", "j-x-0"]),
    "a pod's own queue": ({"queue": "own"}, ["lone"]),
    "the bound ones": ({"boundPodsOf": {"job": "a/j"}}, ["j-w-0"]),
    "a failed pod is not bound": ({"boundPodsOf": {"pods": "a/*"}}, ["j-w-0"]),
    "all that is named must hold": ({"queue": "q", "pods": "a/*-x-*"}, ["j-x-0"]),
}


@pytest.mark.parametrize("case", PICKED.values(), ids=PICKED.keys())
def test_a_selection_picks_pods(case: tuple[dict[str, Any], list[str]]) -> None:
    keys, want = case
    assert [pod["metadata"]["name"] for pod in select(**keys).of(SCENE)] == want


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "names a Job, pods, a PodGroup, a queue or an object"),
    "a task alone": ({"task": "w"}, "names a Job"),
    "a task of pods": ({"pods": "a/*", "task": "w"}, "`task` goes with a Job"),
    "a number of a Job": ({"job": "a/j", "count": 2}, "`count` goes with `anyBoundOf`"),
    "a number below one": ({"anyBoundOf": ["a/j"], "count": 0}, "`count` is 1 or more"),
    "a key that there is not": ({"jobb": "a/j"}, "unknown field `jobb`"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_a_selection_makes_sense(case: tuple[dict[str, Any], str]) -> None:
    keys, why = case
    with pytest.raises(msgspec.ValidationError, match=why):
        select(**keys)


def test_a_selection_reads_as_it_was_written() -> None:
    assert str(select(jobs=["a/j", "a/k"], task="w")) == "jobs a/j a/k, task w"
    assert str(select(boundPodsOf={"job": "a/j"})) == "boundPodsOf (job a/j)"


def test_the_leader_has_most_bound_pods() -> None:
    assert leader(["a/k", "a/j"], SCENE) == "a/j"
    assert leader(["a/k", "a/z"], SCENE) == "a/k"


def test_a_pattern_stands_for_what_there_is_of_it() -> None:
    assert expanded(["a/k*", "a/j", "b/*"], ["a/k2", "a/k1"]) == ["a/k1", "a/k2", "a/j"]
