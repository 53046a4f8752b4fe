"""Small worlds for the rules between pods: nodes as label maps, pods as specs on nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pumice.core.api.core import Pod, Taint
from pumice.core.model.columns import Columns
from pumice.core.model.nodes import NodeInfo
from pumice.core.model.peers import Peers
from pumice.core.model.signatures import Presence, Signature
from pumice.core.resources import Bools

LABEL_KEYS = frozenset({"app", "rev"})


def nodes(**labels: str) -> list[NodeInfo]:
    """Return nodes by name; `"zone=a gen=7"` are labels, `"!k=v:Effect"` is a taint."""
    return [a_node(name, text) for name, text in labels.items()]


def a_node(name: str, text: str = "", **facts: Any) -> NodeInfo:
    words = text.split()
    labels = dict(word.split("=", 1) for word in words if word[0] != "!")
    taints = tuple(_taint(word[1:]) for word in words if word[0] == "!")
    return NodeInfo(name, labels, taints=taints, **facts)


def _taint(text: str) -> Taint:
    pair, effect = text.split(":")
    key, _, value = pair.partition("=")
    return Taint(key=key, value=value, effect=effect)


def a_pod(app: str = "", *, namespace: str = "ns", **spec: Any) -> Signature:
    """Return the signature of a pod that asks for cpu and memory."""
    spec.setdefault("containers", [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}])
    labels = {"app": app} if app else {}
    metadata = {"name": "p", "namespace": namespace, "labels": labels}
    return Signature.of(msgspec.convert({"metadata": metadata, "spec": spec}, Pod), LABEL_KEYS)


def a_term(app: str, key: str = "zone", **more: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def wishing(kind: str, weight: int, term: dict[str, Any]) -> dict[str, Any]:
    wish = {"weight": weight, "podAffinityTerm": term}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}


def spread(app: str, key: str = "zone", **more: Any) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
        **more,
    }


def ports(*numbers: int, ip: str = "", protocol: str = "TCP") -> list[dict[str, Any]]:
    held = [{"hostPort": n, "hostIP": ip, "protocol": protocol} for n in numbers]
    return [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}, "ports": held}]


def headcount(
    placed: Iterable[tuple[str, Signature]], leaving: Iterable[tuple[str, Signature]] = ()
) -> Mapping[Presence, Mapping[tuple[str, bool], int]]:
    counts: dict[Presence, dict[tuple[str, bool], int]] = defaultdict(lambda: defaultdict(int))
    for out, pods in ((False, placed), (True, leaving)):
        for node, signature in pods:
            counts[signature.presence][node, out] += 1
    return counts


def peers(
    infos: list[NodeInfo],
    *placed: tuple[str, Signature],
    leaving: Iterable[tuple[str, Signature]] = (),
) -> Peers:
    return Peers(Columns(infos), headcount(placed, leaving))


def named(infos: list[NodeInfo], mask: Bools) -> str:
    """Return the names of the nodes in a mask."""
    return " ".join(info.name for info, held in zip(infos, mask, strict=True) if held)
