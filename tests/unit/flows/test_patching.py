"""What a patch makes of the specification of a Job."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.flows.patching import patched

Json = dict[str, Any]


def of_container(container: Json) -> Json:
    return {"tasks": [{"name": "w", "template": {"spec": {"containers": [container]}}}]}


MAIN: Json = {"name": "main", "image": "a:1", "command": ["run", "--fast"]}
CASES: dict[str, tuple[Json, Json, Json]] = {
    "what the patch does not mention stays": (
        {"queue": "q", "maxRetry": 3},
        {"queue": "p"},
        {"queue": "p", "maxRetry": 3},
    ),
    "null removes": ({"minSuccess": 1, "queue": "q"}, {"minSuccess": None}, {"queue": "q"}),
    "null of what is not there is nothing": ({"queue": "q"}, {"minSuccess": None}, {"queue": "q"}),
    "a container is known by its name": (
        of_container(MAIN),
        of_container({"name": "main", "image": "a:2"}),
        of_container({**MAIN, "image": "a:2"}),
    ),
    "a command is replaced": (
        of_container(MAIN),
        of_container({"name": "main", "command": ["wait"]}),
        of_container({**MAIN, "command": ["wait"]}),
    ),
    "one of another name is added": (
        {"containers": [MAIN]},
        {"containers": [{"name": "side", "image": "b"}]},
        {"containers": [MAIN, {"name": "side", "image": "b"}]},
    ),
    "one without a name is that of its place": (
        {"tasks": [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 1}]},
        {"tasks": [{"replicas": 2}]},
        {"tasks": [{"name": "a", "replicas": 2}, {"name": "b", "replicas": 1}]},
    ),
    "one without a name beyond the last is added": (
        {"tasks": []},
        {"tasks": [{"replicas": 2}]},
        {"tasks": [{"replicas": 2}]},
    ),
    "a variable has one source": (
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}, {"name": "B", "value": "1"}]},
        {"env": [{"name": "A", "value": "2"}]},
        {"env": [{"name": "A", "value": "2"}, {"name": "B", "value": "1"}]},
    ),
    "volumes of pods are known by name": (
        {"volumes": [{"name": "data", "emptyDir": {}}]},
        {"volumes": [{"name": "data", "hostPath": {"path": "/d"}}]},
        {"volumes": [{"name": "data", "hostPath": {"path": "/d"}}]},
    ),
    "volumes of Jobs are known by their place": (
        {"volumes": [{"mountPath": "/in", "volumeClaimName": "a"}]},
        {"volumes": [{"mountPath": "/out", "volumeClaimName": "b"}]},
        {
            "volumes": [
                {"mountPath": "/in", "volumeClaimName": "a"},
                {"mountPath": "/out", "volumeClaimName": "b"},
            ]
        },
    ),
    "one volume may be mounted twice": (
        {"volumeMounts": [{"name": "d", "mountPath": "/a"}, {"name": "d", "mountPath": "/b"}]},
        {"volumeMounts": [{"mountPath": "/b", "readOnly": True}]},
        {
            "volumeMounts": [
                {"name": "d", "mountPath": "/a"},
                {"name": "d", "mountPath": "/b", "readOnly": True},
            ]
        },
    ),
    "requests are merged": (
        {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
        {"resources": {"requests": {"cpu": "2"}}},
        {"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}},
    ),
    "an affinity is replaced as a whole": (
        {"affinity": {"nodeAffinity": {"a": 1}}},
        {"affinity": {"podAffinity": {"b": 2}}},
        {"affinity": {"podAffinity": {"b": 2}}},
    ),
    "policies are replaced": (
        {"policies": [{"event": "PodFailed", "action": "RestartJob"}]},
        {"policies": [{"event": "PodEvicted", "action": "AbortJob"}]},
        {"policies": [{"event": "PodEvicted", "action": "AbortJob"}]},
    ),
    "plugins are merged by name, their arguments replaced": (
        {"plugins": {"svc": ["--a"], "env": []}},
        {"plugins": {"svc": ["--b"], "ssh": []}},
        {"plugins": {"svc": ["--b"], "env": [], "ssh": []}},
    ),
    "arguments of a plugin called like a list are arguments": (
        {"plugins": {"env": ["--a"]}},
        {"plugins": {"env": ["--b"]}},
        {"plugins": {"env": ["--b"]}},
    ),
    "an object takes the place of what is none": ({"x": 1}, {"x": {"y": 2}}, {"x": {"y": 2}}),
}


@pytest.mark.parametrize(("old", "patch", "want"), CASES.values(), ids=CASES.keys())
def test_patched(old: Json, patch: Json, want: Json) -> None:
    before = repr((old, patch))
    assert patched(old, patch) == want
    assert repr((old, patch)) == before


LEAVES = st.none() | st.integers(0, 2) | st.text("ab", max_size=2)
KEYS = st.sampled_from(("name", "tasks", "env", "volumes", "affinity", "x"))
OBJECTS = st.recursive(
    st.dictionaries(KEYS, LEAVES, max_size=3),
    lambda inner: st.dictionaries(KEYS, LEAVES | inner | st.lists(inner, max_size=2), max_size=3),
    max_leaves=8,
)


@given(OBJECTS)
def test_an_empty_patch_changes_nothing(old: Json) -> None:
    assert patched(old, {}) == old


@given(OBJECTS, OBJECTS)
def test_once_more_changes_nothing_where_no_entry_is_added(old: Json, patch: Json) -> None:
    once = patched(old, patch)
    if lengths(once) == lengths(old):
        assert patched(once, patch) == once


def lengths(value: object) -> object:
    """Return the shape of all lists in a value."""
    if isinstance(value, dict):
        return {
            key: lengths(inner) for key, inner in value.items() if isinstance(inner, dict | list)
        }
    if isinstance(value, list):
        return [lengths(inner) for inner in value]
    return None
