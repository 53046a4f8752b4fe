"""How fast, and how tightly, pods are packed on cards."""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec

from benchmarks.figures import Better, Figure
from benchmarks.sessions import decide, places
from benchmarks.worlds import CREATED, a_group
from pumice.core import names
from pumice.core.api.core import Node, Pod
from pumice.core.api.scheduling import Queue
from pumice.core.cluster import Cluster
from pumice.core.conf import DEFAULT, Arguments, Configuration, PluginOption
from pumice.core.plan import Plan

NODES = 1_000
CARDS = 8
MEMORY = 24_576
SLOTS = 10
JOBS = 100
PODS = 10_000
"""Each asks for a quarter of a card."""


def measure() -> list[Figure]:
    """Return for each policy the time, and the cards in use by the cards that are needed."""
    return [figure for policy in ("binpack", "spread") for figure in _packed(policy)]


def _packed(policy: str) -> list[Figure]:
    used: set[tuple[str, str]] = set()

    def check(plan: Plan) -> None:
        places(PODS)(plan)
        chosen = ((p.node, p.cards) for a in plan.allocations for p in a.placements)
        used.update((node, card) for node, cards in chosen if cards for card in cards.shares())

    seconds = decide(_world(), check, conf=_conf(policy))
    name = f"{PODS:,} quarter-card pods, {NODES:,} nodes of {CARDS} cards, {policy}"
    needed = math.ceil(PODS / 4)
    # Spreading is to take every card once before it takes any twice.
    wanted = needed if policy == "binpack" else min(NODES * CARDS, PODS)
    better: Better = "less" if policy == "binpack" else "more"
    packed = Figure.of("  cards in use / needed", len(used) / needed, "", wanted / needed, better)
    return [Figure.of(name, seconds, "s", 1.0), packed]


def _conf(policy: str) -> Configuration:
    arguments = {
        "deviceshare.VGPUEnable": True,
        "deviceshare.SchedulePolicy": policy,
        "deviceshare.ScheduleWeight": 10,
    }
    first, second = DEFAULT.tiers
    # The policy alone is to say which node it is.
    kept = tuple(option for option in second if option.name != "nodeorder")
    shared = PluginOption("deviceshare", arguments=Arguments(arguments))
    return replace(DEFAULT, tiers=(first, (*kept, shared)))


def _world() -> Cluster:
    cluster = Cluster()
    body = {"metadata": {"name": "default", "uid": "q"}, "status": {"state": "Open"}}
    cluster.set_queue(msgspec.convert(body, Queue))
    for i in range(NODES):
        cluster.set_node(_node(f"n{i:05}"))
    for i in range(JOBS):
        cluster.set_pod_group(a_group(f"j{i:05}", PODS // JOBS))
        for k in range(PODS // JOBS):
            cluster.set_pod(_pod(f"j{i:05}-worker-{k}", f"j{i:05}"))
    return cluster


def _node(name: str) -> Node:
    cards = (
        f"GPU-{name}-{k},{SLOTS},{MEMORY},NVIDIA-Generic,true,hami-core:" for k in range(CARDS)
    )
    amounts = {
        "cpu": "64",
        "memory": "256Gi",
        "pods": "110",
        names.VGPU_NUMBER: str(SLOTS * CARDS),
        names.VGPU_MEMORY: str(MEMORY * CARDS),
        names.VGPU_CORES: str(100 * CARDS),
    }
    body = {
        "metadata": {"name": name, "annotations": {names.VGPU_REGISTER: "".join(cards)}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
    return msgspec.convert(body, Node)


def _pod(name: str, group: str) -> Pod:
    asked = {names.VGPU_NUMBER: "1", names.VGPU_MEMORY: str(MEMORY // 4)}
    resources = {"requests": {"cpu": "100m", **asked}, "limits": asked}
    body = {
        "metadata": {
            "name": name,
            "namespace": "b",
            "uid": name,
            "creationTimestamp": CREATED,
            "annotations": {names.GROUP_NAME: group},
        },
        "spec": {
            "schedulerName": "volcano",
            "schedulingGates": [{"name": names.GATE_HELD}],
            "containers": [{"name": "main", "resources": resources}],
        },
        "status": {"phase": "Pending"},
    }
    return msgspec.convert(body, Pod)
