"""The webhooks on a fake API server, and what the API server would ask them."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from pumice.core import names
from pumice.core.admission.views import Queues
from pumice.core.api.scheduling import Queue
from pumice.kube.clock import Clock
from tests.builders import a_queue
from tests.fakeapi import FakeApi
from webhooks.metrics import Metrics
from webhooks.register import Endpoint
from webhooks.reviews import Options, Reviews
from webhooks.server import App
from webhooks.service import Service, Settings
from webhooks.table import Webhook, webhooks

Object = dict[str, Any]

TABLE = {webhook.path: webhook for webhook in webhooks([names.DEFAULT_SCHEDULER])}
NAMESPACES = ("default", names.NAMESPACE)


class FixedQueues:
    """Queues that are as they are."""

    def __init__(self, *queues: Queue) -> None:
        standing = (a_queue("root"), a_queue("default"), *queues)
        self._view = Queues({queue.metadata.name: queue for queue in standing})

    async def known(self, name: str) -> Queues:
        return self._view

    async def opened(self, name: str) -> Queues:
        return self._view


async def no_annotations(namespace: str) -> Mapping[str, str]:
    return {}


def an_app(*queues: Queue, metrics: Metrics | None = None) -> App:
    """Return the application with some queues besides root and default."""
    reviews = Reviews(FixedQueues(*queues), no_annotations, Options())
    return App(list(TABLE.values()), reviews, metrics or Metrics())


def asked(
    webhook: Webhook,
    obj: Object | None = None,
    old: Object | None = None,
    *,
    operation: str = "CREATE",
    name: str = "x",
    **changed: Any,
) -> bytes:
    """Return the body of a question, as the API server asks it."""
    group, version = webhook.group
    request = {
        "uid": "u-1",
        "kind": {"group": group, "version": version, "kind": "Any"},
        "resource": {"group": group, "version": version, "resource": webhook.resource},
        "requestResource": None,
        "name": name,
        "namespace": "default" if webhook.namespaced else "",
        "operation": operation,
        "userInfo": {"username": "somebody"},
        "object": obj,
        "oldObject": old,
        "dryRun": False,
        "options": None,
    }
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {**request, **changed},
    }
    return json.dumps(review).encode()


def response(answer: bytes) -> Object:
    """Return the response of an answer, with its patch as an object."""
    review = json.loads(answer)
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    found: Object = review["response"]
    if "patch" in found:
        assert found.pop("patchType") == "JSONPatch"
        found["patch"] = json.loads(base64.b64decode(found["patch"]))
    return found


def a_job(**spec: Any) -> Object:
    """Return a Job as a user writes it."""
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    whole = {"tasks": [{"name": "w", "replicas": 1, "template": template}], "queue": "default"}
    return {"metadata": {"name": "j", "namespace": "default"}, "spec": {**whole, **spec}}


def as_json(obj: msgspec.Struct) -> Object:
    body: Object = msgspec.to_builtins(obj)
    return body


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def settings(port: int, **more: Any) -> Settings:
    endpoint = Endpoint(names.NAMESPACE, "pumice-webhooks", f"https://127.0.0.1:{port}")
    return Settings("127.0.0.1", port, endpoint, "pumice-webhooks-tls", Options(), **more)


@asynccontextmanager
async def a_service(api: FakeApi, clock: Clock, **more: Any) -> AsyncIterator[Service]:
    """Run the whole service on a fake API server until the block ends."""
    async with api.client() as client:
        service = Service(client, settings(free_port(), **more), Metrics(), clock)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(service.run(), name="webhooks")
            yield service
            await service.stop()
            running.cancel()


def trusting(bundle: bytes) -> ssl.SSLContext:
    """Return a client's context that trusts these authorities and no other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=bundle.decode())
    return context
