"""Certificates: who they name, who signed them, and who may read the keys."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pumice.local.certs import Authority, signing_keys
from pumice.local.users import USERS


def load(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def test_a_client_certificate_names_the_user_and_the_groups() -> None:
    user = USERS["pumice-extender"]
    pair = Authority().client(user.name, user.groups)
    subject = load(pair.cert).subject

    names = [str(part.value) for part in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = [str(part.value) for part in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]

    assert names == ["system:serviceaccount:pumice-system:pumice-extender"]
    assert groups == ["system:serviceaccounts", "system:serviceaccounts:pumice-system"]


def test_every_user_fits_into_a_certificate() -> None:
    authority = Authority()
    got = {name: load(authority.client(u.name, u.groups).cert).subject for name, u in USERS.items()}
    assert {
        name: subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        for name, subject in got.items()
    } == {name: user.name for name, user in USERS.items()}


def test_certificates_are_signed_by_their_authority_and_no_other() -> None:
    ours, other = Authority(), Authority()
    cert = load(ours.client("someone").cert)

    cert.verify_directly_issued_by(load(ours.cert))
    with pytest.raises(InvalidSignature):
        cert.verify_directly_issued_by(load(other.cert))


def test_a_server_certificate_holds_its_hosts_and_serves_both_ways() -> None:
    cert = load(Authority().server("etcd", ("127.0.0.1", "localhost")).cert)
    names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    usage = cert.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value

    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]


def test_keys_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    _, key = Authority().client("someone").write(tmp_path, "someone")
    private, public = signing_keys(tmp_path)

    assert [stat.S_IMODE(path.stat().st_mode) for path in (key, private)] == [0o600, 0o600]
    assert public.read_bytes().startswith(b"-----BEGIN PUBLIC KEY-----")


def test_a_key_belongs_to_its_certificate() -> None:
    pair = Authority().client("someone")
    key = load_pem_private_key(pair.key, None)
    assert key.public_key() == load(pair.cert).public_key()
