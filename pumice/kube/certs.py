"""
Certificates made in this process: an authority, and what it signs.

Keys are elliptic (P-256): made in a millisecond, accepted by everything that speaks TLS 1.2. An
authority names its key, and what it signs names the authority's: where two authorities of one
name are trusted at a time, it is clear which of them signed.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
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
    """A certificate authority; `pair` is all there is of it."""

    def __init__(
        self, name: str, *, now: datetime | None = None, lifetime: timedelta = LIFETIME
    ) -> None:
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
        known = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        builder = (
            self._builder(self._name, self._key.public_key(), now or datetime.now(UTC), lifetime)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(known, critical=False)
        )
        self.cert = _pem(builder.sign(self._key, hashes.SHA256()))

    @classmethod
    def load(cls, pair: Pair) -> Self:
        """Return the authority of a pair; raise ValueError where it is none."""
        authority = cls.__new__(cls)
        key = load_pem_private_key(pair.key, None)
        cert = x509.load_pem_x509_certificate(pair.cert)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the authority's key is of another kind")
        if key.public_key() != cert.public_key():
            raise ValueError("the authority's key is not that of its certificate")
        authority._key, authority._name, authority.cert = key, cert.subject, _pem(cert)
        return authority

    @property
    def pair(self) -> Pair:
        """The authority's own certificate and key."""
        return Pair(self.cert, private_pem(self._key))

    def client(self, user: str, groups: tuple[str, ...] = ()) -> Pair:
        """Issue a client certificate for a user."""
        usages = (ExtendedKeyUsageOID.CLIENT_AUTH,)
        return self._issue(_subject(user, groups), (), usages, datetime.now(UTC), LIFETIME)

    def server(
        self,
        name: str,
        hosts: tuple[str, ...],
        *,
        now: datetime | None = None,
        lifetime: timedelta = LIFETIME,
    ) -> Pair:
        """Issue a certificate for a server, good as a client's too (etcd talks to itself)."""
        usages = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
        return self._issue(_subject(name, ()), hosts, usages, now or datetime.now(UTC), lifetime)

    def _issue(
        self,
        subject: x509.Name,
        hosts: tuple[str, ...],
        usages: tuple[x509.ObjectIdentifier, ...],
        now: datetime,
        lifetime: timedelta,
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            self._builder(subject, key.public_key(), now, lifetime)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(signer, critical=False)
        )
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return Pair(_pem(builder.sign(self._key, hashes.SHA256())), private_pem(key))

    def _builder(
        self,
        subject: x509.Name,
        public: ec.EllipticCurvePublicKey,
        now: datetime,
        lifetime: timedelta,
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - CLOCK_SKEW)
            .not_valid_after(now + lifetime)
        )


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
    # A common name is at most 64 characters long; whom a server stands for is in its hosts.
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    parts += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name(parts)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
