"""AdmissionReview of admission.k8s.io/v1: what the API server asks, and what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from pumice.core.admission.errors import FieldError, text
from pumice.core.admission.patches import Operation
from pumice.core.api.meta import Struct

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
NULL: Final = msgspec.Raw(b"null")


class GroupVersionResource(Struct):
    """A collection of the API."""

    group: str = ""
    version: str = ""
    resource: str = ""

    def __str__(self) -> str:
        return f"{{{self.group} {self.version} {self.resource}}}"


class Request(Struct):
    """The question; the objects are decoded by whoever knows what they are."""

    uid: str
    resource: GroupVersionResource
    operation: str
    name: str = ""
    namespace: str = ""
    object: msgspec.Raw = NULL
    old_object: msgspec.Raw = NULL


class Review(Struct):
    """The body of a request."""

    api_version: str
    kind: str
    request: Request


class Cause(Struct):
    """One thing that is wrong, for programs."""

    reason: str
    message: str
    field: str


class Details(Struct):
    """All that is wrong, for programs."""

    causes: list[Cause]


class Status(Struct):
    """Why the answer is no; clients get it as it is, with the webhook's name before the message."""

    message: str
    details: Details | None = None


class Response(Struct):
    """The answer. Bytes are base64 on the wire."""

    uid: str
    allowed: bool
    status: Status | None = None
    patch: bytes | None = None
    patch_type: str | None = None


class Answer(msgspec.Struct, rename="camel"):
    """The body of an answer."""

    api_version: str
    kind: str
    response: Response


decode = msgspec.json.Decoder(Review).decode
_encode = msgspec.json.Encoder().encode


def allowed(uid: str) -> bytes:
    """Return the answer yes."""
    return _answer(Response(uid=uid, allowed=True))


def patched(uid: str, steps: Sequence[Operation]) -> bytes:
    """Return the answer yes, with these changes."""
    if not steps:
        return allowed(uid)
    patch = _encode(steps)
    return _answer(Response(uid=uid, allowed=True, patch=patch, patch_type="JSONPatch"))


def denied(uid: str, errors: Sequence[FieldError]) -> bytes:
    """Return the answer no, with everything that is wrong."""
    causes = [
        Cause(reason="FieldValueInvalid", message=error.message, field=error.field)
        for error in errors
    ]
    status = Status(message=text(errors), details=Details(causes=causes))
    return _answer(Response(uid=uid, allowed=False, status=status))


def _answer(response: Response) -> bytes:
    return _encode(Answer(API_VERSION, KIND, response))
