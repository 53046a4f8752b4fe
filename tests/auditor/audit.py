"""
The API server's audit log: JSON lines, appended while the auditor reads them.

Only finished writes matter. A line's request and response bodies are decoded only for the few
fields that the rules need; bodies are there when the audit policy has level RequestResponse.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qs, urlsplit

import msgspec

from tests.auditor.facts import Request
from tests.auditor.wire import Meta, Wire

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
POLL_S = 0.1
CHUNK_BYTES = 1 << 20


class User(Wire):
    """Who sent it."""

    username: str = ""


class Reference(Wire):
    """The object that the URL names."""

    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""


class ResponseStatus(Wire):
    """The outcome."""

    code: int = 0


class Line(msgspec.Struct, rename="camel"):
    """An event of audit.k8s.io/v1."""

    stage: str
    verb: str
    user: User
    request_received_timestamp: datetime
    stage_timestamp: datetime
    request_uri: str = msgspec.field(name="requestURI", default="")
    object_ref: Reference = msgspec.field(default_factory=Reference)
    response_status: ResponseStatus = msgspec.field(default_factory=ResponseStatus)
    request_object: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    response_object: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class Target(Wire):
    """The target of a Binding."""

    name: str = ""


class Preconditions(Wire):
    """What a delete demands of its object."""

    uid: str = ""


class Options(Wire):
    """The delete options in an eviction."""

    preconditions: Preconditions | None = None


class Body(Wire):
    """What a request body may hold: a Binding, an Eviction or DeleteOptions."""

    metadata: Meta | None = None
    target: Target | None = None
    preconditions: Preconditions | None = None
    delete_options: Options | None = None


class Details(Wire):
    """The object that a Status speaks of."""

    uid: str = ""


class Answer(Wire):
    """What a response body may hold: the object, or a Status."""

    kind: str = ""
    metadata: Meta | None = None
    details: Details | None = None


_LINE = msgspec.json.Decoder(Line)
_BODY = msgspec.json.Decoder(Body)
_ANSWER = msgspec.json.Decoder(Answer)


def parse(line: bytes) -> Request | None:
    """Return the write that a line of the log reports, None for anything else."""
    event = _LINE.decode(line)
    if event.stage not in ("ResponseComplete", "Panic") or event.verb not in WRITES:
        return None
    body, answer = _body(event), _answer(event)
    reference = event.object_ref
    meta = answer.metadata if answer.metadata and answer.kind != "Status" else None
    rv = int(meta.resource_version) if meta and meta.resource_version not in ("", "0") else None
    query = parse_qs(urlsplit(event.request_uri).query)
    return Request(
        at=event.request_received_timestamp.timestamp(),
        done=event.stage_timestamp.timestamp(),
        user=event.user.username,
        verb=event.verb,
        resource=reference.resource,
        name=reference.name or (meta.name if meta else ""),
        namespace=reference.namespace,
        subresource=reference.subresource,
        group=reference.api_group,
        code=event.response_status.code,
        uid=_uid(reference, body, answer),
        node=body.target.name if body.target else "",
        rv=rv,
        dry_run="dryRun" in query,
        last_finalizer=bool(meta and meta.deletion_timestamp and not meta.finalizers),
    )


class AuditLog:
    """
    Follows the log: hands over each write as the file grows.

    What stands in the log at first is of no concern. The log may not exist yet, and it may be
    rotated: the old file is read to its end first. `caught_up_at` is when its end was last reached.
    """

    def __init__(self, path: Path, handle: Callable[[Request], None]) -> None:
        self.path = path
        self.handle = handle
        self.caught_up_at = 0.0
        self._skip = path.stat().st_size if path.exists() else 0

    async def run(self) -> None:
        """Follow for ever."""
        while True:
            try:
                file = self.path.open("rb")
            except FileNotFoundError:
                self.caught_up_at = time.time()
                await asyncio.sleep(POLL_S)
                continue
            with file:
                _skip(file, self._skip)
                await self._follow(file)
            self._skip = 0

    async def _follow(self, file: BinaryIO) -> None:
        """Read one file until another stands in its place."""
        rest = b""
        while True:
            rotated, now = _replaced(self.path, file), time.time()
            while chunk := file.read(CHUNK_BYTES):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line and (request := parse(line)) is not None:
                        self.handle(request)
                await asyncio.sleep(0)
            if rotated:
                return
            self.caught_up_at = now
            await asyncio.sleep(POLL_S)


def _skip(file: BinaryIO, size: int) -> None:
    """Go to the first line that begins at `size` or after."""
    if size:
        file.seek(size - 1)
        file.readline()


def _replaced(path: Path, file: BinaryIO) -> bool:
    """Whether the name now belongs to another file, or ours was cut short."""
    try:
        now = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(file.fileno())
    return (now.st_dev, now.st_ino) != (here.st_dev, here.st_ino) or now.st_size < file.tell()


def _body(event: Line) -> Body:
    """Decode the request body of the few writes whose body matters."""
    is_bind_or_removal = (
        event.object_ref.subresource in ("binding", "eviction")
        or event.object_ref.resource == "bindings"
        or event.verb == "delete"
    )
    if not is_bind_or_removal or not bytes(event.request_object).startswith(b"{"):
        return Body()
    return _BODY.decode(event.request_object)


def _answer(event: Line) -> Answer:
    if not bytes(event.response_object).startswith(b"{"):
        return Answer()
    return _ANSWER.decode(event.response_object)


def _uid(reference: Reference, body: Body, answer: Answer) -> str:
    """Return the uid that the URL, the answer or the precondition gives, in this order."""
    options = body.delete_options
    demanded = body.preconditions or (options.preconditions if options else None)
    known = (
        reference.uid,
        answer.metadata.uid if answer.metadata else "",
        answer.details.uid if answer.details else "",
        body.metadata.uid if body.metadata else "",
        demanded.uid if demanded else "",
    )
    return next((uid for uid in known if uid), "")
