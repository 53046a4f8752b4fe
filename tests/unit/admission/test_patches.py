"""Patches of defaults: no more than what changed, and the whole of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core import names
from pumice.core.admission import jobs, pods, queues
from pumice.core.admission.drafts import JobDraft, QueueDraft
from pumice.core.admission.patches import difference
from pumice.core.api.core import Pod
from pumice.core.api.meta import Struct
from tests.fakeapi.patching import operations


@dataclass(frozen=True)
class Case:
    type: type[Struct]
    given: dict[str, Any]
    want: list[dict[str, Any]]


def filled(obj: Any) -> Any:
    match obj:
        case JobDraft():
            return jobs.defaults(obj)
        case QueueDraft():
            return queues.defaults(obj)
    return pods.gated(obj, "ns", ["volcano"])


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


CASES = {
    "a job that leaves everything open": Case(
        JobDraft,
        {"spec": {"tasks": [{"name": "", "replicas": 2, "template": {"spec": {"x": None}}}]}},
        [
            add("/spec/schedulerName", "volcano"),
            add("/spec/minAvailable", 2),
            add("/spec/tasks/0/name", "default0"),
            add("/spec/tasks/0/minAvailable", 2),
            add("/spec/tasks/0/maxRetry", 3),
        ],
    ),
    "only what changed deep down": Case(
        JobDraft,
        {
            "spec": {
                "schedulerName": "volcano",
                "minAvailable": 1,
                "plugins": {"pytorch": ["--x"], "svc": None},
                "tasks": [
                    {
                        "name": "a",
                        "minAvailable": 1,
                        "maxRetry": 3,
                        "template": {"spec": {"hostNetwork": True, "containers": []}},
                    }
                ],
            }
        },
        [add("/spec/tasks/0/template/spec/dnsPolicy", "ClusterFirstWithHostNet")],
    ),
    "a plugin that another needs": Case(
        JobDraft,
        {"spec": {"schedulerName": "volcano", "minAvailable": 1, "plugins": {"mpi": None}}},
        [add("/spec/plugins/svc", []), add("/spec/plugins/ssh", [])],
    ),
    "a retry count of zero, which is the default's other name": Case(
        JobDraft,
        {"spec": {"schedulerName": "volcano", "minAvailable": 1, "maxRetry": 0}},
        [add("/spec/maxRetry", 3)],
    ),
    "a queue of weight zero": Case(
        QueueDraft,
        {"spec": {"weight": 0, "reclaimable": False}},
        [add("/spec/weight", 1)],
    ),
    "annotations, whose keys have slashes": Case(
        QueueDraft,
        {
            "metadata": {
                "annotations": {names.HIERARCHY: "a", names.HIERARCHY_WEIGHTS: "2", "b": "c"}
            },
            "spec": {"weight": 1, "reclaimable": True},
        },
        [
            add("/metadata/annotations/volcano.sh~1hierarchy", "root/a"),
            add("/metadata/annotations/volcano.sh~1hierarchy-weights", "1/2"),
        ],
    ),
    "a gate where there is none": Case(
        Pod,
        {"spec": {"schedulerName": "volcano", "schedulingGates": None}},
        [add("/spec/schedulingGates", [{"name": names.GATE_HELD}])],
    ),
    "a gate behind others": Case(
        Pod,
        {"spec": {"schedulerName": "volcano", "schedulingGates": [{"name": "a"}]}},
        [add("/spec/schedulingGates/-", {"name": names.GATE_HELD})],
    ),
    "nothing": Case(Pod, {"spec": {"schedulerName": "other"}}, []),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_difference(case: Case) -> None:
    before = msgspec.convert(case.given, case.type)
    after = filled(before)

    steps = [msgspec.to_builtins(step) for step in difference(before, after)]

    assert sorted(steps, key=lambda s: s["path"]) == sorted(case.want, key=lambda s: s["path"])
    assert filled(msgspec.convert(operations(case.given, steps), case.type)) == after


TASKS = st.lists(
    st.fixed_dictionaries(
        {"replicas": st.integers(0, 9)},
        optional={
            "name": st.sampled_from(("", "a", "b")),
            "minAvailable": st.none() | st.integers(0, 9),
            "maxRetry": st.integers(0, 2),
            "template": st.sampled_from(({"spec": {"hostNetwork": True}}, {"a~/b": 1}, None)),
        },
    ),
    max_size=4,
)
PLUGINS: st.SearchStrategy[Any] = st.dictionaries(
    st.sampled_from(("mpi", "svc", "env", "ray")), st.none() | st.just([])
)


@given(TASKS | st.none(), PLUGINS | st.none(), st.integers(0, 3))
def test_a_patched_job_is_the_job_with_its_defaults(tasks: Any, plugins: Any, retry: int) -> None:
    given_job = {"spec": {"tasks": tasks, "plugins": plugins, "maxRetry": retry}}
    before = msgspec.convert(given_job, JobDraft)
    after = jobs.defaults(before)

    steps = [msgspec.to_builtins(step) for step in difference(before, after)]

    assert msgspec.convert(operations(given_job, steps), JobDraft) == after
