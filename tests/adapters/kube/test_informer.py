"""The informer: what its handler is told, whatever the network does."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from pumice.kube.client import EVERYTHING, Client, Selector
from pumice.kube.informer import SILENCE_S, WATCH_S, Added, Deleted, Event, Informer, Updated
from pumice.kube.patches import MergePatch
from pumice.kube.resources import CONFIG_MAPS, ConfigMap
from tests.adapters.kube.conftest import running
from tests.fakeapi import FakeApi, ManualClock, settle, until
from tests.fakeapi.transport import AsgiTransport


def a_map(name: str, value: str = "", **labels: str) -> Any:
    return {"metadata": {"name": name, "labels": labels}, "data": {"v": value}}


def value(obj: ConfigMap) -> str:
    return (obj.data or {}).get("v", "")


@dataclass
class Listener:
    """An informer that keeps values, and what it told."""

    informer: Informer[ConfigMap, str]
    told: list[str] = field(default_factory=list)

    def take(self) -> list[str]:
        """Return what was told since the last time."""
        told, self.told = self.told, []
        return told


def listen(
    client: Client, clock: ManualClock, select: Selector = EVERYTHING, **options: Any
) -> Listener:
    def handle(event: Event[ConfigMap, str]) -> None:
        name = event.key.partition("/")[2]
        match event:
            case Added(_, obj):
                listener.told.append(f"+{name}={value(obj)}")
            case Updated(_, obj, old):
                listener.told.append(f"{name}={old}>{value(obj)}")
            case Deleted(_, _, old):
                listener.told.append(f"-{name}={old}")

    listener = Listener(
        Informer(
            client,
            CONFIG_MAPS,
            handle,
            select=select,
            project=value,
            clock=clock,
            rng=random.Random(1),
            **options,
        )
    )
    return listener


async def change(client: Client, name: str, to: str) -> ConfigMap:
    return await client.patch(CONFIG_MAPS, "default", name, MergePatch({"data": {"v": to}}))


async def synced(api: FakeApi, listener: Listener) -> None:
    await listener.informer.synced.wait()
    await until(lambda: api.watches)


async def test_tells_the_list_then_the_changes(
    api: FakeApi, client: Client, clock: ManualClock
) -> None:
    api.add(CONFIG_MAPS, a_map("a", "1"))
    api.add(CONFIG_MAPS, a_map("b", "1"))
    listener = listen(client, clock)
    async with running(listener.informer.run()):
        await synced(api, listener)
        assert listener.take() == ["+a=1", "+b=1"]
        await change(client, "a", "2")
        await client.delete(CONFIG_MAPS, "default", "b")
        await client.create(CONFIG_MAPS, "default", a_map("c", "1"))
        await until(lambda: len(listener.told) == 3)

        assert listener.take() == ["a=1>2", "-b=1", "+c=1"]
        assert dict(listener.informer.store) == {"default/a": "2", "default/c": "1"}


async def test_selectors_are_the_servers(api: FakeApi, client: Client, clock: ManualClock) -> None:
    api.add(CONFIG_MAPS, a_map("in", "1", mine="yes"))
    api.add(CONFIG_MAPS, a_map("out", "1"))
    api.add(CONFIG_MAPS, a_map("elsewhere", "1", mine="yes"), "other")
    listener = listen(client, clock, Selector("default", labels="mine=yes"))
    async with running(listener.informer.run()):
        await synced(api, listener)
        await client.patch(
            CONFIG_MAPS, "default", "in", MergePatch({"metadata": {"labels": {"mine": "no"}}})
        )
        await until(lambda: len(listener.told) == 2)
        assert listener.take() == ["+in=1", "-in=1"]


async def test_long_lists_come_in_pages(api: FakeApi, client: Client, clock: ManualClock) -> None:
    for i in range(1_001):
        api.add(CONFIG_MAPS, a_map(f"m{i:04}"))
    listener = listen(client, clock)
    async with running(listener.informer.run()):
        await synced(api, listener)
        lists = [c for c in api.calls if "watch" not in c.query]
        assert len(listener.take()) == 1_001
        assert [c.query["limit"] for c in lists] == ["500"] * 3


Break = Callable[[FakeApi], None]


def lose_history(api: FakeApi) -> None:
    api.drop_watches()
    api.compact()


BREAKS: dict[str, tuple[Break, int]] = {
    "the watch ends in time": (FakeApi.end_watches, 1),
    "the connection breaks": (FakeApi.drop_watches, 1),
    "the connection falls silent": (FakeApi.silence_watches, 1),
    "the history is lost": (lose_history, 2),
}


@pytest.mark.parametrize(("harm", "lists"), BREAKS.values(), ids=BREAKS.keys())
async def test_nothing_is_missed_when(
    api: FakeApi, client: Client, clock: ManualClock, harm: Break, lists: int
) -> None:
    for name in ("kept", "changed", "deleted", "reborn"):
        api.add(CONFIG_MAPS, a_map(name, "1"))
    listener = listen(client, clock)
    async with running(listener.informer.run()):
        await synced(api, listener)
        listener.take()
        api.silence_watches()
        api.lose(path="configmaps", times=2, method="GET")
        api.add(CONFIG_MAPS, a_map("new", "1"))
        await change(client, "changed", "2")
        for name in ("deleted", "reborn"):
            await client.delete(CONFIG_MAPS, "default", name)
        await client.create(CONFIG_MAPS, "default", a_map("reborn", "2"))
        harm(api)
        await clock.advance(SILENCE_S + 30)

        assert sorted(listener.take()) == [
            "+new=1",
            "+reborn=2",
            "-deleted=1",
            "-reborn=1",
            "changed=1>2",
        ]
        assert sum("limit" in c.query for c in api.calls) >= lists
        await change(client, "kept", "2")
        await until(lambda: listener.told)
        assert listener.take() == ["kept=1>2"]


async def test_a_lost_history_is_told_by_an_answer_too(
    api: FakeApi, client: Client, clock: ManualClock
) -> None:
    api.add(CONFIG_MAPS, a_map("a", "1"))
    listener = listen(client, clock)
    async with running(listener.informer.run()):
        await synced(api, listener)
        api.drop_watches()
        api.fail(410, method="GET", path="configmaps", reason="Expired")
        await client.delete(CONFIG_MAPS, "default", "a")
        await clock.advance(10)
        assert listener.take() == ["+a=1", "-a=1"]


async def test_failures_are_waited_out_longer_each_time(
    api: FakeApi, client: Client, clock: ManualClock
) -> None:
    api.fail(503, path="configmaps", times=8)
    listener = listen(client, clock)
    async with running(listener.informer.run()):
        await clock.advance(60)
        assert listener.informer.synced.is_set()
    starts = [call.at for call in api.calls][:9]
    waits = [b - a for a, b in pairwise(starts)]
    longest = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert [w for w, most in zip(waits, longest, strict=True) if not most / 2 <= w <= most] == []


async def test_a_server_that_ends_every_watch_at_once_is_not_hammered(
    api: FakeApi, client: Client, clock: ManualClock
) -> None:
    listener = listen(client, clock)
    async with running(listener.informer.run()):
        for _ in range(100):
            await until(lambda: api.watches or clock.sleepers)
            api.end_watches()
            await clock.advance(0.1)
    assert len(api.calls) < 40


async def test_contact_tells_how_old_the_cache_may_be(
    api: FakeApi, client: Client, clock: ManualClock
) -> None:
    listener = listen(client, clock)
    informer = listener.informer
    assert informer.last_contact() == -math.inf

    async with running(informer.run()):
        await synced(api, listener)
        start = informer.last_contact()
        assert start == clock.monotonic()

        # However quiet it is, the watch is made anew before the cache looks old.
        oldest = 0.0
        for _ in range(300):
            await clock.advance(1)
            oldest = max(oldest, clock.monotonic() - informer.last_contact())
        assert WATCH_S[0] - 2 <= oldest <= WATCH_S[1] + 2

        # With a server that is gone nothing vouches for it any more.
        api.silence_watches()
        api.lose(times=1_000, path="configmaps")
        silent = informer.last_contact()
        await clock.advance(200)
        assert informer.last_contact() <= silent + WATCH_S[1]


async def test_bookmarks_are_resumed_from(api: FakeApi, client: Client, clock: ManualClock) -> None:
    listener = listen(client, clock)
    async with running(listener.informer.run()):
        await synced(api, listener)
        api.add(CONFIG_MAPS, a_map("elsewhere"), "other")
        api.bookmark()
        await settle()
        version = str(api.store.version)
        api.drop_watches()
        await clock.advance(1)
        assert api.calls[-1].query["resourceVersion"] == version


MALFORMED = {"metadata": {"name": "bad", "namespace": "default", "uid": "u"}, "data": [1]}


async def test_a_malformed_object_costs_only_itself(
    api: FakeApi, client: Client, clock: ManualClock
) -> None:
    faults: list[str] = []
    api.add(CONFIG_MAPS, a_map("good", "1"))
    api.put(CONFIG_MAPS, MALFORMED)
    listener = listen(client, clock, on_malformed=lambda f: faults.append(f"{f.key}: {f.error}"))
    informer = listener.informer
    message = "configmaps: Expected `object | null`, got `array` - at `$.data`"
    async with running(informer.run()):
        await synced(api, listener)
        assert listener.take() == ["+good=1"]
        assert faults == [f"default/bad: {message.removeprefix('configmaps: ')}"]
        assert informer.malformed == {"default/bad": message.removeprefix("configmaps: ")}

        # What was good stays as it was last told, until it is good again or gone.
        good = api.get(CONFIG_MAPS, "default", "good")
        assert good
        api.put(CONFIG_MAPS, {**good, "data": [1]})
        await settle()
        assert listener.take() == []
        assert dict(informer.store) == {"default/good": "1"}
        assert informer.malformed.keys() == {"default/bad", "default/good"}
        api.put(CONFIG_MAPS, {**good, "data": {"v": "2"}})
        await until(lambda: listener.told)
        assert listener.take() == ["good=1>2"]
        assert informer.malformed.keys() == {"default/bad"}

        api.put(CONFIG_MAPS, {**good, "data": [1]})
        api.compact()
        api.drop_watches()
        await clock.advance(10)
        assert listener.take() == []

        await client.delete(CONFIG_MAPS, "default", "good")
        await client.delete(CONFIG_MAPS, "default", "bad")
        await until(lambda: not informer.malformed)
        assert listener.take() == ["-good=2"]


async def test_a_handler_that_fails_is_told_the_rest(
    api: FakeApi, client: Client, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    def handle(event: Event[ConfigMap, ConfigMap]) -> None:
        told.append(event.key)
        if event.key == "default/a":
            raise RuntimeError("no a today")

    api.add(CONFIG_MAPS, a_map("a"))
    api.add(CONFIG_MAPS, a_map("b"))
    informer = Informer(client, CONFIG_MAPS, handle, clock=clock)
    async with running(informer.run()):
        await informer.synced.wait()
    assert told == ["default/a", "default/b"]
    assert "no a today" in caplog.text


async def test_an_observed_write_is_told_once(
    api: FakeApi, client: Client, clock: ManualClock
) -> None:
    api.add(CONFIG_MAPS, a_map("a", "1"))
    listener = listen(client, clock)
    async with running(listener.informer.run()):
        await synced(api, listener)
        listener.take()
        made = await client.create(CONFIG_MAPS, "default", a_map("b", "1"))
        listener.informer.observe(made)
        listener.informer.observe(await change(client, "a", "2"))
        assert listener.take() == ["+b=1", "a=1>2"]
        await settle()
        assert listener.take() == []


async def test_an_answer_that_the_watch_has_overtaken_is_dropped(
    api: FakeApi, client: Client, clock: ManualClock
) -> None:
    listener = listen(client, clock)
    async with running(listener.informer.run()):
        await synced(api, listener)
        made = await client.create(CONFIG_MAPS, "default", a_map("a", "1"))
        await client.delete(CONFIG_MAPS, "default", "a")
        await until(lambda: len(listener.told) == 2)
        listener.informer.observe(made)
        assert listener.take() == ["+a=1", "-a=1"]


async def test_the_deletion_of_the_old_does_not_hit_the_new(
    api: FakeApi, client: Client, clock: ManualClock
) -> None:
    api.add(CONFIG_MAPS, a_map("a", "1"))
    listener = listen(client, clock)
    async with running(listener.informer.run()):
        await synced(api, listener)
        await client.delete(CONFIG_MAPS, "default", "a")
        # The answer to the creation comes before the watch has told the deletion.
        listener.take()
        listener.informer.observe(await client.create(CONFIG_MAPS, "default", a_map("a", "2")))
        await settle()
        assert dict(listener.informer.store) == {"default/a": "2"}
        assert listener.take()[-1] == "+a=2"


async def test_a_list_older_than_an_observed_write_does_not_undo_it(
    api: FakeApi, client: Client, clock: ManualClock
) -> None:
    listener = listen(client, clock)
    async with running(listener.informer.run()):
        await synced(api, listener)
        api.silence_watches()
        api.compact()
        await clock.advance(SILENCE_S - 1)
        made = await client.create(CONFIG_MAPS, "default", a_map("a", "1"))
        ahead = made.metadata.resource_version + "0"
        made.metadata.resource_version = ahead
        listener.informer.observe(made)
        await clock.advance(5)
        assert listener.take() == ["+a=1"]


async def test_a_server_restored_from_a_backup_is_believed(clock: ManualClock) -> None:
    before, after = FakeApi(clock), FakeApi(clock)
    before.store.version = 5_000
    before.add(CONFIG_MAPS, a_map("a", "later"))
    before.add(CONFIG_MAPS, a_map("lost", "1"))
    after.add(CONFIG_MAPS, a_map("a", "earlier"))
    live = [before]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await live[0](scope, receive, send)

    async with Client(AsgiTransport(app, clock)) as client:
        listener = listen(client, clock)
        async with running(listener.informer.run()):
            await synced(before, listener)
            listener.take()
            live[0] = after
            after.compact()
            before.drop_watches()
            after.fail(410, path="configmaps", reason="Expired")
            await clock.advance(10)
            assert sorted(listener.take()) == ["-lost=1", "a=later>earlier"]
