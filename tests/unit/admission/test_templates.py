"""Pod templates: the mistakes that are found before any pod is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.admission import templates
from pumice.core.api.batch import NumaPolicy, TaskSpec
from tests.unit.admission.builders import container, messages, template

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and"
    " must start and end with an alphanumeric character"
)
AT = "spec.task[2].template.spec"
BOX = f"{AT}.containers[0]"


@dataclass(frozen=True)
class Case:
    template: Any
    want: list[str]
    numa: NumaPolicy | None = None


def asking(requests: Any = None, limits: Any = None) -> dict[str, Any]:
    """Return a template whose container asks for resources."""
    return template(container(resources={"requests": requests, "limits": limits}))


CASES = {
    "a template in order": Case(
        {
            "metadata": {"labels": {"example.com/a": "b", "c": ""}, "annotations": {"A.b/C": "?"}},
            "spec": {
                "restartPolicy": "OnFailure",
                "containers": [
                    container(
                        ports=[{"containerPort": 80}],
                        env=[{"name": "A.b-c"}],
                        volumeMounts=[{"name": "v", "mountPath": "/v"}],
                        resources={"requests": {"cpu": "500m"}, "limits": {"cpu": 1}},
                        anything={"at": "all"},
                    ),
                    container("two"),
                ],
                "initContainers": [container("init")],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
        },
        [],
    ),
    "nulls count as absent": Case(
        {
            "metadata": None,
            "spec": {"containers": [container(ports=None, env=None)], "volumes": None},
        },
        [],
    ),
    "no template": Case(None, [f"{AT}.containers: Required value"]),
    "no containers": Case({"spec": {}}, [f"{AT}.containers: Required value"]),
    "a container of another form": Case(
        {"spec": {"containers": ["busybox"]}},
        ["spec.task[2].template: Expected `object`, got `str` - at `$.spec.containers[0]`"],
    ),
    "a container without name and image": Case(
        {"spec": {"containers": [{}]}},
        [f"{BOX}.name: Required value", f"{BOX}.image: Required value"],
    ),
    "a container that no host could be called": Case(
        template(container("My_Main")), [f'{BOX}.name: Invalid value: "My_Main": {LABEL}']
    ),
    "two containers of one name, one of them an init container": Case(
        template(container("a"), container("b"), initContainers=[container("a")]),
        [f'{AT}.initContainers[0].name: Duplicate value: "a"'],
    ),
    "a port beyond the last": Case(
        template(container(ports=[{"containerPort": 70000}, {"containerPort": 1, "hostPort": -1}])),
        [
            f'{BOX}.ports[0].containerPort: Invalid value: "70000": must be between 1 and 65535,'
            " inclusive",
            f'{BOX}.ports[1].hostPort: Invalid value: "-1": must be between 1 and 65535, inclusive',
        ],
    ),
    "a variable that no shell takes": Case(
        template(container(env=[{"name": "A=B"}, {}])),
        [
            f'{BOX}.env[0].name: Invalid value: "A=B": a valid environment variable name must'
            " consist only of printable ASCII but '='",
            f"{BOX}.env[1].name: Required value",
        ],
    ),
    "a mount of no volume": Case(
        template(container(volumeMounts=[{"name": "v", "mountPath": "/v"}])),
        [f'{BOX}.volumeMounts[0].name: Not found: "v"'],
    ),
    "two mounts at one path": Case(
        template(
            container(volumeMounts=[{"name": "v", "mountPath": "/v"}] * 2),
            volumes=[{"name": "v"}],
        ),
        [f'{BOX}.volumeMounts[1].mountPath: Invalid value: "/v": must be unique'],
    ),
    "two volumes of one name": Case(
        template(volumes=[{"name": "v"}, {"name": "v"}, {}]),
        [
            f'{AT}.volumes[1].name: Duplicate value: "v"',
            f"{AT}.volumes[2].name: Required value",
        ],
    ),
    "a restart policy that there is not": Case(
        template(restartPolicy="Sometimes"),
        [
            f'{AT}.restartPolicy: Unsupported value: "Sometimes": supported values: "Always",'
            ' "OnFailure", "Never"'
        ],
    ),
    "a request above the limit": Case(
        asking({"cpu": "2"}, {"cpu": "1500m"}),
        [
            f'{BOX}.resources.requests: Invalid value: "2": must be less than or equal to cpu'
            " limit of 1500m"
        ],
    ),
    "less than nothing": Case(
        asking({"memory": "-1Gi"}),
        [
            f'{BOX}.resources.requests[memory]: Invalid value: "-1Gi": must be greater than or'
            " equal to 0"
        ],
    ),
    "a quantity that is none": Case(
        asking({"cpu": "many"}),
        [f'{BOX}.resources.requests: Invalid value: "many": is not a quantity'],
    ),
    "a device without a limit": Case(
        asking({"example.com/gpu": 1}),
        [
            f"{BOX}.resources.limits: Required value: Limit must be set for non overcommitable"
            " resources"
        ],
    ),
    "a device that is asked for in part": Case(
        asking({"example.com/gpu": 1}, {"example.com/gpu": 2}),
        [
            f'{BOX}.resources.requests: Invalid value: "1": must be equal to example.com/gpu'
            " limit of 2"
        ],
    ),
    "half a device": Case(
        asking(limits={"example.com/gpu": "500m"}),
        [f'{BOX}.resources.limits[example.com/gpu]: Invalid value: "500m": must be an integer'],
    ),
    "a label of a wrong form": Case(
        template() | {"metadata": {"labels": {"a/b/c": "x y"}}},
        [
            'spec.task[2].template.metadata.labels: Invalid value: "a/b/c": prefix part a lowercase'
            " RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
            " and must start and end with an alphanumeric character",
            'spec.task[2].template.metadata.labels: Invalid value: "x y": a valid label must'
            " consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
            " alphanumeric character",
        ],
    ),
    "a NUMA policy and part of a CPU": Case(
        template(
            container(resources={"requests": {"cpu": "2"}}),
            container("b", resources={"requests": {"cpu": "1500m"}}),
            initContainers=[container("c")],
        ),
        [
            "the cpu request isn't an integer in spec.task[2] container[1].",
            "the cpu request isn't an integer in spec.task[2] container[2].",
        ],
        numa="restricted",
    ),
    "no NUMA policy and part of a CPU": Case(
        template(container(resources={"requests": {"cpu": "1500m"}})), [], numa="none"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_template(case: Case) -> None:
    task = TaskSpec(name="w", template=case.template, topology_policy=case.numa)
    assert messages(templates.check(task, 2)) == case.want


def test_an_error_says_where_it_is() -> None:
    (error,) = templates.check(TaskSpec(template=template(container(image=""))), 0)
    assert error.field == "spec.tasks[0].template.spec.containers[0].image"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 70_000) | st.text(max_size=5) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
FIELDS = ("name", "image", "ports", "env", "volumeMounts", "resources")
CONTAINER = st.dictionaries(st.sampled_from(FIELDS), JSON)
SPEC = st.dictionaries(
    st.sampled_from(("containers", "initContainers", "volumes", "restartPolicy", "resources")),
    JSON | st.lists(CONTAINER, max_size=3),
)


@given(st.dictionaries(st.sampled_from(("metadata", "spec")), JSON | SPEC) | st.none())
def test_anything_is_answered(given_template: Any) -> None:
    task = TaskSpec(template=given_template, topology_policy="best-effort")
    assert all(isinstance(message, str) for message in messages(templates.check(task, 0)))
