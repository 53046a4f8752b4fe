"""The client: what it asks, how it understands answers, and that it never replaces objects."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import msgspec
import pytest

import pumice.kube
from pumice.core.api.scheduling import Queue, QueueSpec
from pumice.kube import wire
from pumice.kube.client import Client, Preconditions, Selector
from pumice.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Disconnected,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Undecodable,
    from_body,
)
from pumice.kube.patches import JsonPatch, MergePatch
from pumice.kube.resources import (
    CONFIG_MAPS,
    JOBS,
    NODES,
    POD_GROUPS,
    PODS,
    QUEUES,
    AnyResource,
)
from tests.fakeapi import FakeApi, ManualClock

PATHS: dict[str, tuple[AnyResource, tuple[str, ...]]] = {
    "/api/v1/pods": (PODS, ()),
    "/api/v1/namespaces/ns/pods": (PODS, ("ns",)),
    "/api/v1/namespaces/ns/pods/p": (PODS, ("ns", "p")),
    "/api/v1/namespaces/ns/pods/p/status": (PODS, ("ns", "p", "status")),
    "/api/v1/nodes/n": (NODES, ("", "n")),
    "/apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs/j": (JOBS, ("ns", "j")),
    "/apis/scheduling.volcano.sh/v1beta1/queues/q": (QUEUES, ("", "q")),
    "/api/v1/namespaces/a%2Fb/configmaps/..%2Fc": (CONFIG_MAPS, ("a/b", "../c")),
}


@pytest.mark.parametrize(("path", "given"), PATHS.items(), ids=PATHS.keys())
def test_paths(path: str, given: tuple[AnyResource, tuple[str, ...]]) -> None:
    resource, parts = given
    assert resource.path(*parts) == path


STATUSES = {
    (401, ""): Unauthorized,
    (403, "Forbidden"): Forbidden,
    (404, "NotFound"): NotFound,
    (405, "MethodNotAllowed"): ApiError,
    (409, "AlreadyExists"): AlreadyExists,
    (409, "Conflict"): Conflict,
    (410, "Expired"): Gone,
    (422, "Invalid"): Invalid,
    (429, "TooManyRequests"): TooManyRequests,
    (500, "InternalError"): ServerError,
    (503, ""): ServerError,
}


def test_errors_by_status() -> None:
    got = {
        (code, reason): type(from_body(code, msgspec.json.encode({"reason": reason})))
        for code, reason in STATUSES
    }
    assert got == STATUSES


BODIES: dict[bytes, tuple[str, str]] = {
    b'{"reason": "NotFound", "message": "no such thing"}': ("NotFound", "no such thing"),
    b"404 page not found\n": ("", "404 page not found"),
    b"": ("", ""),
    b'{"message": 7}': ("", '{"message": 7}'),
    b"\xff" * 9: ("", "\ufffd" * 9),
}


@pytest.mark.parametrize(("body", "want"), BODIES.items())
def test_any_body_makes_an_error(body: bytes, want: tuple[str, str]) -> None:
    error = from_body(404, body)
    assert (error.reason, error.message) == want


def test_when_to_come_back() -> None:
    by_body = from_body(429, b'{"details": {"retryAfterSeconds": 3}}', "9")
    by_header = from_body(429, b"", "9")
    unsaid = from_body(429, b"", "Wed, 21 Oct 2015 07:28:00 GMT")
    got = [e.retry_after_s for e in (by_body, by_header, unsaid) if isinstance(e, TooManyRequests)]
    assert got == [3.0, 9.0, None]


def test_nothing_here_replaces_objects() -> None:
    """Our structs are partial: a PUT of one would erase what it does not hold."""
    sources = Path(pumice.kube.__file__).parent.glob("*.py")
    offenders = [
        f"{file.name}:{number}"
        for file in sources
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if '"PUT"' in line or "'PUT'" in line or ".put(self._base" in line
    ]
    assert offenders == []


async def test_every_way_to_write_avoids_replacing(api: FakeApi, client: Client) -> None:
    uid = (await client.create(POD_GROUPS, "default", {"metadata": {"name": "g"}})).metadata.uid
    patch = MergePatch({"status": {"phase": "Inqueue"}})
    await client.patch(POD_GROUPS, "default", "g", patch)
    await client.patch_status(POD_GROUPS, "default", "g", patch)
    await client.delete(POD_GROUPS, "default", "g", given=Preconditions(uid))
    assert [c.method for c in api.calls] == ["POST", "PATCH", "PATCH", "DELETE"]


async def test_a_struct_of_ours_is_created_whole(api: FakeApi, client: Client) -> None:
    queue = Queue(spec=QueueSpec(weight=3))
    queue.metadata.name = "q"
    made = await client.create(QUEUES, "", queue)
    assert made.spec == queue.spec
    assert msgspec.json.decode(api.calls[-1].body) == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": {"weight": 3},
        "status": {},
    }


async def test_preconditions_are_in_the_body(api: FakeApi, client: Client) -> None:
    made = await client.create(CONFIG_MAPS, "default", {"metadata": {"name": "m"}})
    meta = made.metadata
    given = Preconditions(meta.uid, meta.resource_version)
    await client.patch(CONFIG_MAPS, "default", "m", MergePatch({}), given=given)
    await client.patch(CONFIG_MAPS, "default", "m", JsonPatch([]), given=given)
    await client.delete(CONFIG_MAPS, "default", "m", given=given, grace_s=0)
    held = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    assert [msgspec.json.decode(c.body) for c in api.calls[1:]] == [
        {"metadata": held},
        [{"op": "replace", "path": f"/metadata/{k}", "value": v} for k, v in held.items()],
        {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": held,
            "gracePeriodSeconds": 0,
        },
    ]


async def test_a_custom_status_takes_no_uid_alone(client: Client) -> None:
    given = Preconditions(uid="u")
    with pytest.raises(ValueError, match="does not look at the uid"):
        await client.patch_status(JOBS, "default", "j", MergePatch({}), given=given)


async def test_an_answer_that_does_not_decode_is_an_error_of_the_tree(
    api: FakeApi, client: Client
) -> None:
    api.put(CONFIG_MAPS, {"metadata": {"name": "m", "namespace": "default"}, "data": [1]})
    with pytest.raises(Undecodable, match=r"configmaps: Expected `object \| null`"):
        await client.get(CONFIG_MAPS, "default", "m")


async def test_a_malformed_item_is_left_out_of_a_list(api: FakeApi, client: Client) -> None:
    api.add(CONFIG_MAPS, {"metadata": {"name": "good"}})
    bad: list[dict[str, Any]] = [
        {"metadata": {"name": "a", "namespace": "default", "uid": "u"}, "data": [1]},
        {"metadata": {"name": "b", "namespace": "default", "labels": "none"}},
    ]
    for obj in bad:
        api.put(CONFIG_MAPS, obj)
    faults: list[wire.Malformed] = []
    items = await client.list(CONFIG_MAPS, Selector("default"), on_malformed=faults.append)
    assert [i.metadata.name for i in items] == ["good"]
    assert [(f.key, f.uid) for f in faults] == [("default/a", "u"), ("default/b", "")]
    assert gc.isenabled()


async def test_a_request_that_takes_too_long_is_given_up(
    api: FakeApi, client: Client, clock: ManualClock
) -> None:
    api.delay(31)
    task = asyncio.create_task(client.get(CONFIG_MAPS, "default", "m"))
    await clock.advance(30)
    with pytest.raises(Disconnected, match="silent for 30 s"):
        await task
