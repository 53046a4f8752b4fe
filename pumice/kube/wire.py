"""
Lists and watches as they come over the wire, taken apart without a full decode.

A list is cut into its items first and each item decoded on its own, and so is each event of a
watch: an object that does not fit its type costs itself and nothing else. It comes out as a
`Malformed` with its key, for whoever counts and reports such things.
"""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, Literal, TypeVar

import msgspec

from pumice.core.api.meta import Struct
from pumice.kube.errors import ApiError, Status, Undecodable, from_status
from pumice.kube.resources import AnyResource, Object, Resource

T = TypeVar("T", bound=Object)
ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class Malformed:
    """An object that does not decode: which one, and what is wrong with it."""

    resource: AnyResource
    key: str
    uid: str
    resource_version: str
    error: str


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list; the version is that of the whole list."""

    items: list[T]
    malformed: list[Malformed]
    resource_version: str
    more: str


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """An object was added, modified or deleted; for a deletion it is the last state."""

    type: ChangeType
    object: T


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing changed up to this version."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class MalformedChange:
    """A change of an object that does not decode."""

    type: ChangeType
    fault: Malformed


Watched = Change[T] | Bookmark | MalformedChange


class _ListMeta(Struct):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Told(msgspec.Struct, Generic[T]):
    type: ChangeType
    object: T


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Identity(Struct):
    """Loose on purpose: this is read from objects that fit no type."""

    name: object = ""
    namespace: object = ""
    uid: object = ""
    resource_version: object = ""


class _Any(msgspec.Struct):
    metadata: _Identity = msgspec.field(default_factory=_Identity)


_decode_list = msgspec.json.Decoder(_List).decode
_decode_event = msgspec.json.Decoder(_Event).decode
_decode_any = msgspec.json.Decoder(_Any).decode
_decode_status = msgspec.json.Decoder(Status).decode


@cache
def _decoder(cls: type[Object]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(cls)


@cache
def _told(cls: type[Object]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_Told[cls])  # type: ignore[valid-type]


def decode(resource: Resource[T], body: bytes | msgspec.Raw) -> T:
    """Return the object; raises Undecodable where it does not fit its type."""
    try:
        obj: T = _decoder(resource.type).decode(body)
    except msgspec.DecodeError as e:
        raise Undecodable(f"{resource}: {e}") from e
    return obj


def page(resource: Resource[T], body: bytes) -> Page[T]:
    """Return a page of a list, item by item; raises Undecodable where it is no list."""
    try:
        whole = _decode_list(body)
    except msgspec.DecodeError as e:
        raise Undecodable(f"list of {resource}: {e}") from e
    items: list[T] = []
    malformed: list[Malformed] = []
    one = _decoder(resource.type).decode
    for raw in whole.items or ():
        try:
            items.append(one(raw))
        except msgspec.DecodeError as e:
            malformed.append(_malformed(resource, raw, e))
    return Page(items, malformed, whole.metadata.resource_version, whole.metadata.continue_)


def event(resource: Resource[T], line: bytes) -> Watched[T]:
    """Return what one line of a watch says; raises the ApiError of an ERROR event."""
    try:
        told: _Told[T] = _told(resource.type).decode(line)
    except msgspec.DecodeError:
        return _event_in_parts(resource, line)
    return Change(told.type, told.object)


def _event_in_parts(resource: Resource[T], line: bytes) -> Watched[T]:
    """Read an event that is none of an object, or of one that does not fit its type."""
    try:
        got = _decode_event(line)
    except msgspec.DecodeError as e:
        raise Undecodable(f"watch of {resource}: {e}") from e
    match got.type:
        case "ADDED" | "MODIFIED" | "DELETED" as kind:
            try:
                return Change(kind, _decoder(resource.type).decode(got.object))
            except msgspec.DecodeError as e:
                return MalformedChange(kind, _malformed(resource, got.object, e))
        case "BOOKMARK":
            return Bookmark(str(_decode_any(got.object).metadata.resource_version))
        case "ERROR":
            raise _error(got.object)
        case other:
            raise Undecodable(f"watch of {resource}: event of unknown type {other!r}")


def _error(raw: msgspec.Raw) -> ApiError:
    status = _decode_status(raw)
    return from_status(status.code, status)


def _malformed(resource: AnyResource, raw: msgspec.Raw, error: Exception) -> Malformed:
    try:
        meta = _decode_any(raw).metadata
    except msgspec.DecodeError:
        return Malformed(resource, "", "", "", str(error))
    key = f"{meta.namespace}/{meta.name}" if meta.namespace else str(meta.name)
    return Malformed(resource, key, str(meta.uid), str(meta.resource_version), str(error))


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Cut a stream at its newlines, whatever their length; an unfinished last line is dropped."""
    tail: list[bytes] = []
    async for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        tail.append(first)
        if not rest:
            continue
        yield b"".join(tail)
        for line in rest[:-1]:
            yield line
        tail = [rest[-1]]


_paused = 0


@contextmanager
def gc_paused() -> Iterator[None]:
    """
    Keep the garbage collector from running while a list is decoded.

    Every growth by a quarter makes it traverse everything kept so far, which is most of the
    cost of a long list. Nested and concurrent uses count; the last one to leave turns it on.
    """
    global _paused
    if _paused == 0 and not gc.isenabled():
        yield  # Someone else keeps it off, and will turn it on.
        return
    _paused += 1
    gc.disable()
    try:
        yield
    finally:
        _paused -= 1
        if _paused == 0:
            gc.enable()
