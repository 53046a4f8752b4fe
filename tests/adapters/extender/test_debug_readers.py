"""The debug API shows each reader what their Kubernetes rights allow, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.main import arguments
from extender.service import Service
from pumice.core.ids import JobKey
from pumice.kube.resources import POD_GROUPS, PODS
from pumice.kube.rights import ACCESS_REVIEWS, TOKEN_REVIEWS
from tests.adapters.extender.bed import Bed, without_nothing
from tests.adapters.extender.pages import PAGES, Pages
from tests.adapters.extender.world import a_pod

TLS = ("--listen=0.0.0.0:1", "--tls-cert=c", "--tls-key=k", "--client-ca=a")
MINE = ("get jobs", "get podgroups", "list podgroups", "get pods", "list pods")
EVERYTHING = (*MINE, "list queues", "get queues", "list nodes")
PATHS = [
    page.path.format(
        kind="podgroup", namespace="ns", name="default" if "queues" in page.path else "g"
    )
    for page in PAGES
]


ROOM = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: binpack
"""
"""Room on nodes is all that counts."""


def a_bed() -> Bed:
    """Return a bed with a gang in `ns` for which there is no room; others hold most of it."""
    bed = Bed()
    bed.nodes(1, cpu=4)
    bed.gang("g", 2, cpu="3")
    on_n0: dict[str, Any] = {"gates": None, "owner": None, "node": "n0"}
    bed.gang("mine", 1, cpu="1", **on_n0)
    spec = {"minMember": 1, "queue": "default"}
    bed.api.add(POD_GROUPS, {"metadata": {"name": "secret"}, "spec": spec}, "theirs")
    made = a_pod("secret-0", cpu="2", group="secret", **on_n0)
    pod = without_nothing(msgspec.to_builtins(made))
    pod["metadata"] = {"name": "secret-0", "annotations": pod["metadata"]["annotations"]}
    bed.api.add(PODS, pod, "theirs")
    return bed


@pytest.fixture
def conf(tmp_path: Path) -> str:
    """An option that names a scheduler configuration."""
    file = tmp_path / "conf"
    file.write_text(ROOM)
    return f"--scheduler-conf={file}"


@asynccontextmanager
async def running(*options: str) -> AsyncIterator[tuple[Bed, Service]]:
    """Run an extender for two tenants; wait until it has said why the gang waits."""
    bed = a_bed()
    async with bed.extender(*options) as extender:
        await bed.until(lambda: says_why(extender))
        yield bed, extender


def says_why(extender: Service) -> bool:
    latest = extender.engine.latest
    status = latest.statuses.get(JobKey("ns/g")) if latest else None
    return bool(status and status.reason and status.reason.numbers.get("free cpu") == 1000.0)


async def test_on_loopback_whoever_presents_nothing_sees_everything(conf: str) -> None:
    async with running(conf) as (bed, extender):
        pages = Pages(extender)
        found = await pages.explain("podgroup", "g")
        for path in PATHS:
            assert (await pages.answer(path)).status_code == 200

    assert [f"{h['namespace']}/{h['name']}" for h in found["holders"] if h["kind"] == "job"] == [
        "theirs/secret",
        "ns/mine",
    ]
    assert [call.path for call in bed.api.calls if "review" in call.path] == []


@pytest.mark.parametrize("options", [(), TLS], ids=["on loopback", "elsewhere"])
async def test_with_the_rights_of_an_administrator_nothing_is_left_out(
    options: tuple[str, ...], conf: str
) -> None:
    async with running(conf, *options) as (bed, extender):
        pages = Pages(extender, bed.api.reviews.let("admin", *EVERYTHING))
        for path in PATHS:
            assert (await pages.answer(path)).status_code == 200
        assert "secret" in str(await pages.explain("podgroup", "g"))


@pytest.mark.parametrize("options", [(), TLS], ids=["on loopback", "elsewhere"])
async def test_with_rights_in_one_namespace_nothing_of_another_is_seen(
    options: tuple[str, ...], conf: str
) -> None:
    async with running(conf, *options) as (bed, extender):
        pages = Pages(extender, bed.api.reviews.let("ann", *MINE, namespace="ns"))
        seen = [
            await pages.explain("podgroup", "g"),
            await pages.explain("pod", "g-0"),
            await pages.explain("pod", "mine-0"),
            await pages.get("/debug/podgroups/ns/g"),
            await pages.get("/debug/podgroups", namespace="ns"),
            await pages.get("/debug/ledger", namespace="ns"),
            await pages.get("/debug/sessions", namespace="ns"),
        ]
        refused = {
            path: await pages.refused(path)
            for path in (
                "/debug/explain/podgroup/theirs/secret",
                "/debug/explain/pod/theirs/secret-0",
                "/debug/explain/job/theirs/no-such-job",
                "/debug/podgroups/theirs/secret",
                "/debug/podgroups?namespace=theirs",
                "/debug/ledger?namespace=theirs",
                "/debug/sessions?namespace=theirs",
                "/debug/podgroups",
                "/debug/ledger",
                "/debug/sessions",
                "/debug/check",
                "/debug/queues",
                "/debug/queues/default",
                "/debug/explain/pod/ns/g-0?node=n0",
            )
        }

    assert "theirs" not in str(seen)
    assert "secret" not in str(seen)
    assert {code for code, _ in refused.values()} == {403}
    assert refused["/debug/explain/podgroup/theirs/secret"][1] == (
        'user "ann" may not get podgroups.scheduling.volcano.sh secret in namespace theirs'
    )
    assert refused["/debug/queues"][1] == ('user "ann" may not list queues.scheduling.volcano.sh')
    whole = seen[0]
    assert [h for h in whole["holders"] if h["kind"] == "others"] == [
        {"kind": "others", "holds": {"cpu": "2"}, "namespace": "", "name": "", "queue": ""}
        | {"jobs": 1}
    ]
    assert [h["name"] for h in whole["holders"] if h["kind"] == "job"] == ["mine"]
    assert [pod.get("choice") for pod in seen[1:3]] == [None, None]


async def test_holders_in_another_namespace_are_named_to_those_who_may_list_groups_there(
    conf: str,
) -> None:
    async with running(conf) as (bed, extender):
        bed.api.reviews.let("ann", "list podgroups", namespace="theirs")
        pages = Pages(extender, bed.api.reviews.let("ann", "get podgroups", namespace="ns"))
        found = await pages.explain("podgroup", "g")
    named = [(h["kind"], h["name"], h["queue"]) for h in found["holders"]]
    assert named == [
        ("queue", "default", ""),
        ("job", "secret", "default"),
        ("others", "", ""),
    ]


async def test_of_a_pods_group_little_is_said_to_those_who_may_not_get_it(conf: str) -> None:
    async with running(conf) as (bed, extender):
        whole = await Pages(extender).explain("pod", "g-0")
        pages = Pages(extender, bed.api.reviews.let("ann", "get pods", namespace="ns"))
        found = await pages.explain("pod", "g-0")
    assert found["sentence"] == whole["sentence"]
    assert (found["phase"], found["members"], found["condition"]) == ("", None, "")


async def test_what_is_said_of_single_pods_is_for_those_who_may_list_them(conf: str) -> None:
    async with running(conf) as (bed, extender):
        pages = Pages(extender, bed.api.reviews.let("ann", "get podgroups", namespace="ns"))
        assert (await pages.explain("podgroup", "g"))["nack"] is None
        assert (await pages.refused("/debug/podgroups/ns/g")) == (
            403,
            'user "ann" may not list pods in namespace ns',
        )


# Who cannot be known.


@pytest.mark.parametrize(
    ("header", "why"),
    {
        "Bearer made-up": "the API server does not accept the token",
        "bearer made-up": "the API server does not accept the token",
        "Basic YTpi": "one bearer token is required, and nothing else",
        "Bearer": "one bearer token is required, and nothing else",
        "Bearer  ": "one bearer token is required, and nothing else",
        "": "one bearer token is required, and nothing else",
        f"Bearer {'x' * 20_000}": "one bearer token is required, and nothing else",
    }.items(),
    ids=lambda value: value[:20],
)
async def test_credentials_that_say_nothing(header: str, why: str) -> None:
    bed = Bed()
    async with bed.api.client() as client:
        pages = Pages(Service.assemble(client, arguments([]), bed.clock))
        pages.client.headers["Authorization"] = header
        answer = await pages.answer("/debug/ledger")
    assert (answer.status_code, answer.json()) == (401, {"detail": why})
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_off_loopback_nobody_is_trusted_without_a_token() -> None:
    bed = Bed()
    async with bed.api.client() as client:
        pages = Pages(Service.assemble(client, arguments(TLS), bed.clock))
        refused = [await pages.refused(path) for path in PATHS]
        health = await pages.answer("/healthz")
    assert refused == [(401, "a bearer token is required")] * len(PATHS)
    assert health.status_code == 200


async def test_two_tokens_are_none() -> None:
    bed = Bed()
    async with bed.api.client() as client:
        pages = Pages(Service.assemble(client, arguments([]), bed.clock))
        token = bed.api.reviews.let("admin", *EVERYTHING)
        twice = [("Authorization", f"Bearer {token}"), ("Authorization", "Bearer x")]
        answer = await pages.client.get("/debug/ledger", headers=twice)
    assert answer.status_code == 401


@pytest.mark.parametrize("path", [TOKEN_REVIEWS, ACCESS_REVIEWS])
@pytest.mark.parametrize("code", [403, 500])
async def test_where_the_api_server_cannot_be_asked_nobody_sees_anything(
    path: str, code: int
) -> None:
    bed = Bed()
    token = bed.api.reviews.let("admin", *EVERYTHING)
    bed.api.fail(code, path=path)
    async with bed.api.client() as client:
        pages = Pages(Service.assemble(client, arguments([]), bed.clock), token)
        first = await pages.refused("/debug/ledger")
        assert (await pages.answer("/debug/ledger")).status_code == 200
    assert first == (503, "the API server could not be asked for the reader's rights")
