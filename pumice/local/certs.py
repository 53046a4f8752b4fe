"""
The cluster's certificate authority.

One authority signs the API server's certificate, etcd's, and a client certificate for every user:
the common name is the user's name and the organisations are the groups, which is all that a
user is to kube-apiserver. Everything is made anew for each control plane and thrown away with it.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=365)
CLOCK_SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, both as PEM."""

    cert: bytes
    key: bytes

    def write(self, directory: Path, name: str) -> tuple[Path, Path]:
        """Write `<name>.crt` and `<name>.key` and return their paths."""
        cert, key = directory / f"{name}.crt", directory / f"{name}.key"
        cert.write_bytes(self.cert)
        write_private(key, self.key)
        return cert, key


class Authority:
    """A certificate authority that lives in memory."""

    def __init__(self, name: str = "pumice-local") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject(name, ())
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
        )
        self.cert = _pem(builder.sign(self._key, hashes.SHA256()))

    def client(self, user: str, groups: tuple[str, ...] = ()) -> Pair:
        """Issue a client certificate for a user."""
        return self._issue(_subject(user, groups), (), (ExtendedKeyUsageOID.CLIENT_AUTH,))

    def server(self, name: str, hosts: tuple[str, ...]) -> Pair:
        """Issue a certificate for a server, good as a client's too (etcd talks to itself)."""
        usages = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
        return self._issue(_subject(name, ()), hosts, usages)

    def _issue(
        self, subject: x509.Name, hosts: tuple[str, ...], usages: tuple[x509.ObjectIdentifier, ...]
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(subject, key.public_key()).add_extension(
            x509.ExtendedKeyUsage(usages), critical=False
        )
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return Pair(_pem(builder.sign(self._key, hashes.SHA256())), private_pem(key))

    def _builder(
        self, subject: x509.Name, public: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - CLOCK_SKEW)
            .not_valid_after(now + LIFETIME)
        )


def signing_keys(directory: Path) -> tuple[Path, Path]:
    """Write the key pair that signs ServiceAccount tokens; return (private, public)."""
    key = ec.generate_private_key(ec.SECP256R1())
    private, public = directory / "service-accounts.key", directory / "service-accounts.pub"
    write_private(private, private_pem(key))
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    public.write_bytes(pem)
    return private, public


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the key as unencrypted PEM."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def write_private(path: Path, content: bytes) -> None:
    """Write a file that its owner alone may read, from its first moment on."""
    path.touch(mode=0o600)
    path.write_bytes(content)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def _subject(name: str, groups: tuple[str, ...]) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    parts += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name(parts)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
