"""
Who is who in the local cluster, and the kubeconfig of each.

Pumice's components present client certificates that bear the names of their ServiceAccounts, so
the roles in `manifests/rbac` apply to them word for word as they do inside a cluster, and the
audit log tells who wrote what.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Final

from pumice.local.certs import Pair

NAMESPACE: Final = "pumice-system"


@dataclass(frozen=True, slots=True)
class User:
    """A user's name and groups, as kube-apiserver sees them."""

    name: str
    groups: tuple[str, ...] = ()


def service_account(name: str, namespace: str = NAMESPACE) -> User:
    """Return the user that a pod with this ServiceAccount would be."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return User(f"system:serviceaccount:{namespace}:{name}", groups)


USERS: Final = {
    "admin": User("admin", ("system:masters",)),
    "auditor": User("auditor", ("system:masters",)),
    "kubelet": User("kwok", ("system:masters",)),
    "kube-controller-manager": User("system:kube-controller-manager"),
    "kube-scheduler": User("system:kube-scheduler"),
    "pumice-extender": service_account("pumice-extender"),
    "pumice-controllers": service_account("pumice-controllers"),
    "pumice-webhooks": service_account("pumice-webhooks"),
    "pumice-scheduler": service_account("pumice-scheduler"),
}
"""Every user that has a kubeconfig; the keys are what `ControlPlane.kubeconfig` takes."""


def render(server: str, authority: bytes, user: str, pair: Pair) -> str:
    """Return a kubeconfig with everything inside it; JSON is YAML."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "pumice",
        "contexts": [{"name": "pumice", "context": {"cluster": "pumice", "user": user}}],
        "clusters": [
            {
                "name": "pumice",
                "cluster": {"server": server, "certificate-authority-data": _base64(authority)},
            }
        ],
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": _base64(pair.cert),
                    "client-key-data": _base64(pair.key),
                },
            }
        ],
    }
    return json.dumps(content, indent=2) + "\n"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
