"""Who somebody is and what they may read, asked once in a while."""

from __future__ import annotations

import asyncio

import pytest

from pumice.kube.client import Client
from pumice.kube.errors import Disconnected, Undecodable
from pumice.kube.resources import NODES, POD_GROUPS
from pumice.kube.rights import (
    ACCESS_REVIEWS,
    AT_ONCE,
    KEPT_S,
    REMEMBERED,
    TOKEN_REVIEWS,
    Question,
    Rights,
)
from tests.fakeapi import FakeApi, ManualClock, settle

IN_A = Question("get", POD_GROUPS, "a")


@pytest.fixture
def rights(client: Client, clock: ManualClock) -> Rights:
    return Rights(client, clock)


def asked(api: FakeApi) -> list[str]:
    return [call.path for call in api.calls]


async def test_a_token_names_its_user(api: FakeApi, rights: Rights) -> None:
    token = api.reviews.let("ann", "get podgroups", namespace="a")
    user = await rights.user(token)
    assert user is not None
    assert (user.name, user.uid) == ("ann", "uid-of-ann")
    assert user.groups == ("system:authenticated",)
    assert await rights.user("made up") is None


async def test_what_a_user_may_read_is_what_the_api_server_says(
    api: FakeApi, rights: Rights
) -> None:
    user = await rights.user(api.reviews.let("ann", "get podgroups", namespace="a"))
    assert user is not None
    answers = [
        await rights.may(user, question)
        for question in (
            IN_A,
            Question("get", POD_GROUPS, "b"),
            Question("get", POD_GROUPS),
            Question("list", POD_GROUPS, "a"),
            Question("get", NODES),
        )
    ]
    assert answers == [True, False, False, False, False]


async def test_an_answer_is_kept_for_a_few_seconds(
    api: FakeApi, rights: Rights, clock: ManualClock
) -> None:
    token = api.reviews.let("ann", "get podgroups", namespace="a")
    for _ in range(3):
        user = await rights.user(token)
        assert user is not None
        assert await rights.may(user, IN_A)
    assert asked(api) == [TOKEN_REVIEWS, ACCESS_REVIEWS]

    assert user is not None
    api.reviews.users.clear()
    api.reviews.grants.clear()
    await clock.advance(KEPT_S)
    assert not await rights.may(user, IN_A)
    assert await rights.user(token) is None


async def test_another_users_answer_is_not_mine(api: FakeApi, rights: Rights) -> None:
    ann = await rights.user(api.reviews.let("ann", "get podgroups", namespace="a"))
    bob = await rights.user(api.reviews.let("bob"))
    assert ann is not None
    assert bob is not None
    assert await rights.may(ann, IN_A)
    assert not await rights.may(bob, IN_A)


async def test_only_so_many_answers_are_kept(api: FakeApi, rights: Rights) -> None:
    for number in range(REMEMBERED + 2):
        assert await rights.user(f"guess {number}") is None
    api.calls.clear()
    await rights.user(f"guess {REMEMBERED + 1}")
    await rights.user("guess 0")
    assert asked(api) == [TOKEN_REVIEWS]


async def test_only_so_many_are_asked_about_at_once(
    api: FakeApi, rights: Rights, clock: ManualClock
) -> None:
    api.delay(1.0, times=3 * AT_ONCE)
    async with asyncio.TaskGroup() as group:
        for number in range(3 * AT_ONCE):
            group.create_task(rights.user(f"guess {number}"), name=f"guess {number}")
        for wave in range(1, 4):
            await settle()
            assert len(api.calls) == wave * AT_ONCE
            await clock.advance(1.0)


async def test_an_api_server_that_is_away_is_no_answer(api: FakeApi, rights: Rights) -> None:
    token = api.reviews.let("ann")
    api.lose(path=TOKEN_REVIEWS)
    with pytest.raises(Disconnected):
        await rights.user(token)
    user = await rights.user(token)
    assert user is not None


async def test_an_answer_that_makes_no_sense_is_none(rights: Rights, api: FakeApi) -> None:
    api.reviews.answer = lambda path, body: {"status": "yes"}  # type: ignore[method-assign]
    with pytest.raises(Undecodable, match=TOKEN_REVIEWS):
        await rights.user("token")


def test_a_question_in_words() -> None:
    assert str(IN_A) == "get podgroups.scheduling.volcano.sh in namespace a"
    assert (
        str(Question("list", POD_GROUPS))
        == "list podgroups.scheduling.volcano.sh in all namespaces"
    )
    assert str(Question("list", NODES)) == "list nodes"
    assert str(Question("get", NODES, name="n")) == "get nodes n"
