"""How pages answer: JSON as it comes from the core's shapes, and what OpenAPI says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any

import msgspec
from fastapi import Path, Query, Response

from pumice.core.explain import answers as shapes

JSON = "application/json"
NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
LIMIT = 100
MOST = 500

Responses = dict[int | str, dict[str, Any]]

for _shape in vars(shapes).values():
    if isinstance(_shape, type) and is_dataclass(_shape):
        # What stands below a field is its description in OpenAPI.
        setattr(_shape, "__pydantic_config__", {"use_attribute_docstrings": True})  # noqa: B010


@dataclass(frozen=True, slots=True)
class Problem:
    """Why there is no answer."""

    detail: str


Namespace = Annotated[str, Path(pattern=NAME, max_length=63, examples=["team-a"])]
Name = Annotated[str, Path(pattern=NAME, max_length=253, examples=["training"])]
InNamespace = Annotated[
    str, Query(pattern=f"{NAME}|^$", max_length=63, description="of this namespace alone")
]
After = Annotated[
    str, Query(max_length=320, description="those behind this one: `next_page` of the last answer")
]
Limit = Annotated[int, Query(ge=1, le=MOST, description="no more than so many")]

PROBLEMS: Mapping[int, tuple[str, str]] = {
    401: ("Who reads is not known.", "a bearer token is required"),
    403: (
        "The reader's rights do not allow it.",
        'user "system:serviceaccount:team-b:default" may not'
        " get podgroups.scheduling.volcano.sh training in namespace team-a",
    ),
    404: ("There is no such object.", "there is no PodGroup team-a/training"),
    422: ("The question makes no sense.", "limit: Input should be less than or equal to 500"),
    429: ("Too many ask at once.", "too many questions at once"),
    503: (
        "The extender cannot answer now: it is just starting, or the API server is away.",
        "no session yet: pods",
    ),
}


def documented(example: object, *problems: int) -> Responses:
    """Return what OpenAPI says of a page: an example of its answer, and what else may come."""
    found: Responses = {200: {"content": {JSON: {"example": msgspec.to_builtins(example)}}}}
    for code in (401, 403, 422, 503, *problems):
        description, detail = PROBLEMS[code]
        found[code] = {
            "model": Problem,
            "description": description,
            "content": {JSON: {"example": {"detail": detail}}},
        }
    return dict(sorted(found.items(), key=lambda entry: int(entry[0])))


def answer(content: object, code: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer in JSON."""
    body = msgspec.json.encode(content)
    return Response(body, code, dict(headers or {}), media_type=JSON)
