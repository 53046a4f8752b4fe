"""
Who is who in the local cluster, and the kubeconfig of each.

Pumice's components are ServiceAccounts and present tokens, so the roles in `manifests/rbac` apply
to them word for word as they do inside a cluster, and the audit log tells who wrote what. The
others present client certificates, as Kubernetes' own components do.
"""

from __future__ import annotations

import base64
import csv
import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pumice.local.certs import Pair

NAMESPACE: Final = "pumice-system"


@dataclass(frozen=True, slots=True)
class User:
    """A user's name and groups, as kube-apiserver sees them."""

    name: str
    groups: tuple[str, ...] = ()

    @property
    def has_token(self) -> bool:
        """Whether it presents a token, as a ServiceAccount does."""
        return self.name.startswith("system:serviceaccount:")


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


def render(server: str, authority: bytes, user: str, credentials: Pair | str) -> str:
    """Return a kubeconfig with certificate or token and all else inside it; JSON is YAML."""
    if isinstance(credentials, str):
        presented = {"token": credentials}
    else:
        presented = {
            "client-certificate-data": _base64(credentials.cert),
            "client-key-data": _base64(credentials.key),
        }
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
        "users": [{"name": user, "user": presented}],
    }
    return json.dumps(content, indent=2) + "\n"


def write_tokens(directory: Path) -> tuple[Path, dict[str, str]]:
    """Make tokens for those who present one; return kube-apiserver's file of them, and them."""
    tokens = {key: secrets.token_urlsafe(32) for key, user in USERS.items() if user.has_token}
    path = directory / "tokens.csv"
    path.touch(mode=0o600)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        for key, token in tokens.items():
            user = USERS[key]
            rows.writerow([token, user.name, key, ",".join(user.groups)])
    return path, tokens


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
