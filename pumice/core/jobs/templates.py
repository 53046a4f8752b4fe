"""
Templates: raw JSON that users wrote, read without trust and extended without loss.

What has another form than Kubernetes gives it is left as it is: the API server refuses it in
words that its owner understands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.core.api.meta import Template

MAIN: Final = ("containers",)
MAIN_AND_INIT: Final = ("containers", "initContainers")


def mapping(value: object) -> Template:
    """Return a shallow copy of a JSON object; anything else counts as an empty one."""
    return dict(value) if isinstance(value, dict) else {}


def text(value: object) -> str:
    """Return a string; anything else counts as an empty one."""
    return value if isinstance(value, str) else ""


def extend(body: Template, field: str, items: Sequence[Template]) -> None:
    """Append to a list of the body, which may be absent; the old list object is not changed."""
    old = body.get(field)
    if items and (old is None or isinstance(old, list)):
        body[field] = [*(old or ()), *items]


def variable(name: str, value: str) -> Template:
    """Return a variable of a container's environment."""
    return {"name": name, "value": value}


def open_port(container: Template, name: str, number: int) -> None:
    """Name a port of the container, unless it has one of that number."""
    old = container.get("ports")
    found = old if isinstance(old, list) else ()
    if not any(isinstance(port, dict) and port.get("containerPort") == number for port in found):
        extend(container, "ports", [{"name": name, "containerPort": number}])


def containers(spec: Template, fields: Sequence[str] = MAIN_AND_INIT) -> list[Template]:
    """
    Return the containers of a pod's specification.

    They are made the specification's own, so that changing one changes no other pod's.
    """
    found: list[Template] = []
    for field in fields:
        if isinstance(old := spec.get(field), list):
            spec[field] = [dict(box) if isinstance(box, dict) else box for box in old]
            found += [box for box in spec[field] if isinstance(box, dict)]
    return found
