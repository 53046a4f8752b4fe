"""
Pod templates: what the API server would refuse about the pods that a task makes.

A template is passed through untouched, so nothing is certain about its form. What does not have
the form that Kubernetes gives it is one error; what does is checked for the mistakes that people
make. Nulls count as absent, as they do in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pumice.core.admission import containers, formats
from pumice.core.admission.containers import Container
from pumice.core.admission.errors import FieldError, invalid
from pumice.core.api.batch import TaskSpec
from pumice.core.api.core import ResourceRequirements, Volume
from pumice.core.api.meta import ObjectMeta, Struct, Template

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_ANY_NUMA: Final = ("", "none")
_TOTAL_ANNOTATIONS: Final = 256 * 1024


class PodSpec(Struct):
    """A pod's specification with what is checked of it."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    restart_policy: str = ""
    volumes: list[Volume] | None = None
    resources: ResourceRequirements | None = None


class PodTemplate(Struct):
    """A template with what is checked of it."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


def check(task: TaskSpec, index: int) -> list[FieldError]:
    """Return what is wrong with the template of the task at `index`."""
    field = f"spec.tasks[{index}].template"
    at = f"spec.task[{index}]."
    try:
        template = msgspec.convert(_without_nulls(task.template or {}), PodTemplate)
    except (msgspec.ValidationError, RecursionError) as error:
        return [FieldError(field, f"{at}template: {error}")]
    wrong = [*_metadata(template.metadata), *_spec(template.spec)]
    found = [FieldError(f"spec.tasks[{index}].{w.partition(':')[0]}", at + w) for w in wrong]
    if (task.topology_policy or "") in _ANY_NUMA:
        return found
    boxes = [*(template.spec.containers or ()), *(template.spec.init_containers or ())]
    return found + [
        FieldError(field, f"the cpu request isn't an integer in {at[:-1]} container[{number}].")
        for number, box in enumerate(boxes)
        if not containers.asks_whole_cpus(box)
    ]


def _metadata(meta: ObjectMeta) -> Iterator[str]:
    for key, value in (meta.labels or {}).items():
        at = "template.metadata.labels"
        yield from (invalid(at, key, why) for why in formats.qualified_name(key))
        yield from (invalid(at, value, why) for why in formats.label_value(value))
    for key in meta.annotations or {}:
        at = "template.metadata.annotations"
        yield from (invalid(at, key, why) for why in formats.qualified_name(key.lower()))
    if sum(len(k) + len(v) for k, v in (meta.annotations or {}).items()) > _TOTAL_ANNOTATIONS:
        yield f"template.metadata.annotations: Too long: may not be more than {_TOTAL_ANNOTATIONS}"


def _spec(spec: PodSpec) -> Iterator[str]:
    at = "template.spec"
    own: set[str] = set()
    for index, volume in enumerate(spec.volumes or ()):
        yield from _volume(volume.name, f"{at}.volumes[{index}].name", own)
    if not spec.containers:
        yield f"{at}.containers: Required value"
    taken: set[str] = set()
    yield from containers.check(spec.containers or (), f"{at}.containers", taken, own)
    yield from containers.check(spec.init_containers or (), f"{at}.initContainers", taken, own)
    if spec.resources:
        yield from containers.resources(spec.resources, f"{at}.resources")
    if spec.restart_policy and spec.restart_policy not in RESTART_POLICIES:
        supported = ", ".join(f'"{policy}"' for policy in RESTART_POLICIES)
        got = spec.restart_policy
        yield f'{at}.restartPolicy: Unsupported value: "{got}": supported values: {supported}'


def _volume(name: str, at: str, taken: set[str]) -> Iterator[str]:
    if not name:
        yield f"{at}: Required value"
        return
    yield from (invalid(at, name, why) for why in formats.dns_label(name))
    if name in taken:
        yield f'{at}: Duplicate value: "{name}"'
    taken.add(name)


def _without_nulls(value: Any) -> Template | Any:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    return [_without_nulls(v) for v in value] if isinstance(value, list) else value
