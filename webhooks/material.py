"""
What the Secret holds: the authority, its key, and the certificate to serve with.

    ca.crt    the authority, and those that it replaced as long as they are good: the caBundle
    ca.key    its key; absent where the certificates are somebody else's, such as cert-manager's
    tls.crt   the certificate      tls.key   its key

Everything is renewed after two thirds of its life. A new authority is trusted beside the old
one, so that replicas may change over one after the other. What is somebody else's is served as
it is and never written.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from pumice.kube.certs import Authority, Pair

AUTHORITY_LIFE = timedelta(days=3650)
LEAF_LIFE = timedelta(days=90)
COMMON_NAME = "pumice-webhooks"
# A certificate of its signer's name counts as signed by itself.
AUTHORITY_NAME = f"{COMMON_NAME}-authority"


@dataclass(frozen=True, slots=True)
class Material:
    """The Secret's content, as PEM."""

    bundle: bytes
    authority_key: bytes
    pair: Pair

    @property
    def ours(self) -> bool:
        """Whether we may renew it."""
        return bool(self.authority_key)


def read(data: Mapping[str, str] | None) -> Material | None:
    """Return the content of a Secret; None where something is missing."""
    try:
        raw = {key: base64.b64decode(value) for key, value in (data or {}).items()}
    except binascii.Error:
        return None
    if not all(raw.get(key) for key in ("ca.crt", "tls.crt", "tls.key")):
        return None
    return Material(raw["ca.crt"], raw.get("ca.key", b""), Pair(raw["tls.crt"], raw["tls.key"]))


def written(material: Material) -> dict[str, str]:
    """Return the content as a Secret has it."""
    pair = material.pair
    raw = {
        "ca.crt": material.bundle,
        "ca.key": material.authority_key,
        "tls.crt": pair.cert,
        "tls.key": pair.key,
    }
    return {key: base64.b64encode(value).decode() for key, value in raw.items()}


def make(hosts: tuple[str, ...], now: datetime, *, life: timedelta = LEAF_LIFE) -> Material:
    """Return everything new; `life` is that of the certificate."""
    authority = Authority(AUTHORITY_NAME, now=now, lifetime=AUTHORITY_LIFE)
    return _issued(authority, authority.cert, hosts, now, life=life)


def fault(material: Material, hosts: tuple[str, ...], now: datetime) -> str:
    """Return why the material should be replaced now; empty where it is good."""
    try:
        leaf = x509.load_pem_x509_certificate(material.pair.cert)
        authorities = x509.load_pem_x509_certificates(material.bundle)
        key_fits = _key_fits(material.pair)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        return f"it cannot be read: {error}"
    if not key_fits:
        return "certificate and key do not belong together"
    if missing := set(hosts) - _hosts(leaf):
        return f"the certificate is not for {', '.join(sorted(missing))}"
    # Between somebody else's authority and certificate there may be others.
    if material.ours and not any(_is_signed_by(found, leaf) for found in authorities):
        return "the certificate is signed by another authority"
    if now >= leaf.not_valid_after_utc:
        return "the certificate has expired"
    if now >= renewal(leaf):
        return "the certificate is due for renewal"
    if now >= renewal(authorities[0]):
        return "the authority is due for renewal"
    return ""


def renew(
    material: Material, hosts: tuple[str, ...], now: datetime, *, life: timedelta = LEAF_LIFE
) -> Material:
    """Return a new certificate, of a new authority too where that is due or cannot be read."""
    try:
        authorities = x509.load_pem_x509_certificates(material.bundle)
        old = Authority.load(Pair(_pem(authorities[0]), material.authority_key))
    except ValueError:
        return make(hosts, now, life=life)
    if now < renewal(authorities[0]):
        return _issued(old, material.bundle, hosts, now, life=life)
    authority = Authority(AUTHORITY_NAME, now=now, lifetime=AUTHORITY_LIFE)
    still_good = [found for found in authorities if now < found.not_valid_after_utc]
    bundle = authority.cert + b"".join(_pem(found) for found in still_good)
    return _issued(authority, bundle, hosts, now, life=life)


def expiry(material: Material) -> datetime:
    """Return when the certificate ends."""
    return x509.load_pem_x509_certificate(material.pair.cert).not_valid_after_utc


def renewal(cert: x509.Certificate) -> datetime:
    """Return when a certificate has lived two thirds of its life."""
    life = cert.not_valid_after_utc - cert.not_valid_before_utc
    return cert.not_valid_before_utc + life * 2 / 3


def _issued(
    authority: Authority, bundle: bytes, hosts: tuple[str, ...], now: datetime, *, life: timedelta
) -> Material:
    pair = authority.server(COMMON_NAME, hosts, now=now, lifetime=life)
    return Material(bundle, authority.pair.key, pair)


def _key_fits(pair: Pair) -> bool:
    key = load_pem_private_key(pair.key, None)
    return key.public_key() == x509.load_pem_x509_certificate(pair.cert).public_key()


def _hosts(leaf: x509.Certificate) -> set[str]:
    try:
        found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    names = set(found.get_values_for_type(x509.DNSName))
    return names | {str(address) for address in found.get_values_for_type(x509.IPAddress)}


def _is_signed_by(authority: x509.Certificate, leaf: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _pem(cert: x509.Certificate) -> bytes:
    return cert.public_bytes(Encoding.PEM)
