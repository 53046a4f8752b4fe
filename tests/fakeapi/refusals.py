"""How the API server says no."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class Refusal(Exception):
    """An answer that is not a success."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(code, reason, message)
        self.code = code
        self.reason = reason
        self.message = message

    @property
    def body(self) -> Json:
        """The Status that is sent."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "code": self.code,
            "reason": self.reason,
            "message": self.message,
        }


def bad_request(message: str) -> Refusal:
    return Refusal(400, "BadRequest", message)


def not_found(what: str, name: str) -> Refusal:
    return Refusal(404, "NotFound", f'{what} "{name}" not found')


def conflict(what: str, name: str, message: str) -> Refusal:
    return Refusal(409, "Conflict", f'Operation cannot be fulfilled on {what} "{name}": {message}')


def modified(what: str, name: str) -> Refusal:
    return conflict(
        what,
        name,
        "the object has been modified; please apply your changes to the latest version and try "
        "again",
    )


def invalid(kind: str, name: str, message: str) -> Refusal:
    return Refusal(422, "Invalid", f'{kind} "{name}" is invalid: {message}')


def gone(message: str) -> Refusal:
    return Refusal(410, "Expired", message)
