"""Tasks: a class that was read of another pod is the one that would be read of this one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core import names
from pumice.core.api.core import Pod
from pumice.core.model.signatures import selector_keys
from pumice.core.model.tasks import TaskClasses, TaskSource
from pumice.core.resources import ResourceSpace
from tests.effort import examples

Json = dict[str, Any]
LABEL_KEYS = frozenset({"app"})
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def asks(cpu: str, **more: str) -> Json:
    return {"requests": {"cpu": cpu, **more}}


def a_container(name: str = "c", cpu: str = "1", **more: Any) -> Json:
    return {"name": name, "image": "i", "resources": asks(cpu), **more}


def near(app: str) -> Json:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"tier": app}}}


def wish(app: str) -> Json:
    return {"weight": 1, "podAffinityTerm": near(app)}


def named(node: str) -> Json:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}}


def resized(cpu: str, **more: Any) -> Json:
    return {"containerStatuses": [{"name": "c", "resources": asks(cpu)}], **more}


INFEASIBLE = {"type": "PodResizePending", "reason": "Infeasible", "status": "True"}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
#: what a pod may say, by the part of it that says so; the first is that it says nothing
SAYINGS: dict[str, list[Any]] = {
    "namespace": ["ns", "other"],
    "labels": [{}, {"app": "a"}, {"app": "b"}, {"tier": "a"}, {"index": "1"}],
    "annotations": [{}, {names.PREEMPTABLE: "true"}, {names.PREEMPTABLE: "false"}, {"x": "1"}],
    "containers": [
        [a_container()],
        [a_container(cpu="2")],
        [a_container(image="j")],
        [a_container(ports=[{"hostPort": 80}])],
        [a_container(), a_container("d")],
        [{"name": "c"}],
    ],
    "initContainers": [
        None,
        [a_container("i", "3")],
        [a_container("i", "3", restartPolicy="Always")],
    ],
    "resources": [None, asks("4")],
    "overhead": [None, {"cpu": "250m"}],
    "nodeName": ["", "n1", "n2"],
    "nodeSelector": [None, {"disk": "ssd"}],
    "affinity": [
        None,
        named("n1"),
        named("n2"),
        {"podAffinity": {REQUIRED: [near("a")]}},
        {"podAffinity": {PREFERRED: [wish("a")]}},
        {"podAffinity": {PREFERRED: [wish("b")]}},
        {"podAntiAffinity": {REQUIRED: [near("a")]}},
        {"podAntiAffinity": {PREFERRED: [wish("a")]}},
    ],
    "tolerations": [None, [{"operator": "Exists"}], [{"key": "k", "operator": "Exists"}]],
    "topologySpreadConstraints": [
        None,
        [{**SPREAD, "labelSelector": {"matchLabels": {"app": "a"}}}],
    ],
    "status": [
        {},
        {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        resized("3"),
        resized("3", conditions=[INFEASIBLE]),
        {"initContainerStatuses": [{"name": "i", "allocatedResources": {"cpu": "5"}}]},
    ],
}
METADATA = ("namespace", "labels", "annotations")


def a_pod(said: Json) -> Pod:
    spec = {k: v for k, v in said.items() if k not in (*METADATA, "status")}
    metadata = {"name": "p", "uid": "p", **{k: said[k] for k in METADATA}}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": said["status"]}, Pod)


PLAIN = {part: said[0] for part, said in SAYINGS.items()}


@st.composite
def siblings(draw: st.DrawFn) -> list[Pod]:
    """Return pods that differ in one part, and are plain in most of the others."""
    both = dict(PLAIN)
    for part in draw(st.sets(st.sampled_from(list(SAYINGS)), max_size=3)):
        both[part] = draw(st.sampled_from(SAYINGS[part]))
    differs = draw(st.sampled_from(list(SAYINGS)))
    return [a_pod({**both, differs: value}) for value in draw(st.permutations(SAYINGS[differs]))]


@settings(max_examples=examples(600))
@given(siblings())
def test_a_class_that_is_known_is_the_one_that_would_be_read(pods: list[Pod]) -> None:
    space = ResourceSpace()
    source = TaskSource(space, TaskClasses(), frozenset({"volcano"}))
    keys = [LABEL_KEYS | selector_keys(pod) for pod in pods]

    kept = [source.task(pod, known) for pod, known in zip(pods, keys, strict=True)]

    for task, pod, known in zip(kept, pods, keys, strict=True):
        anew = TaskSource(space, TaskClasses(), frozenset({"volcano"})).task(pod, known)
        assert task.cls.req.tolist() == anew.cls.req.tolist()
        assert task.cls.signature is anew.cls.signature


ALIKE: dict[str, list[Json]] = {
    "labels that nobody selects by": [{"labels": {"index": "1"}}, {"labels": {"index": "2"}}],
    "annotations that nobody reads": [{"annotations": {"x": "1"}}, {"annotations": {"x": "2"}}],
    "a status that asks for nothing": [{}, {"status": SAYINGS["status"][1]}],
    "where bound pods were pinned": [
        {"nodeName": node, "affinity": named(node)} for node in ("n1", "n2")
    ],
}


@pytest.mark.parametrize("said", ALIKE.values(), ids=ALIKE.keys())
def test_pods_are_read_once_that_differ_only_in(said: list[Json]) -> None:
    source = TaskSource(ResourceSpace(), TaskClasses(), frozenset({"volcano"}))

    tasks = [source.task(a_pod({**PLAIN, **one}), LABEL_KEYS) for one in said]

    assert len(source._read) == 1
    assert len({task.cls for task in tasks}) == 1
