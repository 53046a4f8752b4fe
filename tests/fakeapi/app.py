"""The application: requests in, answers of the rules out; and the handles that tests turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from pumice.kube.client import Client
from pumice.kube.clock import Clock, SystemClock
from pumice.kube.resources import NAMESPACES, PODS, AnyResource
from tests.fakeapi import selectors
from tests.fakeapi.faults import Call, ConnectionLost, Fault, Faults, When, on
from tests.fakeapi.kinds import known
from tests.fakeapi.objects import Objects
from tests.fakeapi.refusals import Json, Refusal, bad_request, gone
from tests.fakeapi.reviews import Reviews
from tests.fakeapi.store import Store
from tests.fakeapi.transport import AsgiTransport, Message
from tests.fakeapi.watching import Watch

Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]


class FakeApi:
    """An API server; every method beside `__call__` and `client` is for tests."""

    def __init__(
        self, clock: Clock | None = None, *, namespaces: Sequence[str] = ("default",)
    ) -> None:
        self.clock = clock or SystemClock()
        self.store = Store()
        self.objects = Objects(self.store, self.clock)
        self.faults = Faults()
        #: who is who, and may read what
        self.reviews = Reviews()
        #: every request that arrived, in order
        self.calls: list[Call] = []
        self.watches: list[Watch] = []
        self._kinds = {(r.api_version, r.plural): r for r in known()}
        #: lists that are being read in pages: continue token -> version, what is left
        self._pages: dict[str, tuple[int, list[Json]]] = {}
        self.store.listeners.append(self._changed)
        for name in namespaces:
            self.add(NAMESPACES, {"metadata": {"name": name}})

    def client(self) -> Client:
        """Return a client whose requests come here."""
        return Client(AsgiTransport(self, self.clock))

    # What tests do to the world.

    def add(self, resource: AnyResource, obj: Any, namespace: str = "default") -> Json:
        """Create an object; its namespace comes to be with it."""
        body: Json = msgspec.to_builtins(obj)
        home = body["metadata"].get("namespace") or namespace
        if resource.namespaced and not self.store.get(NAMESPACES, "", home):
            self.add(NAMESPACES, {"metadata": {"name": home}})
        status = body.get("status")
        made = self.objects.create(resource, home if resource.namespaced else "", body)
        if status and resource.has_status:
            made = self.store.put(
                resource, {**made, "status": {**made.get("status", {}), **status}}
            )
        return made

    def get(self, resource: AnyResource, namespace: str, name: str) -> Json | None:
        """Return what is stored."""
        return self.store.get(resource, namespace, name)

    def all(self, resource: AnyResource) -> list[Json]:
        """Return a whole collection."""
        return self.store.all(resource)

    def put(self, resource: AnyResource, obj: Json) -> Json:
        """Store an object as it is, whatever the rules say; it may be malformed."""
        return self.store.put(resource, obj)

    def finish_pods(self) -> None:
        """End the pods that are being deleted, as their kubelets do."""
        for pod in self.store.all(PODS):
            if pod["metadata"].get("deletionTimestamp"):
                self.objects.delete(PODS, pod, {"gracePeriodSeconds": 0})

    # Faults.

    def fail(
        self,
        code: int,
        *,
        times: int = 1,
        method: str = "",
        path: str = "",
        reason: str = "",
        retry_after_s: int | None = None,
        when: When | None = None,
    ) -> None:
        """Answer the next requests that match with an error, without carrying them out."""
        refusal = Refusal(code, reason, f"{code} was ordered")
        self.faults.add(
            Fault(when or on(method, path), times, refusal, retry_after_s=retry_after_s)
        )

    def lose(
        self,
        *,
        times: int = 1,
        method: str = "",
        path: str = "",
        applied: bool = False,
        when: When | None = None,
    ) -> None:
        """Break the connection of the next requests that match, before or after they apply."""
        self.faults.add(Fault(when or on(method, path), times, lost=True, applied=applied))

    def delay(self, seconds: float, *, times: int = 1, method: str = "", path: str = "") -> None:
        """Hold the next requests that match for a while before they are carried out."""
        self.faults.add(Fault(on(method, path), times, delay_s=seconds))

    def bookmark(self) -> None:
        """Send a bookmark to every watch."""
        for watch in self.watches:
            watch.bookmark(self.store.version)

    def end_watches(self) -> None:
        """End every watch as its time limit does."""
        for watch in self.watches:
            watch.end()

    def drop_watches(self) -> None:
        """Break the connection of every watch."""
        for watch in self.watches:
            watch.end(ConnectionLost())

    def silence_watches(self) -> None:
        """Leave every watch that is open now without any further word."""
        for watch in self.watches:
            watch.silence()

    def hold(self, resource: AnyResource) -> None:
        """Let news of a collection come late: none arrives before `resume`."""
        for watch in self.watches:
            if watch.resource == resource:
                watch.hold()

    def resume(self) -> None:
        """Let all news that were held arrive."""
        for watch in list(self.watches):
            watch.resume()

    def compact(self) -> None:
        """Forget the history: watches from before, and lists half read, are Gone."""
        self.store.compact()

    # ASGI.

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"the fake API server speaks http, not {scope['type']}")
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = {k.decode().lower(): v.decode() for k, v in scope["headers"]}
        query = dict(parse_qsl(scope["query_string"].decode(), keep_blank_values=True))
        kind, now = headers.get("content-type", ""), self.clock.monotonic()
        call = Call(scope["method"], scope["path"], query, body, kind, now)
        self.calls.append(call)
        fault = self.faults.take(call)
        if fault and fault.delay_s:
            await self.clock.sleep(fault.delay_s)
        if fault and fault.lost and not fault.applied:
            raise ConnectionLost
        try:
            if fault and fault.refusal:
                raise fault.refusal
            if "watch" in call.query:
                await self._watch(call, send)
                return
            code, answer = self._answer(call)
        except Refusal as e:
            code, answer = e.code, e.body
        if fault and fault.lost:
            raise ConnectionLost
        pause = fault.retry_after_s if fault else None
        await _send(send, code, msgspec.json.encode(answer), pause)

    def _answer(self, call: Call) -> tuple[int, Json]:
        """Carry out a request."""
        if review := self.reviews.answer(call.path, call.body):
            return 201, review
        resource, namespace, name, part = self._locate(call.path)
        if call.method == "GET" and not name:
            return 200, self._list(resource, namespace, call.query)
        body: Any = msgspec.json.decode(call.body) if call.body else {}
        if call.method == "POST" and not name:
            return 201, self.objects.create(resource, namespace, body)
        if call.method == "PATCH" and call.content_type.startswith("application/apply-patch"):
            force = call.query.get("force") == "true"
            manager = call.query["fieldManager"]
            return self.objects.apply(resource, namespace, name, part, body, manager, force)
        obj = self.objects.find(resource, namespace, name)
        match call.method, part:
            case "GET", "" | "status":
                return 200, {**_typed(resource), **obj}
            case "PATCH", "" | "status":
                patched = self.objects.patch(resource, obj, part, body, call.content_type)
                return 200, {**_typed(resource), **patched}
            case "DELETE", "":
                return 200, self.objects.delete(resource, obj, body)
            case "POST", "binding" if resource == PODS:
                self.objects.bind(obj, body)
                return 201, SUCCESS
            case "POST", "eviction" if resource == PODS:
                self.objects.evict(obj, body)
                return 201, SUCCESS
        raise Refusal(405, "MethodNotAllowed", f"{call.method} {call.path}")

    def _locate(self, path: str) -> tuple[AnyResource, str, str, str]:
        """Take a path apart: collection, namespace, name, subresource."""
        parts = path.strip("/").split("/")
        skip = 2 if parts[0] == "api" else 3
        version, rest = "/".join(parts[1:skip]), parts[skip:]
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        resource = self._kinds.get((version, rest[0] if rest else ""))
        if resource is None:
            raise Refusal(404, "", "404 page not found")
        name, part = [*rest[1:], "", ""][:2]
        if part == "status" and not resource.has_status:
            raise Refusal(404, "NotFound", f'{resource} "{name}" not found')
        return resource, namespace, name, part

    # Lists and watches.

    def _match(self, resource: AnyResource, namespace: str, query: dict[str, str]) -> Any:
        by_label = selectors.labels(query.get("labelSelector", ""))
        by_field = selectors.fields(resource.plural, query.get("fieldSelector", ""))
        return lambda obj: (
            namespace in ("", obj["metadata"].get("namespace")) and by_label(obj) and by_field(obj)
        )

    def _list(self, resource: AnyResource, namespace: str, query: dict[str, str]) -> Json:
        if token := query.get("continue"):
            if token not in self._pages:
                raise bad_request("invalid continue token")
            version, left = self._pages.pop(token)
            if version < self.store.compacted:
                raise gone("the provided continue parameter is too old")
        else:
            match = self._match(resource, namespace, query)
            version, left = self.store.version, [o for o in self.store.all(resource) if match(o)]
        limit = int(query.get("limit", 0)) or len(left)
        meta: Json = {"resourceVersion": str(version)}
        if left[limit:]:
            meta["continue"] = f"{version}-{len(self._pages)}-{len(left)}"
            self._pages[meta["continue"]] = (version, left[limit:])
        kind = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
        return {**kind, "metadata": meta, "items": left[:limit]}

    async def _watch(self, call: Call, send: Send) -> None:
        """Send changes until the watch ends."""
        resource, namespace, _, _ = self._locate(call.path)
        match = self._match(resource, namespace, call.query)
        since = int(call.query.get("resourceVersion") or 0)
        watch = Watch(resource, match, since)
        if since == 0:
            for obj in filter(match, self.store.all(resource)):
                watch.send("ADDED", obj)
        elif since < self.store.compacted:
            watch.expire()
        for entry in self.store.history if since else ():
            if entry.version > since:
                watch.offer(entry)
        self.watches.append(watch)
        try:
            await self._stream(watch, float(call.query.get("timeoutSeconds", 1800)), send)
        finally:
            self.watches.remove(watch)

    async def _stream(self, watch: Watch, seconds: float, send: Send) -> None:
        ends = self.clock.monotonic() + seconds
        await send(_start(200))
        while True:
            left = ends - self.clock.monotonic()
            line = await watch.next(self.clock, left, self.store)
            if isinstance(line, Exception):
                raise line
            if line is None:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            await send({"type": "http.response.body", "body": line, "more_body": True})

    def _changed(self, entry: Any) -> None:
        for watch in self.watches:
            watch.offer(entry)


SUCCESS: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def _typed(resource: AnyResource) -> Json:
    return {"kind": resource.kind, "apiVersion": resource.api_version}


def _start(code: int, pause: int | None = None, length: int | None = None) -> Message:
    headers = [(b"content-type", b"application/json")]
    if pause is not None:
        headers.append((b"Retry-After", str(pause).encode()))
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    return {"type": "http.response.start", "status": code, "headers": headers}


async def _send(send: Send, code: int, body: bytes, pause: int | None) -> None:
    await send(_start(code, pause, len(body)))
    await send({"type": "http.response.body", "body": body, "more_body": False})
