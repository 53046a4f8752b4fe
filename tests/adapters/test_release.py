"""`pumice release`: every held pod goes, whatever else goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from typer.testing import CliRunner

from pumice.cli.main import app
from pumice.cli.release import Released, Releasing, count, summary
from pumice.core import names
from pumice.kube.errors import KubeError
from pumice.kube.resources import PODS
from tests.fakeapi import FakeApi, ManualClock

OURS = names.GATE_HELD


@dataclass
class World:
    """Pods, and who is told of them."""

    clock: ManualClock = field(default_factory=ManualClock)
    said: list[str] = field(default_factory=list)
    #: what happens when the first pod has been released
    meanwhile: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        self.api = FakeApi(self.clock)

    def add(self, name: str, *gates: str, namespace: str = "default", node: str = "") -> None:
        spec: dict[str, Any] = {"containers": [{"name": "c"}]}
        if node:
            spec["nodeName"] = node
        else:
            spec["schedulingGates"] = [{"name": gate} for gate in gates]
        self.api.add(PODS, {"metadata": {"name": name}, "spec": spec}, namespace)

    def remove(self, name: str) -> None:
        pod = self.api.get(PODS, "default", name)
        assert pod is not None
        self.api.objects.delete(PODS, pod, {"gracePeriodSeconds": 0})

    @property
    def gates(self) -> dict[str, list[str]]:
        """The gates of every pod, by name."""
        return {
            pod["metadata"]["name"]: [g["name"] for g in pod["spec"].get("schedulingGates") or ()]
            for pod in self.api.all(PODS)
        }

    def releasing(self, namespace: str = "") -> Releasing:
        client = self.api.client()
        return Releasing(client, self.say, namespace=namespace, clock=self.clock)

    def say(self, text: str) -> None:
        self.said.append(text)
        if self.meanwhile and len(self.said) == 1:
            self.meanwhile()

    async def release(self, namespace: str = "") -> Released:
        """Release with time passing as fast as it is waited for."""
        task = asyncio.create_task(self.releasing(namespace).run(), name="release")
        while not task.done():
            await self.clock.advance(0.5)
        return task.result()


@pytest.fixture
def world() -> World:
    return World()


async def test_every_held_pod_goes_and_nothing_else_changes(world: World) -> None:
    world.add("a", OURS)
    world.add("b", "other.io/gate", OURS, "third.io/gate", namespace="ns")
    world.add("c", "other.io/gate")
    world.add("d", node="n1")

    done = await world.release()

    assert world.gates == {
        "a": [], "b": ["other.io/gate", "third.io/gate"], "c": ["other.io/gate"], "d": []
    }  # fmt: skip
    assert done == Released(released={"default/a", "ns/b"}, gated={"ns/b"})
    assert sorted(world.said) == [
        "default/a: released",
        "ns/b: released, still held by other.io/gate, third.io/gate",
    ]
    patched = [call.path for call in world.api.calls if call.method == "PATCH"]
    assert len(patched) == 2


async def test_one_namespace_alone(world: World) -> None:
    world.add("a", OURS)
    world.add("b", OURS, namespace="ns")

    done = await world.release("ns")

    assert done.released == {"ns/b"}
    assert world.gates == {"a": [OURS], "b": []}


async def test_many_pods_go_side_by_side_and_each_once(world: World) -> None:
    for i in range(700):
        world.add(f"p{i}", OURS)

    done = await world.release()

    assert len(done.released) == len(world.said) == 700
    assert {tuple(gates) for gates in world.gates.values()} == {()}


async def test_the_list_is_what_would_be_released_in_order(world: World) -> None:
    for name in ("b", "a", "c"):
        world.add(name, OURS)

    pods = await world.releasing().held()

    assert [pod.metadata.name for pod in pods] == ["a", "b", "c"]
    assert world.gates["a"] == [OURS]


async def test_what_fails_is_tried_again(world: World) -> None:
    world.add("a", OURS)
    world.api.fail(503, times=2, method="PATCH")
    world.api.lose(method="PATCH", applied=True)

    done = await world.release()

    assert (done.failed, done.left) == ({}, 0)
    assert world.gates == {"a": []}


async def test_what_fails_for_good_is_told_and_the_others_go(world: World) -> None:
    world.add("a", OURS)
    world.add("b", OURS)
    world.api.fail(403, times=100, method="PATCH", path="/pods/a", reason="Forbidden")

    done = await world.release()

    assert done == Released(
        released={"default/b"}, failed={"default/a": "403 Forbidden: 403 was ordered"}, left=1
    )
    assert world.said == [
        "default/b: released",
        "default/a: FAILED: 403 Forbidden: 403 was ordered",
    ]


async def test_a_pod_that_goes_meanwhile_is_no_failure(world: World) -> None:
    world.add("a", OURS)
    world.add("b", OURS)
    world.api.fail(404, method="PATCH", path="/pods/a", reason="NotFound")
    world.meanwhile = lambda: world.remove("a")

    done = await world.release()

    assert (done.released, done.gone, done.left) == ({"default/b"}, {"default/a"}, 0)


async def test_pods_that_are_made_meanwhile_go_too(world: World) -> None:
    world.add("a", OURS)
    world.meanwhile = lambda: world.add("b", OURS)

    done = await world.release()

    assert done.released == {"default/a", "default/b"}


async def test_pods_that_cannot_be_listed_are_an_error(world: World) -> None:
    world.api.fail(403, reason="Forbidden")
    with pytest.raises(KubeError):
        await world.release()


SUMMARIES = {
    "nothing was held": (Released(), "0 pods released."),
    "one": (Released(released={"a"}), "1 pod released."),
    "some are held by others": (
        Released(released={"a", "b"}, gated={"b"}),
        "2 pods released.\nStill held by gates of others: 1 pod.",
    ),
    "some could not be released": (
        Released(released={"a", "b"}, left=3),
        "2 pods released.\nStill held by Pumice: 3 pods.",
    ),
}


@pytest.mark.parametrize(("done", "want"), SUMMARIES.values(), ids=SUMMARIES.keys())
def test_summary(done: Released, want: str) -> None:
    assert summary(done).startswith(want)


def test_all_must_be_said() -> None:
    result = CliRunner().invoke(app, ["release", "--dry-run"])

    assert result.exit_code == 2
    assert "--all" in result.output
    assert count(1) == "1 pod"
