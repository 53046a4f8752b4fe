"""
Templates: raw JSON that users wrote, read without trust and extended without loss.

What has another form than Kubernetes gives it is left as it is: the API server refuses it in
words that its owner understands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pumice.core.api.meta import Template


def mapping(value: object) -> Template:
    """Return a shallow copy of a JSON object; anything else counts as an empty one."""
    return dict(value) if isinstance(value, dict) else {}


def text(value: object) -> str:
    """Return a string; anything else counts as an empty one."""
    return value if isinstance(value, str) else ""


def copied(value: Any) -> Any:
    """Return a deep copy of JSON data."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


def extend(body: Template, field: str, items: Iterable[Template]) -> None:
    """Append to a list of the body, which may be absent; the old list object is not changed."""
    old = body.get(field)
    if old is None or isinstance(old, list):
        body[field] = [*(old or ()), *items]


def containers(spec: Template) -> list[Template]:
    """Return the main containers of a pod's specification, then the init containers."""
    lists = (spec.get("containers"), spec.get("initContainers"))
    return [box for found in lists if isinstance(found, list) for box in found if is_object(box)]


def is_object(value: object) -> bool:
    """Tell whether a value is a JSON object."""
    return isinstance(value, dict)
