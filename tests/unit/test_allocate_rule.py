"""allocate equals the sequential rule: one task after the other, in plain Python."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core import catalog
from pumice.core.conf import Arguments
from pumice.core.extension import LivePredicate, PredicateResult
from pumice.core.session import Session
from tests.builders import Thing, a_conf, a_group, a_node, a_plan, a_plugin, a_pod, placements
from tests.effort import examples

GANG = a_plugin("gang", "enableJobOrder", "enableJobReady", "enableJobPipelined")


@dataclass(frozen=True)
class World:
    """Node sizes, running and leaving pods by node, and jobs as (gang, [cpu of each task])."""

    sizes: list[int]
    held: list[tuple[int, int, bool]]
    jobs: list[tuple[int, list[int]]]

    def things(self) -> list[Thing]:
        made: list[Thing] = [a_node(f"n{i}", f"{size} 64Gi") for i, size in enumerate(self.sizes)]
        for k, (i, cpu, leaving) in enumerate(self.held):
            node = f"n{i % len(self.sizes)}"
            made.append(a_pod(f"held-{k}", str(cpu), node=node, deleting=leaving))
        for k, (gang, tasks) in enumerate(self.jobs):
            made.append(a_group(f"j{k}", least=min(gang, len(tasks)), created=k))
            made += [a_pod(f"j{k}-w-{i}", str(c), job=f"j{k}") for i, c in enumerate(tasks)]
        return made


worlds = st.builds(
    World,
    st.lists(st.integers(1, 6), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3), st.booleans()), max_size=4),
    st.lists(
        st.tuples(st.integers(0, 6), st.lists(st.integers(1, 2), min_size=1, max_size=8)),
        max_size=5,
    ),
)


class Naive:
    """allocate over cpu alone with gang and binpack, one task after the other, in plain Python."""

    def __init__(self, world: World) -> None:
        n = len(world.sizes)
        self.size = list(world.sizes)
        self.used, self.leaving, self.promised = [0] * n, [0] * n, [0] * n
        for i, cpu, leaving in world.held:
            self.used[i % n] += cpu
            self.leaving[i % n] += cpu if leaving else 0
        self.plan: dict[str, str] = {}
        waiting = [
            (k, min(gang, len(tasks)), list(enumerate(tasks)), [0])
            for k, (gang, tasks) in enumerate(world.jobs)
        ]
        while waiting:
            # Jobs that are not ready go first, then the older ones.
            waiting.sort(key=lambda job: (job[3][0] >= job[1], job[0]))
            job = waiting.pop(0)
            if self.turn(*job) and job[2]:
                waiting.append(job)

    def turn(self, k: int, gang: int, tasks: list[tuple[int, int]], ready: list[int]) -> bool:
        """Give a job one turn; return whether it is ready after it."""
        total = ready[0] + len(tasks)
        done: list[tuple[int, int, int, bool]] = []
        while tasks:
            i, cpu = tasks.pop(0)
            node, idle = self.best(cpu)
            if node is None:
                if gang == total:
                    break
                continue
            (self.used if idle else self.promised)[node] += cpu
            done.append((i, cpu, node, idle))
            if ready[0] + sum(row[3] for row in done) >= gang:
                break
        placed = sum(row[3] for row in done)
        if ready[0] + placed >= gang:
            ready[0] += placed
            self.plan |= {f"j{k}-w-{i}": f"n{node}" for i, _, node, idle in done if idle}
            return True
        if ready[0] + len(done) < gang:
            for _, cpu, node, idle in done:
                (self.used if idle else self.promised)[node] -= cpu
        return False

    def best(self, cpu: int) -> tuple[int | None, bool]:
        idle = [s - u for s, u in zip(self.size, self.used, strict=True)]
        future = [
            i + left - due for i, left, due in zip(idle, self.leaving, self.promised, strict=True)
        ]
        open_nodes = [n for n in range(len(idle)) if cpu <= future[n]]
        free = [n for n in open_nodes if cpu <= idle[n]]
        if not open_nodes:
            return None, False
        return max(free or open_nodes, key=lambda n: (self.score(n, cpu), -n)), bool(free)

    def score(self, node: int, cpu: int) -> float:
        after = self.used[node] + cpu
        return after / self.size[node] if after <= self.size[node] else 0.0


ONLY_CPU = a_conf("allocate", [GANG], ["predicates", a_plugin("binpack", **{"binpack.memory": 0})])


@settings(max_examples=examples(150))
@given(worlds)
def test_the_plan_is_that_of_the_sequential_rule(world: World) -> None:
    plan = a_plan(ONLY_CPU, world.things())
    assert placements(plan) == Naive(world).plan


crowds = st.builds(
    lambda sizes, tasks: World(sizes, [], [(1, [cpu]) for cpu in tasks]),
    st.lists(st.integers(1, 20), min_size=1, max_size=4),
    st.lists(st.integers(1, 2), max_size=60),
)


@settings(max_examples=examples(40))
@given(crowds)
def test_many_small_jobs_follow_the_sequential_rule(world: World) -> None:
    plan = a_plan(ONLY_CPU, world.things())
    assert placements(plan) == Naive(world).plan


class OneByOne:
    """A predicate that allows everything and claims to depend on what was placed just now."""

    name = "one-by-one"

    def on_session_open(self, ssn: Session) -> None:
        everywhere = PredicateResult(np.ones(len(ssn.nodes), bool))
        ssn.points.live_predicate[self.name] = LivePredicate(
            lambda cls: True, lambda cls: everywhere
        )

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""


@settings(max_examples=examples(60))
@given(worlds, st.sampled_from(["binpack", "nodeorder"]))
def test_many_at_once_is_the_same_as_one_by_one(world: World, score: str) -> None:
    def build(args: Arguments) -> OneByOne:
        return OneByOne()

    catalog.add_plugin(OneByOne.name, build)
    try:
        slow = a_plan(
            a_conf("allocate", ["gang"], ["predicates", score, OneByOne.name]), world.things()
        )
    finally:
        catalog.remove_plugin(OneByOne.name)
    fast = a_plan(a_conf("allocate", ["gang"], ["predicates", score]), world.things())
    assert placements(fast) == placements(slow)


@settings(max_examples=examples(60))
@given(worlds)
def test_no_node_is_overcommitted_and_no_gang_is_split(world: World) -> None:
    plan = a_plan(ONLY_CPU, world.things())
    placed = placements(plan)
    cpu = {f"j{k}-w-{i}": c for k, (_, t) in enumerate(world.jobs) for i, c in enumerate(t)}
    for n, size in enumerate(world.sizes):
        held = sum(c for i, c, _ in world.held if i % len(world.sizes) == n)
        added = sum(cpu[uid] for uid, node in placed.items() if node == f"n{n}")
        assert not added or held + added <= size
    for k, (gang, tasks) in enumerate(world.jobs):
        mine = sum(uid.startswith(f"j{k}-") for uid in placed)
        assert mine == 0 or mine >= min(gang, len(tasks))
