"""How plugins agree on victims, tier by tier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from pumice.core import catalog
from pumice.core.conf import Arguments
from pumice.core.extension import Victims, Vote
from pumice.core.model.tasks import Task
from pumice.core.session import Session
from tests.builders import a_cluster, a_conf, a_group, a_plugin, a_pod, a_session, nodes

ABSTAIN = "-"
Ask = Callable[[Session, Task, Sequence[Task]], list[Task]]

WAYS: dict[str, Ask] = {
    "preempt": lambda ssn, task, tasks: ssn.preemptable(task, tasks),
    "reclaim": lambda ssn, task, tasks: ssn.reclaimable(task, tasks),
    "gang": lambda ssn, task, tasks: ssn.unified_evictable("gangpreempt", ssn.active[0], tasks),
}

ROWS: dict[str, tuple[list[list[str]], str]] = {
    "plugins of a tier agree on what all of them offer": ([["ab", "bc"]], "b"),
    "one that offers nobody leaves it to the next tier": ([["", "a"], ["a"]], "a"),
    "one that abstains is passed over": ([[ABSTAIN, "a"]], "a"),
    "all abstain": ([[ABSTAIN], [ABSTAIN]], ""),
    "nobody is offered anywhere": ([["a", ""], [""]], ""),
    "where they agree on nobody the next plugin starts anew": ([["ab", "c", "bc"]], "bc"),
    "a lower tier is not asked once there are victims": ([["ab"], ["b"]], "ab"),
    "victims come in the order of the first": ([["cba", "abc"]], "cba"),
}


@dataclass
class Offers:
    """A plugin that offers victims by name, or abstains."""

    name: str
    uids: str

    def on_session_open(self, ssn: Session) -> None:
        ssn.points.preemptable[self.name] = lambda _, tasks: self.offer(tasks)
        ssn.points.reclaimable[self.name] = lambda _, tasks: self.offer(tasks)
        ssn.points.unified_evictable[self.name] = lambda action, job, tasks: self.offer(tasks)

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""

    def offer(self, candidates: Sequence[Task]) -> Victims:
        if self.uids == ABSTAIN:
            return [], Vote.ABSTAIN
        by_name = {task.name: task for task in candidates}
        return [by_name[name] for name in self.uids], Vote.PERMIT


@pytest.fixture
def add() -> Iterator[Callable[[str, str], str]]:
    """Make plugins known that offer what the test says."""
    added: list[str] = []

    def offering(name: str, uids: str) -> str:
        def build(args: Arguments) -> Offers:
            return Offers(name, uids)

        catalog.add_plugin(name, build)
        added.append(name)
        return name

    yield offering
    for name in added:
        catalog.remove_plugin(name)


@pytest.mark.parametrize("ask", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize(("tiers", "want"), ROWS.values(), ids=ROWS.keys())
def test_victims(
    tiers: list[list[str]], want: str, ask: Ask, add: Callable[[str, str], str]
) -> None:
    conf = a_conf(
        "preempt",
        *[
            [
                a_plugin(add(f"p{i}-{k}", uids), "enablePreemptable", "enableReclaimable")
                for k, uids in enumerate(tier)
            ]
            for i, tier in enumerate(tiers)
        ],
    )
    ssn = a_session(
        conf,
        a_cluster(
            nodes(n="8 8Gi"),
            a_group("j"),
            a_pod("w", job="j"),
            [a_pod(name, job="j", node="n") for name in "abc"],
        ),
    )
    tasks = {task.name: task for task in ssn.active[0].tasks.values()}
    victims = ask(ssn, tasks["w"], [tasks[name] for name in "abc"])
    assert "".join(task.name for task in victims) == want
