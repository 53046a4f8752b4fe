"""
Objects that look like those of a CRD, and questions about them.

They have its fields, with values in and out of their bounds.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from pumice.core.api.crd import KINDS, manifest
from tests.adapters.webhooks.world import TABLE, asked
from webhooks.table import Webhook

WORDS = (
    "",
    "a",
    "b",
    "A_B",
    "default",
    "root",
    "volcano",
    "*",
    "1",
    "-1",
    "1Gi",
    "500m",
    "* * * * *",
    "*/0 1-0 * * *",
    "Europe/Lisbon",
    "../etc",
    "node-[0-9",
    r"(a)\1",
    "--master",
    "\N{SNOWMAN}" * 70,
)
ODD: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just([])
)
FREE = st.recursive(
    ODD | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ("spec", "containers", "name", "image", "resources", "requests", "limits", "cpu")
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@st.composite
def reviews(draw: st.DrawFn) -> tuple[Webhook, bytes]:
    """Return a path and a question about objects that look like those of its kind."""
    webhook = TABLE[draw(st.sampled_from(sorted(TABLE)))]
    shapes = objects(webhook.resource)
    operation = draw(st.sampled_from(webhook.operations))
    obj = None if operation == "DELETE" else draw(shapes)
    old = None if operation == "CREATE" else draw(shapes)
    return webhook, asked(webhook, obj, old, operation=operation)


@cache
def objects(resource: str) -> st.SearchStrategy[Any]:
    """Return what may come for a resource; anything for one that is not ours."""
    for kind in KINDS:
        if kind.plural == resource:
            version = manifest(kind)["spec"]["versions"][0]
            return _like(version["schema"]["openAPIV3Schema"])
    return FREE


def _like(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return values of a schema, and now and then one that is none."""
    good = _good(schema)
    return st.integers(0, 11).flatmap(lambda n: ODD if n == 0 else good)


def _good(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    match schema:
        case {"enum": words}:
            return st.sampled_from([*words, "", "Nothing"])
        case {"type": "object", "properties": fields} if fields:
            return st.lists(st.sampled_from(sorted(fields)), unique=True, max_size=5).flatmap(
                lambda chosen: st.fixed_dictionaries({f: _like(fields[f]) for f in chosen})
            )
        case {"type": "object", "additionalProperties": values}:
            return st.dictionaries(st.sampled_from(WORDS), _like(values), max_size=3)
        case {"type": "object"}:
            return FREE
        case {"type": "array", "items": items}:
            return st.lists(st.deferred(lambda: _like(items)), max_size=3)
        case {"type": "integer"}:
            return st.integers(-2, 5) | st.integers(-(2**70), 2**70)
        case {"type": "boolean"}:
            return st.booleans()
    return st.sampled_from(WORDS) | st.integers(-5, 5)
