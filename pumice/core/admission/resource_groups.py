"""
Resource groups: where the pods of a namespace, or with an annotation, shall run.

    resourceGroups:
    - resourceGroup: gpu              # its name; also what the annotation
      object:                         #   volcano.sh/resource-group may say
        key: namespace                # or annotation, with values such as "team: vision"
        value: [training]
      schedulerName: volcano
      labels: {node-kind: gpu}        # become the node selector
      tolerations: [{key: gpu, operator: Exists}]
      affinity: '{"nodeAffinity": ...}'

The first group that matches a pod is applied, and no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import yaml

from pumice.core import names
from pumice.core.admission.patches import Operation
from pumice.core.api.core import Pod, Toleration
from pumice.core.api.meta import Struct

_NAMESPACE: Final = "namespace"
_ANNOTATION: Final = "annotation"


class ResourceGroupsError(ValueError):
    """The configuration cannot be used; the text says where and why."""


class Matched(Struct):
    """Which pods are in a group."""

    key: str = ""
    value: list[str] | None = None


class ResourceGroup(Struct):
    """One group."""

    resource_group: str = ""
    object: Matched = msgspec.field(default_factory=Matched)
    scheduler_name: str = ""
    tolerations: list[Toleration] | None = None
    labels: dict[str, str] | None = None
    #: JSON
    affinity: str = ""

    def annotations(self) -> Iterator[tuple[str, str]]:
        """Yield the annotations, one of which puts a pod into the group."""
        if self.object.key == _ANNOTATION or not self.object.key:
            for text in self.object.value or ():
                yield from _pairs(text).items()
        if not self.object.key and self.resource_group:
            yield names.RESOURCE_GROUP, self.resource_group

    def namespaces(self) -> Sequence[str]:
        """Return the namespaces whose pods are in the group."""
        return (self.object.value or []) if self.object.key == _NAMESPACE else []

    def holds(self, pod: Pod, namespace: str) -> bool:
        """Tell whether a pod is in the group."""
        notes = pod.metadata.annotations or {}
        return namespace in self.namespaces() or any(
            notes.get(key) == value for key, value in self.annotations()
        )

    def steps(self, pod: Pod) -> Iterator[Operation]:
        """Yield the changes of a pod that is in the group."""
        spec = pod.spec
        if self.labels:
            selector = {**(spec.node_selector or {}), **self.labels}
            yield Operation("add", "/spec/nodeSelector", selector)
        if self.affinity and spec.affinity is None:
            yield Operation("add", "/spec/affinity", msgspec.json.decode(self.affinity))
        tolerations = msgspec.to_builtins(self.tolerations or [])
        if tolerations and not spec.tolerations:
            yield Operation("add", "/spec/tolerations", tolerations)
        elif tolerations:
            yield from (Operation("add", "/spec/tolerations/-", each) for each in tolerations)
        if self.scheduler_name:
            yield Operation("add", "/spec/schedulerName", self.scheduler_name)


class Configuration(Struct):
    """The configuration file."""

    resource_groups: list[ResourceGroup] | None = None


def parse(text: str) -> list[ResourceGroup]:
    """Return the groups of a file; raise ResourceGroupsError."""
    try:
        tree = yaml.safe_load(text) or {}
        groups = msgspec.convert(_spelled(tree), Configuration).resource_groups or []
    except (yaml.YAMLError, msgspec.ValidationError, RecursionError) as error:
        raise ResourceGroupsError(str(error)) from error
    for group in groups:
        try:
            msgspec.json.decode(group.affinity or "{}", type=dict[str, Any])
        except msgspec.DecodeError as error:
            text = f"affinity of resource group {group.resource_group}: {error}"
            raise ResourceGroupsError(text) from error
    return groups


def group_of(groups: Sequence[ResourceGroup], pod: Pod, namespace: str) -> ResourceGroup | None:
    """Return the group that a pod is in."""
    return next((group for group in groups if group.holds(pod, namespace)), None)


def membership(groups: Sequence[ResourceGroup]) -> str:
    """Return CEL that holds for the pods of any group."""
    namespaces = [_text(name) for group in groups for name in group.namespaces()]
    pairs = dict.fromkeys(pair for group in groups for pair in group.annotations())
    return " || ".join(
        [
            f"request.namespace in [{', '.join(namespaces)}]",
            *(f"{_annotation(key)} == optional.of({_text(value)})" for key, value in pairs),
        ]
    )


def _annotation(key: str) -> str:
    return f"object.metadata.?annotations[?{_text(key)}]"


def _text(text: str) -> str:
    """Return a text as it stands in CEL."""
    return msgspec.json.encode(text).decode()


def _spelled(value: Any) -> Any:
    """Return the tree with a key that Volcano's parser knows in lower case alone."""
    if isinstance(value, Mapping):
        renamed = {"tolerationseconds": "tolerationSeconds"}
        return {renamed.get(key, key): _spelled(item) for key, item in value.items()}
    return [_spelled(item) for item in value] if isinstance(value, list) else value


def _pairs(text: str) -> dict[str, str]:
    """Return the annotations of a value such as `key: value`."""
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
    return {str(k): str(v) for k, v in tree.items()} if isinstance(tree, dict) else {}
