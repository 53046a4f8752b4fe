"""
What can go wrong between us and the API server.

    KubeError
    ├── Disconnected           no answer: whether the request was applied is unknown
    │   └── NotLeading         not sent: another replica may be at work
    ├── Undecodable            the answer was a success, but does not fit its type
    └── ApiError               the server answered, and said no
        ├── Unauthorized       401
        ├── Forbidden          403
        ├── NotFound           404
        ├── Conflict           409   a precondition (uid, resourceVersion) or a rule failed
        │   └── AlreadyExists  409   the name is taken
        ├── Gone               410   the resourceVersion or continue token is too old
        ├── Invalid            422   the object, or a `test` of a JSON patch, was refused
        ├── TooManyRequests    429   also an eviction that a disruption budget forbids
        └── ServerError        5xx

Any other status is a plain `ApiError`.
"""

from __future__ import annotations

import msgspec


class KubeError(Exception):
    """The root of the tree."""


class Disconnected(KubeError):
    """No (whole) answer came: connection refused, reset, or silent for too long."""


class NotLeading(Disconnected):
    """A write was held back, because we do not lead; it was not applied."""


class Undecodable(KubeError):
    """The answer is not what it should be; a write has been applied all the same."""


class ApiError(KubeError):
    """The server's answer was not a success; `reason` is Kubernetes' word for why."""

    def __init__(self, status: int, reason: str = "", message: str = "") -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        return f"{self.status} {self.reason}: {self.message}"


class Unauthorized(ApiError):
    """The server does not know who we are."""


class Forbidden(ApiError):
    """We may not do this."""


class NotFound(ApiError):
    """There is no such object (or no such kind)."""


class Conflict(ApiError):
    """The object is not as the request presumed."""


class AlreadyExists(Conflict):
    """The name is taken."""


class Gone(ApiError):
    """History before the asked version is no longer there: list again."""


class Invalid(ApiError):
    """The object would not be valid."""


class TooManyRequests(ApiError):
    """Come back later: after `retry_after_s`, where the server says when."""

    def __init__(
        self, status: int, reason: str = "", message: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(status, reason, message)
        self.retry_after_s = retry_after_s


class ServerError(ApiError):
    """The server failed; the request may have been applied."""


_BY_STATUS: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


class StatusDetails(msgspec.Struct, rename="camel"):
    """The part of a Status that says when to come back."""

    retry_after_seconds: float | None = None


class Status(msgspec.Struct):
    """The body of an answer that is not a success; also of an ERROR event in a watch."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


_decode = msgspec.json.Decoder(Status).decode


def from_body(code: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """Return the error that an answer stands for; the body need not be a Status."""
    try:
        status = _decode(body)
    except msgspec.DecodeError:
        status = Status(message=body[:500].decode(errors="replace").strip())
    return from_status(code, status, retry_after)


def from_status(code: int, status: Status, retry_after: str | None = None) -> ApiError:
    """Return the error for a status code and the server's Status."""
    if code == 409 and status.reason == "AlreadyExists":
        return AlreadyExists(code, status.reason, status.message)
    cls = _BY_STATUS.get(code, ServerError if code >= 500 else ApiError)
    if cls is TooManyRequests:
        return TooManyRequests(code, status.reason, status.message, _seconds(status, retry_after))
    return cls(code, status.reason, status.message)


def _seconds(status: Status, header: str | None) -> float | None:
    """Return the pause asked for, by body or header."""
    if status.details and status.details.retry_after_seconds:
        return status.details.retry_after_seconds
    # The header may also be an HTTP date, which the API server never sends.
    return float(header) if header and header.isdigit() else None
