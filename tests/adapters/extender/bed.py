"""
The whole extender on an API server in memory; the tests play kube-scheduler and the kubelets.

Time is the machine's, since sessions run in a thread; nothing here waits longer than it must.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec

from extender.hot import HotPath
from extender.main import arguments
from extender.service import Service
from pumice.core.api.core import Node, Pod
from pumice.core.ledger import State
from pumice.core.steering import pinned_node
from pumice.kube.clock import SystemClock
from pumice.kube.resources import NODES, POD_GROUPS, PODS, QUEUES
from tests.adapters.extender.world import VOLCANO_JOB, a_node, a_pod, merged
from tests.fakeapi import FakeApi, eventually
from tests.fakeapi.faults import Call
from tests.fakeapi.refusals import Refusal
from tests.fakeapi.store import Entry

Json = dict[str, Any]
RETRY_S = 0.05


class JumpingClock(SystemClock):
    """The machine's clock, whose wall time somebody sets."""

    ahead_s = 0.0

    def now(self) -> float:
        return super().now() + self.ahead_s


@dataclass
class KubeScheduler:
    """Binds the pods that have no gate by asking the extender, as often as it takes."""

    api: FakeApi
    ask: Callable[[Json, str], Any]
    #: where a pod goes that is neither pinned nor nominated
    node: str = "n0"
    #: where a pod goes that might go elsewhere than it was nominated, if anywhere else
    elsewhere: Callable[[], str] = lambda: ""
    #: pods that it does not look at (yet)
    blind_to: Callable[[str], bool] = lambda name: False
    answers: list[tuple[str, str]] = field(default_factory=list)
    _at_it: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    @contextmanager
    def running(self) -> Iterator[KubeScheduler]:
        """Look at all pods, and at each one that changes."""
        self.api.store.listeners.append(self._changed)
        self.see()
        try:
            yield self
        finally:
            self.api.store.listeners.remove(self._changed)
            self._stop()

    def see(self) -> None:
        """Look at all pods again."""
        for pod in self.api.all(PODS):
            self._look(pod)

    def start_anew(self) -> None:
        """Drop all open calls, as one that is killed does, and begin from what is stored."""
        self._stop()
        self.see()

    def _stop(self) -> None:
        for task in self._at_it.values():
            task.cancel()
        self._at_it.clear()

    def errors(self) -> list[str]:
        return [answer for _, answer in self.answers if answer]

    def _changed(self, entry: Entry) -> None:
        if entry.resource == PODS and entry.type != "DELETED":
            self._look(entry.obj)

    def _look(self, pod: Json) -> None:
        uid, spec = pod["metadata"]["uid"], pod["spec"]
        if uid in self._at_it or self.blind_to(pod["metadata"]["name"]):
            return
        if not spec.get("nodeName") and not spec.get("schedulingGates"):
            self._at_it[uid] = asyncio.create_task(self._bind(pod), name=f"cycle {uid}")

    async def _bind(self, pod: Json) -> None:
        meta = pod["metadata"]
        while True:
            stored = self.api.get(PODS, meta["namespace"], meta["name"])
            if stored is None or stored["metadata"]["uid"] != meta["uid"]:
                return
            typed = msgspec.convert(stored, Pod)
            hint = typed.status.nominated_node_name or self.node
            node = pinned_node(typed) or self.elsewhere() or hint
            answer = await self.ask(stored, node)
            self.answers.append((meta["name"], answer))
            if not answer:
                return
            await asyncio.sleep(RETRY_S)


@dataclass
class Bed:
    """An API server with nodes, one queue and gangs; extenders come and go."""

    clock: JumpingClock = field(default_factory=JumpingClock)
    #: requests that get no answer
    away: Callable[[Call], bool] = lambda call: False

    def __post_init__(self) -> None:
        self.api = FakeApi(self.clock, namespaces=("ns",))
        self.api.add(QUEUES, {"metadata": {"name": "default"}})
        self.api.lose(times=10**9, when=lambda call: self.away(call))
        self.api.store.listeners.append(self._kubelet)
        self.service: Service | None = None
        self._open: set[asyncio.Task[Json | None]] = set()

    def nodes(self, number: int, cpu: int = 4) -> None:
        for i in range(number):
            self.node(a_node(f"n{i}", cpu=cpu))

    def node(self, node: Node) -> None:
        """Add a node."""
        body = without_nothing(msgspec.to_builtins(node))
        body["metadata"].pop("uid", None)
        self.api.add(NODES, body)

    def gang(self, name: str, size: int, *, minimum: int | None = None, **more: Any) -> None:
        """Create a group and its pods, gated as the admission policy does it."""
        spec = {"minMember": size if minimum is None else minimum, "queue": "default"}
        self.api.add(POD_GROUPS, {"metadata": {"name": name}, "spec": spec}, "ns")
        for i in range(size):
            self.pod(f"{name}-{i}", group=name, **more)

    def pod(self, name: str, **more: Any) -> Json:
        more = {"owner": VOLCANO_JOB, **more}
        body = msgspec.to_builtins(a_pod(name, **more))
        for given in ("uid", "resourceVersion", "creationTimestamp"):
            body["metadata"].pop(given, None)
        body["metadata"]["ownerReferences"] = self._owner(more["owner"])
        body.pop("status", None)
        return self.api.add(PODS, without_nothing(body), "ns")

    def _owner(self, owner: Json | None) -> list[Json]:
        """Return the reference to an owner that is there, as garbage collection asks for."""
        if owner is None:
            return []
        queue = self.api.get(QUEUES, "", "default") or {}
        return [{**owner, "uid": queue["metadata"]["uid"]}]

    def stored(self, name: str) -> Json:
        """Return a pod."""
        pod = self.api.get(PODS, "ns", name)
        assert pod is not None
        return pod

    def change(self, name: str, patch: Json, part: str = "") -> None:
        """Change a pod as somebody else would."""
        pod = self.stored(name)
        self.api.objects.update(PODS, pod, part, merged(pod, patch))

    def delete(self, name: str) -> None:
        self.api.objects.delete(PODS, self.stored(name), {})

    def bound(self, prefix: str = "") -> dict[str, str]:
        """Return where the pods are that have a node."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in self.api.all(PODS)
            if pod["spec"].get("nodeName") and pod["metadata"]["name"].startswith(prefix)
        }

    def released(self) -> list[str]:
        return [
            pod["metadata"]["name"]
            for pod in self.api.all(PODS)
            if not pod["spec"].get("schedulingGates")
        ]

    def writes(self, part: str = "") -> list[Call]:
        """Return the writes that were sent, Events apart."""
        return [
            call
            for call in self.api.calls
            if call.method != "GET" and "/events" not in call.path and part in call.path
        ]

    @asynccontextmanager
    async def extender(self, *options: str, kill: bool = False) -> AsyncIterator[Service]:
        """Run an extender, and end it as a signal would, or as kill -9 does."""
        args: argparse.Namespace = arguments(options)
        client = self.api.client()
        service = self.service = Service.assemble(client, args, self.clock)
        async with asyncio.TaskGroup() as group:
            tasks = service.start(group)
            yield service
            self.service = None
            if not kill:
                await service.stop()
            bindings = (t for t in asyncio.all_tasks() if t.get_name().startswith("bind "))
            for task in (*tasks, *bindings):
                task.cancel()
        for call in self._open:
            call.cancel()
        await client.close()

    async def bindings_left_by_a_kill(self, number: int, *options: str) -> list[Json]:
        """Return the bindings that an extender had sent when it was killed, looked at by nobody."""
        self.away = lambda call: "/binding" in call.path
        async with self.extender(*options, kill=True):
            await self.until(lambda: len({c.path for c in self.writes("/binding")}) == number)
        self.away = lambda call: False
        sent = {call.path: call.body for call in self.writes("/binding")}
        return [msgspec.json.decode(body) for body in sent.values()]

    def bind(self, binding: Json) -> None:
        """Have the API server look at a binding that was sent to it."""
        self.api.objects.bind(self.stored(binding["metadata"]["name"]), binding)

    def is_void(self, binding: Json) -> bool:
        """Send a binding; tell whether it was refused, as one of a pod that has changed since."""
        try:
            self.bind(binding)
        except Refusal as refusal:
            return refusal.code == HTTPStatus.CONFLICT
        return False

    @asynccontextmanager
    async def scheduler(self) -> AsyncIterator[KubeScheduler]:
        """Run a kube-scheduler against whatever extender there is."""
        scheduler = KubeScheduler(self.api, self.ask)
        with scheduler.running():
            yield scheduler

    async def ask(self, pod: Json, node: str) -> str:
        """Send one `bind` call and return what comes of it."""
        if self.service is None:
            return "connection refused"
        meta = pod["metadata"]
        body = {
            "PodName": meta["name"],
            "PodNamespace": meta["namespace"],
            "PodUID": meta["uid"],
            "Node": node,
        }
        hung_up = asyncio.Event()
        call = asyncio.create_task(post(self.service.app, "/bind", body, hung_up), name="call")
        self._open.add(call)
        call.add_done_callback(self._open.discard)
        try:
            await asyncio.wait({call})
        finally:
            hung_up.set()
        answer = None if call.cancelled() else call.result()
        return "connection lost" if answer is None else str(answer["Error"])

    async def until(self, condition: Callable[[], object], seconds: float = 10) -> None:
        async def holds() -> bool:
            return bool(condition())

        await eventually(holds, seconds)

    async def quiet(self) -> None:
        """Wait until the books agree with the world and nothing is on its way."""
        service = self.service
        assert service is not None
        model, outbox = service.model, service.outbox

        def agree() -> bool:
            ledger = {e.name: e.node for e in model.ledger if e.state is State.BOUND}
            return not (len(outbox) or model.committed or model.adopted) and ledger == self.bound()

        await self.until(agree)
        assert model.cluster.check() == []
        # A count in an Event is sent again when its answer was lost; all else must not be.
        idle = [write for write in self.api.objects.idle if not write.startswith("events ")]
        assert idle == [], f"writes that changed nothing: {idle}"

    def _kubelet(self, entry: Entry) -> None:
        """Start what was bound."""
        pod = entry.obj
        if entry.resource != PODS or entry.type == "DELETED":
            return
        if pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
            asyncio.get_running_loop().call_soon(self._start, pod)

    def _start(self, bound: Json) -> None:
        """Have a pod run, as it is by now; one that is gone stays gone."""
        meta = bound["metadata"]
        pod = self.api.get(PODS, meta["namespace"], meta["name"])
        if pod is not None and pod["metadata"]["uid"] == meta["uid"]:
            self.api.store.put(PODS, {**pod, "status": {**pod["status"], "phase": "Running"}})


def without_nothing(value: Any) -> Any:
    """Return an object without the fields that say nothing."""
    if isinstance(value, dict):
        cleaned = {k: without_nothing(v) for k, v in value.items()}
        return {k: v for k, v in cleaned.items() if v not in (None, "", [], {})}
    if isinstance(value, list):
        return [without_nothing(v) for v in value]
    return value


async def post(app: HotPath, path: str, body: Json, hung_up: asyncio.Event) -> Json | None:
    """Send a request to an application; return its answer, None where the caller hung up."""
    asked = iter([{"type": "http.request", "body": msgspec.json.encode(body)}])
    sent: list[Any] = []

    async def receive() -> Any:
        if (request := next(asked, None)) is not None:
            return request
        await hung_up.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app({"type": "http", "method": "POST", "path": path}, receive, send)
    if not sent:
        return None
    start, *rest = sent
    assert start["status"] == 200
    answer: Json = msgspec.json.decode(b"".join(part["body"] for part in rest))
    return answer
