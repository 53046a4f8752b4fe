"""
Random nodes, residents and probes: every constraint that plans heed, in many mixtures.

A resident is bound to a node from the start; a probe is placed by kube-scheduler. The same
generator state gives the same world.
"""

from __future__ import annotations

from random import Random
from typing import Any

from pumice.local.api import Object
from pumice.local.nodes import a_node

NODES = 8
GPU = "nvidia.com/gpu"
MIB = 1024**2
IMAGES = {"big:1": 900 * MIB, "small:latest": 30 * MIB, "reg.io/x/y:2": 2500 * MIB}
KEYS = ("zone", "host", "rack")
SPREAD_KEYS = (*KEYS, "kubernetes.io/hostname")


def some_nodes(rng: Random) -> list[Object]:
    """Return nodes with labels here and there, taints, cordons, images, and room of any size."""
    return [_node(rng, f"n{i}") for i in range(NODES)]


def _node(rng: Random, name: str) -> Object:
    labels = {"gen": str(rng.randint(1, 6))}
    labels |= {"host": f"h-{name}"} if rng.random() < 0.9 else {}
    labels |= {"zone": rng.choice("abc")} if rng.random() < 0.85 else {}
    labels |= {"rack": rng.choice(("r1", "r2", "r3"))} if rng.random() < 0.6 else {}
    taints = [
        {"key": f"p{i}", "effect": "PreferNoSchedule"} for i in range(rng.choice((0, 0, 1, 2)))
    ]
    if rng.random() < 0.2:
        effect = rng.choice(("NoSchedule", "NoExecute"))
        taints.append({"key": "k", "value": rng.choice("vw"), "effect": effect})
    node = a_node(
        name,
        cpu=rng.choice((4, 8, 16)),
        memory=rng.choice(("8Gi", "16Gi", "20000000000")),
        pods=rng.choice((4, 110, 110)),
        labels=labels,
        taints=taints,
        extra={GPU: rng.choice((0, 4))},
    )
    if rng.random() < 0.15:
        node["spec"]["unschedulable"] = True
    held = [image for image in IMAGES.items() if rng.random() < 0.5]
    node["status"]["images"] = [{"names": [name], "sizeBytes": size} for name, size in held]
    return node


def a_resident(rng: Random, name: str) -> Object:
    """Return a pod that is on some node already."""
    pod = _pod(rng, name, rng.choice(("default", "default", "other")), repels=0.08)
    pod["spec"] |= {
        "nodeName": f"n{rng.randrange(NODES)}",
        "schedulerName": "nobody",
        "tolerations": [{"operator": "Exists"}],
    }
    return pod


def a_probe(rng: Random, name: str) -> Object:
    """Return a pod that is to be placed."""
    pod = _pod(rng, name, "default", repels=0.25)
    spec = pod["spec"]
    affinity = spec.setdefault("affinity", {})
    if rng.random() < 0.15:
        terms = [_pod_term(rng) for _ in range(rng.choice((1, 1, 2)))]
        affinity.setdefault("podAffinity", {})[REQUIRED] = terms
    affinity["nodeAffinity"] = _node_affinity(rng)
    if rng.random() < 0.1:
        spec["nodeSelector"] = {"zone": rng.choice("abc")}
    if rng.random() < 0.6:
        spec["tolerations"] = [rng.choice(TOLERATIONS)]
    constraints = {}
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        key = rng.choice(SPREAD_KEYS)
        action = rng.choice(("DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway"))
        constraints[key, action] = _spread(rng, key, action)
    spec["topologySpreadConstraints"] = list(constraints.values())
    return pod


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TOLERATIONS: tuple[Object, ...] = (
    {"operator": "Exists"},
    {"key": "k", "operator": "Exists"},
    {"key": "k", "operator": "Equal", "value": "v"},
    {"key": "p1", "operator": "Exists", "effect": "PreferNoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
)
SELECTORS: tuple[Object, ...] = (
    {"matchLabels": {"app": "x"}},
    {"matchLabels": {"app": "y"}},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]},
    {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]},
    {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
    {
        "matchLabels": {"app": "z"},
        "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}],
    },
    {},
)
NODE_RULES: tuple[Object, ...] = (
    {"key": "zone", "operator": "In", "values": ["a", "b"]},
    {"key": "zone", "operator": "NotIn", "values": ["a"]},
    {"key": "gen", "operator": "Gt", "values": ["2"]},
    {"key": "gen", "operator": "Lt", "values": ["5"]},
    {"key": "rack", "operator": "Exists"},
    {"key": "rack", "operator": "DoesNotExist"},
)
NAMESPACES: tuple[Object, ...] = (
    {},
    {},
    {},
    {"namespaces": ["default", "other"]},
    {"namespaceSelector": {}},
    {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}},
)
LABEL_KEYS: tuple[Object, ...] = (
    *({},) * 6,
    {"matchLabelKeys": ["rev"]},
    {"mismatchLabelKeys": ["rev"]},
)


def _pod(rng: Random, name: str, namespace: str, *, repels: float) -> Object:
    labels = {"app": rng.choice("xyz")} if rng.random() < 0.8 else {}
    labels |= {"tier": rng.choice("12")} if rng.random() < 0.4 else {}
    labels |= {"rev": rng.choice("12")} if rng.random() < 0.5 else {}
    affinity: dict[str, Any] = {}
    if rng.random() < repels:
        affinity.setdefault("podAntiAffinity", {})[REQUIRED] = [_pod_term(rng)]
    for kind in ("podAffinity", "podAntiAffinity"):
        if rng.random() < 0.35:
            wish = {"weight": rng.randint(1, 100), "podAffinityTerm": _pod_term(rng)}
            affinity.setdefault(kind, {})[PREFERRED] = [wish]
    spec = {
        "containers": [_container(rng, i) for i in range(rng.choice((1, 1, 2)))],
        "terminationGracePeriodSeconds": 0,
        "affinity": affinity,
    }
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(rng: Random, i: int) -> Object:
    requests = {}
    if rng.random() < 0.8:
        requests["cpu"] = rng.choice(("100m", "250m", "1", "1500m"))
    if rng.random() < 0.8:
        requests["memory"] = rng.choice(("64Mi", "300Mi", "1Gi", "3000000000"))
    if rng.random() < 0.2:
        requests[GPU] = "1"
    container: Object = {
        "name": f"c{i}",
        "image": rng.choice(("big:1", "small", "reg.io/x/y:2", "none")),
        "resources": {
            "requests": requests,
            "limits": {k: v for k, v in requests.items() if k == GPU},
        },
    }
    if rng.random() < 0.12:
        port = rng.choice((8080, 9090)) + i
        address = rng.choice(("", "10.0.0.1", "10.0.0.2"))
        protocol = rng.choice(("TCP", "UDP"))
        container["ports"] = [
            {"containerPort": port, "hostPort": port, "hostIP": address, "protocol": protocol}
        ]
    return container


def _pod_term(rng: Random) -> Object:
    return {
        "topologyKey": rng.choice(KEYS),
        "labelSelector": rng.choice(SELECTORS),
        **rng.choice(NAMESPACES),
        **rng.choice(LABEL_KEYS),
    }


def _node_affinity(rng: Random) -> Object:
    affinity: dict[str, Any] = {}
    if rng.random() < 0.2:
        terms = [_node_term(rng) for _ in range(rng.choice((1, 2)))]
        affinity[REQUIRED] = {"nodeSelectorTerms": terms}
    if rng.random() < 0.5:
        affinity[PREFERRED] = [
            {"weight": rng.randint(1, 100), "preference": _node_term(rng)}
            for _ in range(rng.choice((1, 2, 3)))
        ]
    return affinity


def _node_term(rng: Random) -> Object:
    if rng.random() < 0.15:
        name, operator = f"n{rng.randrange(NODES)}", rng.choice(("In", "NotIn"))
        return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]}]}
    return {"matchExpressions": [rng.choice(NODE_RULES)]}


def _spread(rng: Random, key: str, action: str) -> Object:
    constraint: dict[str, Any] = {
        "maxSkew": rng.choice((1, 1, 2, 3)),
        "topologyKey": key,
        "whenUnsatisfiable": action,
        "labelSelector": rng.choice(SELECTORS),
    }
    if action == "DoNotSchedule" and rng.random() < 0.2:
        constraint["minDomains"] = rng.choice((2, 3, 4))
    if rng.random() < 0.2:
        constraint["nodeAffinityPolicy"] = "Ignore"
    if rng.random() < 0.3:
        constraint["nodeTaintsPolicy"] = "Honor"
    if rng.random() < 0.2:
        constraint["matchLabelKeys"] = ["rev"]
    return constraint
