"""What a session leaves behind: its plan, and nothing else."""

from __future__ import annotations

import gc
from collections.abc import Iterable

import pytest

from pumice.core.catalog import plugin_names
from pumice.core.conf import DEFAULT, Configuration
from pumice.core.cycle import run_session
from tests.builders import (
    Thing,
    a_cluster,
    a_conf,
    a_job,
    a_priority_class,
    a_queue,
    hypernodes,
    nodes,
    within,
)

WORLD: list[Iterable[Thing]] = [
    nodes(**{f"n{i}": "4 16Gi" for i in range(6)}),
    hypernodes(s0="1 n0 n1 n2", s1="1 n3 n4 n5", s2="2 @s0 @s1"),
    [a_priority_class("high", 100), a_queue("default"), a_queue("other", weight=2)],
    a_job("runs", 6, "3", gang=2, on=[f"n{i}" for i in range(6)]),
    a_job("urgent", 4, priority="high"),
    a_job("owed", 4, queue="other"),
    a_job("new", 4, phase="Pending", resources="4"),
    a_job("hopeless", 2, "100"),
    a_job("near", 2, topology=within(1)),
]
RULES = ["gang", "drf", "predicates", "proportion", "nodeorder"]
PREEMPTS = "enqueue allocate preempt reclaim backfill shuffle"
GANGS = "enqueue allocate gangpreempt gangreclaim"


def beside(plugin: str, actions: str) -> Configuration:
    """Return a configuration with a plugin beside those that most clusters have."""
    return a_conf(actions, [plugin], [name for name in RULES if name != plugin])


CONFIGURATIONS = {"default": DEFAULT} | {
    f"{name} with {actions.split()[2]}": beside(name, actions)
    for name in plugin_names()
    for actions in (PREEMPTS, GANGS)
}


@pytest.mark.parametrize("conf", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_nothing_of_a_session_outlives_it(conf: Configuration) -> None:
    """Otherwise node tables pile up: the collector is rare, and looks at old ones more rarely."""
    snapshot = a_cluster(*WORLD).snapshot()
    run_session(snapshot, conf, 0.0, "first")  # what is imported or cached once is there now
    gc.disable()
    gc.freeze()  # what is there already is not looked at
    try:
        plan = run_session(snapshot, conf, 0.0, "second")
        assert gc.collect() == 0
    finally:
        gc.unfreeze()
        gc.enable()
    assert plan.groups
