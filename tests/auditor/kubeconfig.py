"""
Where the API server is and how to show who one is, from a kubeconfig file.
"""

from __future__ import annotations

import base64
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

Section = dict[str, str]


@dataclass(frozen=True, slots=True)
class Access:
    """A server, and the TLS context and headers to speak to it with."""

    server: str
    tls: ssl.SSLContext | None
    headers: dict[str, str]


def access(path: Path) -> Access:
    """Read the current context; data in the file and paths to files are both understood."""
    config = yaml.safe_load(path.read_text())
    contexts = {c["name"]: c["context"] for c in config["contexts"]}
    context = contexts[config["current-context"]]
    cluster: Section = _named(config["clusters"], context["cluster"], "cluster")
    user: Section = _named(config.get("users") or [], context.get("user", ""), "user")
    headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
    server = cluster["server"].rstrip("/")
    tls = _tls(path.parent, cluster, user) if server.startswith("https") else None
    return Access(server, tls, headers)


def trust(path: Path) -> ssl.SSLContext | None:
    """Return a context that trusts the cluster's authority and shows nobody who we are."""
    config = yaml.safe_load(path.read_text())
    contexts = {c["name"]: c["context"] for c in config["contexts"]}
    cluster = _named(config["clusters"], contexts[config["current-context"]]["cluster"], "cluster")
    return _tls(path.parent, cluster, {}) if cluster["server"].startswith("https") else None


def _named(entries: list[dict[str, str | Section]], name: str, kind: str) -> Section:
    for entry in entries:
        section = entry.get(kind)
        if entry["name"] == name and isinstance(section, dict):
            return section
    return {}


def _tls(folder: Path, cluster: Section, user: Section) -> ssl.SSLContext:
    authority = _pem(folder, cluster, "certificate-authority")
    context = ssl.create_default_context(cadata=authority or None)
    certificate, key = _pem(folder, user, "client-certificate"), _pem(folder, user, "client-key")
    if certificate and key:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as chain:
            chain.write(certificate + "\n" + key)
            chain.flush()
            context.load_cert_chain(chain.name)
    return context


def _pem(folder: Path, section: Section, name: str) -> str:
    """Return the text of a certificate or key, empty when there is none."""
    if data := section.get(f"{name}-data"):
        return base64.b64decode(data).decode()
    if file := section.get(name):
        return (folder / file).read_text()
    return ""
