"""
The client of the API server: bytes out, typed objects back.

Every call is one request (a list: one for each page) and either returns what the server
answered or raises from the tree in `pumice.kube.errors`. Nothing is retried here: who retries
is the informer for reads and the outbox for writes. Objects are changed by patches alone.

Namespace and name always come in that order; the namespace of a cluster-scoped object is "".
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar
from urllib.parse import urlencode

import msgspec

from pumice.kube import wire
from pumice.kube.errors import Conflict, Disconnected, Invalid, from_body
from pumice.kube.patches import ApplyPatch, Json, Patch, encode
from pumice.kube.resources import PODS, Object, Resource
from pumice.kube.transport import Answer, Fence, Request, Transport

T = TypeVar("T", bound=Object)

PAGE = 500
REQUEST_S = 30.0
LIST_S = 60.0

Propagation = Literal["Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True)
class Selector:
    """Which objects of a collection; empty parts select everything."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self) -> dict[str, str]:
        """Return the query parameters; the namespace is part of the path."""
        given = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {k: v for k, v in given.items() if v}


EVERYTHING = Selector()


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What a write presumes of the object; the server answers 409 where it is not so."""

    uid: str = ""
    resource_version: str = ""


NONE = Preconditions()


class Client:
    """Talks to one API server; made, used and closed on one event loop."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; the client is of no use afterwards."""
        await self._transport.close()

    def fenced(self, may_write: Callable[[], bool]) -> Client:
        """Return one over the same connections; writes that may not be raise NotLeading."""
        return Client(Fence(self._transport, may_write))

    # Reads.

    async def get(self, resource: Resource[T], namespace: str, name: str) -> T:
        """Return one object."""
        return wire.decode(resource, await self.call("GET", resource.path(namespace, name)))

    async def list(
        self,
        resource: Resource[T],
        select: Selector = EVERYTHING,
        *,
        on_malformed: Callable[[wire.Malformed], None] | None = None,
    ) -> list[T]:
        """Return all objects selected; those that do not decode are left out and reported."""
        items: list[T] = []
        with wire.gc_paused():
            async for page in self.pages(resource, select):
                items += page.items
                if on_malformed:
                    for fault in page.malformed:
                        on_malformed(fault)
        return items

    async def pages(
        self, resource: Resource[T], select: Selector = EVERYTHING, *, size: int = PAGE
    ) -> AsyncIterator[wire.Page[T]]:
        """Return a consistent list in pages; raises Gone where it takes too long to read."""
        query = select.query() | {"limit": str(size)}
        more: str | None = None
        while more != "":
            if more:
                query["continue"] = more
            path = f"{resource.path(select.namespace)}?{urlencode(query)}"
            page = wire.page(resource, await self.call("GET", path, total_s=LIST_S))
            more = page.more
            yield page

    async def watch(
        self,
        resource: Resource[T],
        select: Selector = EVERYTHING,
        *,
        resource_version: str,
        lasting_s: int,
        silence_s: float,
        on_open: Callable[[], None] | None = None,
    ) -> AsyncGenerator[wire.Watched[T], None]:
        """
        Return the changes after `resource_version`, with bookmarks, until the server ends it.

        The server ends it after `lasting_s`; a connection that is silent for `silence_s` is
        taken for dead. Raises Gone where the history is no longer there.
        """
        query = select.query() | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(lasting_s),
        }
        path = f"{resource.path(select.namespace)}?{urlencode(query)}"
        request = Request("GET", path, total_s=None, silence_s=silence_s)
        answer = await self._send(request)
        try:
            if on_open:
                on_open()
            async for line in wire.lines(answer.chunks()):
                if line:
                    yield wire.event(resource, line)
        finally:
            answer.close()

    # Writes.

    async def create(self, resource: Resource[T], namespace: str, body: Any) -> T:
        """Create an object from a dict or from a complete struct of ours."""
        whole: Json = {"apiVersion": resource.api_version, "kind": resource.kind}
        whole |= msgspec.to_builtins(body)
        path = resource.path(namespace)
        return wire.decode(resource, await self.call("POST", path, msgspec.json.encode(whole)))

    async def patch(
        self,
        resource: Resource[T],
        namespace: str,
        name: str,
        patch: Patch,
        *,
        subresource: str = "",
        given: Preconditions = NONE,
    ) -> T:
        """
        Change an object, or a part of it such as `status`, and return it whole.

        The status of a custom kind takes no uid as precondition, only a resourceVersion.
        """
        if resource.custom and subresource and given.uid and not given.resource_version:
            raise ValueError(f"the server does not look at the uid in {resource}/{subresource}")
        path = resource.path(namespace, name, subresource)
        if isinstance(patch, ApplyPatch):
            flags = {"fieldManager": patch.manager, "force": str(patch.force).lower()}
            path += f"?{urlencode(flags)}"
        body = encode(patch, given.uid, given.resource_version)
        try:
            answer = await self.call("PATCH", path, body, content_type=patch.content_type)
        except Invalid as e:
            # Where a delete would conflict, a patch with a wrong uid "changes" the uid.
            if given.uid and "metadata.uid: Invalid value" in e.message:
                raise Conflict(409, "Conflict", e.message) from e
            raise
        return wire.decode(resource, answer)

    async def patch_status(
        self,
        resource: Resource[T],
        namespace: str,
        name: str,
        patch: Patch,
        *,
        given: Preconditions = NONE,
    ) -> T:
        """Change the status of a kind that keeps it apart; see `has_status` of the resource."""
        subresource = "status" if resource.has_status else ""
        return await self.patch(
            resource, namespace, name, patch, subresource=subresource, given=given
        )

    async def delete(
        self,
        resource: Resource[T],
        namespace: str,
        name: str,
        *,
        given: Preconditions = NONE,
        grace_s: int | None = None,
        propagation: Propagation | None = None,
    ) -> T | None:
        """Delete an object; return its last state where the server sends it."""
        options = _options(given, grace_s, propagation)
        path = resource.path(namespace, name)
        answer = await self.call("DELETE", path, msgspec.json.encode(options))
        if _kind(answer).kind == "Status":
            return None
        return wire.decode(resource, answer)

    async def bind(
        self,
        namespace: str,
        name: str,
        node: str,
        *,
        uid: str,
        resource_version: str = "",
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """
        Bind a pod; the annotations are merged into the pod's in the same write.

        Raises Conflict where the pod has another uid, or another resourceVersion than one given.
        """
        meta: Json = {"namespace": namespace, "name": name, "uid": uid}
        if resource_version:
            meta["resourceVersion"] = resource_version
        if annotations:
            meta["annotations"] = dict(annotations)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": meta,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self.call("POST", PODS.path(namespace, name, "binding"), msgspec.json.encode(body))

    async def evict(
        self, namespace: str, name: str, *, uid: str, grace_s: int | None = None
    ) -> None:
        """
        Evict a pod; raises TooManyRequests where a disruption budget forbids it now.

        The server takes ten seconds to notice that the uid is another one: look at the cache
        before.
        """
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name},
            "deleteOptions": _options(Preconditions(uid=uid), grace_s, None),
        }
        await self.call("POST", PODS.path(namespace, name, "eviction"), msgspec.json.encode(body))

    # The wire.

    async def call(
        self,
        method: Literal["GET", "POST", "PATCH", "DELETE"],
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = "application/json",
        total_s: float = REQUEST_S,
    ) -> bytes:
        """Send one request and return the body of its answer, as it came."""
        request = Request(method, path, body, content_type, total_s)
        answer = await self._send(request)
        try:
            return await answer.read()
        finally:
            answer.close()

    async def _send(self, request: Request) -> Answer:
        """Return an answer that is a success; raise what any other stands for."""
        answer = await self._transport.send(request)
        if answer.status < 300:
            return answer
        try:
            body = await answer.read()
        except Disconnected:
            body = b""  # The status alone says what happened.
        finally:
            answer.close()
        raise from_body(answer.status, body, answer.headers.get("Retry-After"))


class _Kind(msgspec.Struct):
    kind: str = ""


_kind = msgspec.json.Decoder(_Kind).decode


def _options(given: Preconditions, grace_s: int | None, propagation: str | None) -> Json:
    held = {"uid": given.uid, "resourceVersion": given.resource_version}
    options: Json = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {k: v for k, v in held.items() if v},
        "gracePeriodSeconds": grace_s,
        "propagationPolicy": propagation,
    }
    return {k: v for k, v in options.items() if v is not None and v != {}}
