"""Nodes with cards and pods that ask for them, in one line each."""

from __future__ import annotations

from typing import Any

from pumice.core import names
from pumice.core.api.core import Container, Node, NodeStatus, Pod, PodSpec, ResourceRequirements
from pumice.core.api.meta import ObjectMeta
from tests.builders import a_pod

A100 = "NVIDIA-A100-PCIE-40GB"


def register(*cards: str) -> str:
    """
    Return a registration of cards, each `uuid [memory=24576] [slots=10] [type=..] [mode=..]`.

    The word `sick` makes a card unhealthy; with `numa=..` it is registered in HAMi's form.
    """
    return "".join(_card(text) for text in cards)


def _card(text: str) -> str:
    uuid, *words = text.split()
    said = dict(word.split("=") for word in words if "=" in word)
    healthy = "false" if "sick" in words else "true"
    memory, slots = said.get("memory", "24576"), said.get("slots", "10")
    card, mode = said.get("type", "NVIDIA-Generic"), said.get("mode", "hami-core")
    if "numa" in said:
        return f"{uuid},{slots},{memory},100,{card},{said['numa']},{healthy},0,{mode}:"
    return f"{uuid},{slots},{memory},{card},{healthy},{mode}:"


def vgpu_amounts(registration: str) -> dict[str, str]:
    """Return what a node with these cards has to offer."""
    cards = [entry.split(",") for entry in registration.split(":") if entry]
    return {
        names.VGPU_NUMBER: str(sum(int(card[1]) for card in cards)),
        names.VGPU_MEMORY: str(sum(int(card[2]) for card in cards)),
        names.VGPU_CORES: str(100 * len(cards)),
    }


def a_vgpu_node(name: str, *cards: str, cpu: str = "64", **amounts: str) -> Node:
    """Return a node with vGPU cards."""
    text = register(*cards)
    offered = {"cpu": cpu, "memory": "256Gi", "pods": "110", **vgpu_amounts(text), **amounts}
    return _node(name, offered, {names.VGPU_REGISTER: text})


def a_gpu_node(name: str, number: int, memory: int, *, sick: str = "") -> Node:
    """Return a node of the older sharing; `memory` is that of all cards."""
    shared = {names.GPU_NUMBER: str(number), names.GPU_MEMORY: str(memory)}
    offered = {"cpu": "64", "memory": "256Gi", "pods": "110", **shared}
    return _node(name, offered, {names.GPU_UNHEALTHY: sick} if sick else {})


def _node(name: str, offered: dict[str, str], notes: dict[str, str]) -> Node:
    meta = ObjectMeta(name=name, labels={"kubernetes.io/hostname": name}, annotations=notes)
    return Node(metadata=meta, status=NodeStatus(capacity=dict(offered), allocatable=dict(offered)))


def vgpu(number: int = 1, memory: int = 0, cores: int = 0, percentage: int = 0) -> dict[str, str]:
    """Return what a container asks of vGPU cards."""
    asked = {
        names.VGPU_NUMBER: number,
        names.VGPU_MEMORY: memory,
        names.VGPU_CORES: cores,
        names.VGPU_MEMORY_PERCENTAGE: percentage,
    }
    return {name: str(amount) for name, amount in asked.items() if amount}


def a_container(asks: dict[str, str], restart: str | None = None) -> Container:
    requests, limits = {"cpu": "100m", **asks}, dict(asks)
    resources = ResourceRequirements(requests=dict(requests), limits=dict(limits))
    return Container(name="c", resources=resources, restart_policy=restart)


def a_card_pod(
    name: str, *asks: dict[str, str], inits: tuple[Container, ...] = (), **facts: Any
) -> Pod:
    """Return a pod with a container for each of `asks`."""
    spec = PodSpec(containers=[a_container(a) for a in asks], init_containers=list(inits) or None)
    return a_pod(name, spec=spec, **facts)
