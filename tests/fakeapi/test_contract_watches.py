"""
The contract of the API server: lists in pages, selectors, watches.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from pumice.kube import wire
from pumice.kube.client import Selector
from pumice.kube.errors import ApiError, Gone, KubeError
from pumice.kube.patches import MergePatch
from pumice.kube.resources import (
    CONFIG_MAPS,
    JOBS,
    PODS,
    ConfigMap,
)
from tests.fakeapi.bodies import (
    LABEL,
    a_map,
    a_pod,
)
from tests.fakeapi.conftest import Server


async def test_a_list_comes_in_pages(server: Server) -> None:
    client, ns = server.client, server.namespace
    made = {f"m{i}" for i in range(5)}
    for name in made:
        await client.create(CONFIG_MAPS, ns, a_map(name, mine="yes"))

    pages = [p async for p in client.pages(CONFIG_MAPS, Selector(ns, "mine=yes"), size=2)]

    assert [len(p.items) for p in pages] == [2, 2, 1]
    assert {m.metadata.name for p in pages for m in p.items} == made
    assert len({p.resource_version for p in pages}) == 1


SELECTORS = {
    "a=1": {"one"},
    "a!=1": {"two", "none"},
    "a in (1,2)": {"one", "two"},
    "a notin (1)": {"two", "none"},
    "a": {"one", "two"},
    "!a": {"none"},
    "a,a!=2": {"one"},
}


async def test_label_selectors(server: Server) -> None:
    client, ns = server.client, server.namespace
    await client.create(CONFIG_MAPS, ns, a_map("one", a="1", mine="y"))
    await client.create(CONFIG_MAPS, ns, a_map("two", a="2", mine="y"))
    await client.create(CONFIG_MAPS, ns, a_map("none", mine="y"))
    got = {
        text: {
            m.metadata.name for m in await client.list(CONFIG_MAPS, Selector(ns, f"mine,{text}"))
        }
        for text in SELECTORS
    }
    assert got == SELECTORS
    with pytest.raises(KubeError):
        await client.list(CONFIG_MAPS, Selector(ns, "a in ("))


async def test_field_selectors(server: Server) -> None:
    client, ns = server.client, server.namespace
    await client.create(PODS, ns, a_pod("p"))
    await client.create(PODS, ns, a_pod("q", schedulerName="volcano"))

    async def select(fields: str) -> set[str]:
        return {p.metadata.name for p in await client.list(PODS, Selector(ns, fields=fields))}

    assert await select("spec.schedulerName=volcano") == {"q"}
    assert await select("spec.schedulerName!=volcano,status.phase=Pending") == {"p"}
    assert await select("metadata.name=p,spec.nodeName=") == {"p"}
    with pytest.raises(ApiError):
        await select("spec.bogus=1")


async def changes(
    server: Server, since: str, count: int, labels: str = ""
) -> list[tuple[str, str, dict[str, str] | None]]:
    """Return the first changes of config maps that a watch tells, checking their versions."""
    told: list[tuple[str, str, dict[str, str] | None]] = []
    last = int(since)
    select = Selector(server.namespace, labels)
    watch = server.client.watch(
        CONFIG_MAPS, select, resource_version=since, lasting_s=30, silence_s=10
    )
    async with aclosing(watch):
        async for change in watch:
            if isinstance(change, wire.Change):
                assert int(change.object.metadata.resource_version) > last
                last = int(change.object.metadata.resource_version)
                told.append(
                    (change.type, change.object.metadata.name, change.object.metadata.labels)
                )
            if len(told) == count:
                break
    return told


async def test_a_watch_tells_history_and_news(server: Server) -> None:
    client, ns = server.client, server.namespace
    start = (await client.create(CONFIG_MAPS, ns, a_map("m"))).metadata.resource_version
    await client.patch(CONFIG_MAPS, ns, "m", LABEL)
    watching = asyncio.create_task(changes(server, start, 3))
    await asyncio.sleep(0)
    await client.delete(CONFIG_MAPS, ns, "m")
    await client.create(CONFIG_MAPS, ns, a_map("m", c="d"))

    assert await watching == [
        ("MODIFIED", "m", {"a": "b"}),
        ("DELETED", "m", {"a": "b"}),
        ("ADDED", "m", {"c": "d"}),
    ]


async def test_a_watch_through_a_selector(server: Server) -> None:
    client, ns = server.client, server.namespace
    start = (await client.create(CONFIG_MAPS, ns, a_map("m"))).metadata.resource_version
    await client.patch(CONFIG_MAPS, ns, "m", LABEL)
    await client.patch(CONFIG_MAPS, ns, "m", MergePatch({"metadata": {"labels": {"a": "c"}}}))
    await client.create(CONFIG_MAPS, ns, a_map("n"))

    assert await changes(server, start, 2, "a=b") == [
        ("ADDED", "m", {"a": "b"}),
        ("DELETED", "m", {"a": "b"}),
    ]


async def test_a_watch_ends_with_a_bookmark(server: Server) -> None:
    client, ns = server.client, server.namespace
    made = await client.create(CONFIG_MAPS, ns, a_map("m", mine="y"))
    version = made.metadata.resource_version
    opened = asyncio.Event()

    async def watch() -> list[wire.Watched[ConfigMap]]:
        changes = client.watch(
            CONFIG_MAPS,
            Selector(ns, "mine"),
            resource_version=version,
            lasting_s=server.watch_s,
            silence_s=10,
            on_open=opened.set,
        )
        return [change async for change in changes]

    watching = asyncio.create_task(watch())
    await opened.wait()
    # Where nothing at all changes there is nothing to mark, and no bookmark comes.
    await client.create(CONFIG_MAPS, ns, a_map("not-selected"))

    told = await watching
    versions = [int(t.resource_version) for t in told if isinstance(t, wire.Bookmark)]
    assert versions
    assert len(versions) == len(told)
    assert versions == sorted(versions)
    assert versions[0] > int(version)


async def test_a_watch_from_before_all_history_is_gone(server: Server) -> None:
    watch = server.client.watch(JOBS, resource_version="1", lasting_s=5, silence_s=10)
    async with aclosing(watch):
        with pytest.raises(Gone):
            await anext(watch)
