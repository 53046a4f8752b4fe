"""
Install Pumice's API into a cluster: namespace, CRDs, roles, admission policy.

The manifests are applied on the server's side, as `kubectl apply --server-side` does, so
installing twice changes nothing. Installing returns when the objects work: the CRDs are served
and the admission policy is in force.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import yaml

from pumice.core import names
from pumice.local.api import Api, Object
from pumice.local.errors import ApiError, NotReadyError
from pumice.local.paths import manifests

DIRECTORIES = ("crds", "rbac", "admission")
MARKER = "shared/marker.yaml"
CLUSTER_SCOPED = {
    "CSIDriver": "csidrivers",
    "CSINode": "csinodes",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "CustomResourceDefinition": "customresourcedefinitions",
    "DeviceClass": "deviceclasses",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
    "HyperNode": "hypernodes",
    "Namespace": "namespaces",
    "Node": "nodes",
    "PersistentVolume": "persistentvolumes",
    "PriorityClass": "priorityclasses",
    "Queue": "queues",
    "ResourceSlice": "resourceslices",
    "StorageClass": "storageclasses",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
READY_TIMEOUT_S = 30.0
POLL_S = 0.05
PROBE: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "probe-"},
    "spec": {
        "schedulerName": names.DEFAULT_SCHEDULER,
        "automountServiceAccountToken": False,
        "containers": [{"name": "probe", "image": "probe"}],
    },
}


def install(api: Api, *, shared: bool = False) -> None:
    """Apply the manifests and wait until they work; `shared` is for a shared kube-scheduler."""
    directory = manifests()
    files = [directory / "namespace.yaml"]
    for part in DIRECTORIES:
        files += sorted((directory / part).glob("*.yaml"))
    if shared:
        files.append(directory / MARKER)
    objects = [body for file in files for body in documents(file)]
    for body in objects:
        apply(api, body)
    definitions = [body for body in objects if body["kind"] == "CustomResourceDefinition"]
    for body in definitions:
        _wait(f"CRD {body['metadata']['name']}", lambda body=body: _is_served(api, body))
    _wait("the admission policy", lambda: is_gated(api))
    if shared:
        _wait("the marker's policy", lambda: is_marked(api))


def apply(api: Api, body: Object, namespace: str = "default") -> Object:
    """Apply one object of any kind."""
    answer: Object = api.apply(path_of(body, namespace), body)
    return answer


def path_of(body: Object, namespace: str = "default") -> str:
    """Return the path of an object; its own namespace wins over the one given."""
    return f"{collection_of(body, namespace)}/{body['metadata']['name']}"


def collection_of(body: Object, namespace: str = "default") -> str:
    """Return the path of the collection that an object belongs to."""
    version, kind = body["apiVersion"], body["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    if kind in CLUSTER_SCOPED:
        return f"{root}/{CLUSTER_SCOPED[kind]}"
    scope = body["metadata"].get("namespace", namespace)
    return f"{root}/namespaces/{scope}/{plural_of(kind)}"


def plural_of(kind: str) -> str:
    """Return a kind's name in paths, by the rules that Kubernetes itself follows."""
    word = kind.lower()
    if word.endswith("s"):
        return word + "es"
    if word.endswith("y"):
        return word[:-1] + "ies"
    return word + "s"


def documents(file: Path) -> Iterator[Object]:
    """Yield the objects of a YAML file."""
    yield from (body for body in yaml.safe_load_all(file.read_text()) if body)


def _is_served(api: Api, definition: Object) -> bool:
    spec: dict[str, Any] = definition["spec"]
    return all(
        api.exists(f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}")
        for version in spec["versions"]
        if version["served"]
    )


def is_gated(api: Api) -> bool:
    """Tell whether a pod of ours would get our gate now; nothing is created."""
    gates = _admitted(api).get("schedulingGates", [])
    return any(gate["name"] == names.GATE_HELD for gate in gates)


def is_marked(api: Api) -> bool:
    """Tell whether a pod of ours would get our marker now; nothing is created."""
    containers = _admitted(api).get("containers", [])
    return any(names.MARKER_RESOURCE in c["resources"].get("limits", {}) for c in containers)


def _admitted(api: Api) -> Object:
    """Return the specification of a pod of ours after admission; empty while there can be none."""
    try:
        pod = api.post("/api/v1/namespaces/default/pods?dryRun=All", PROBE)
    except ApiError as error:
        # The namespace's ServiceAccount comes a moment after the control plane.
        if error.status != 403:
            raise
        return {}
    spec: Object = pod["spec"]
    return spec


def _wait(what: str, is_ready: Any) -> None:
    deadline = monotonic() + READY_TIMEOUT_S
    while not is_ready():
        if monotonic() > deadline:
            raise NotReadyError(what, READY_TIMEOUT_S, "")
        sleep(POLL_S)
