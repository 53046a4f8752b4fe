"""
The cluster's certificate authority, and smaller ones for single services.

One authority signs the API server's certificate, etcd's, and a client certificate for every user:
the common name is the user's name and the organisations are the groups, which is all that a
user is to kube-apiserver. Everything is made anew for each control plane and thrown away with it.
"""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pumice.kube import certs
from pumice.kube.certs import Pair, private_pem, write_private

__all__ = ["Authority", "Pair", "client_authority", "signing_keys"]


class Authority(certs.Authority):
    """The authority of one control plane."""

    def __init__(self) -> None:
        super().__init__("pumice-local")


def signing_keys(directory: Path) -> tuple[Path, Path]:
    """Write the key pair that signs ServiceAccount tokens; return (private, public)."""
    key = ec.generate_private_key(ec.SECP256R1())
    private, public = directory / "service-accounts.key", directory / "service-accounts.pub"
    write_private(private, private_pem(key))
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    public.write_bytes(pem)
    return private, public


def client_authority(service: str, user: str, directory: Path) -> tuple[Path, tuple[Path, Path]]:
    """
    Make an authority that signs for the clients of one service alone, and for one client.

    Return the paths of the authority's certificate and of the client's (cert, key).
    """
    authority = certs.Authority(f"{service}-clients")
    path = directory / f"{service}-clients.crt"
    path.write_bytes(authority.cert)
    return path, authority.client(user).write(directory, f"{service}-client")
