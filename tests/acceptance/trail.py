"""The audit log as a trail of writes, read afterwards, where a watch would have too much to do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec


class User(msgspec.Struct, frozen=True):
    """Who wrote."""

    username: str = ""


class Reference(msgspec.Struct, frozen=True):
    """What was written."""

    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class Status(msgspec.Struct, frozen=True):
    """How it was answered."""

    code: int = 0


class Write(msgspec.Struct, frozen=True, rename="camel"):
    """One finished request; the bodies are left as they are until somebody wants them."""

    verb: str
    user: User
    request_received_timestamp: datetime
    stage_timestamp: datetime
    object_ref: Reference = Reference()
    response_status: Status = Status()
    request_object: msgspec.Raw = msgspec.Raw()
    response_object: msgspec.Raw = msgspec.Raw()

    @property
    def began(self) -> float:
        """When the API server had read it, in seconds since 1970."""
        return self.request_received_timestamp.timestamp()

    @property
    def done(self) -> float:
        """When it had been answered, in seconds since 1970."""
        return self.stage_timestamp.timestamp()

    @property
    def what(self) -> str:
        """Verb, resource and subresource."""
        ref = self.object_ref
        return f"{self.verb} {ref.resource}" + (f"/{ref.subresource}" if ref.subresource else "")

    @property
    def succeeded(self) -> bool:
        """Whether it was done."""
        return 200 <= self.response_status.code < 300


def trail(log: Path, namespace: str) -> Iterator[Write]:
    """Yield the successful writes in a namespace, in the order of the log."""
    decode = msgspec.json.Decoder(Write).decode
    with log.open("rb") as lines:
        for line in lines:
            write = decode(line)
            if write.succeeded and write.object_ref.namespace == namespace:
                yield write
