"""What the Secret holds: when it is good, and what comes after it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
import trustme
from cryptography import x509

from pumice.kube.certs import Pair
from pumice.kube.tls import Tls
from tests.adapters.webhooks.test_tls import presented, serial, serving
from tests.adapters.webhooks.world import trusting
from webhooks import material as m
from webhooks.material import Material

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOSTS = ("pumice-webhooks.pumice-system.svc", "127.0.0.1")
GOOD = m.make(HOSTS, NOW)


def later(**days: float) -> datetime:
    return NOW + timedelta(**days)


def somebody_elses(*hosts: str) -> Material:
    authority = trustme.CA()
    made = authority.issue_cert(*hosts)
    chain = b"".join(blob.bytes() for blob in made.cert_chain_pems)
    return Material(authority.cert_pem.bytes(), b"", Pair(chain, made.private_key_pem.bytes()))


def certs(pem: bytes) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(pem)


def test_what_is_written_is_read() -> None:
    assert m.read(m.written(GOOD)) == GOOD


MISSING = {
    "no data": None,
    "an empty Secret": {},
    "no key": {k: v for k, v in m.written(GOOD).items() if k != "tls.key"},
    "an empty key": {**m.written(GOOD), "tls.key": ""},
    "no base64": {**m.written(GOOD), "tls.key": "?"},
}


@pytest.mark.parametrize("data", MISSING.values(), ids=MISSING.keys())
def test_what_is_incomplete_is_nothing(data: dict[str, str] | None) -> None:
    assert m.read(data) is None


def test_it_is_for_its_hosts_and_signed_by_its_authority_alone() -> None:
    leaf = certs(GOOD.pair.cert)[0]
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["pumice-webhooks.pumice-system.svc"]
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    leaf.verify_directly_issued_by(certs(GOOD.bundle)[0])
    assert leaf.subject != leaf.issuer


@dataclass(frozen=True)
class Case:
    material: Material
    want: str
    now: datetime = NOW


OTHER = m.make(HOSTS, NOW)
CASES = {
    "a new one": Case(GOOD, ""),
    "one in the middle of its life": Case(GOOD, "", later(days=45)),
    "one with two thirds of its life gone": Case(
        GOOD, "the certificate is due for renewal", later(days=61)
    ),
    "one that has expired": Case(GOOD, "the certificate has expired", later(days=91)),
    "an authority with two thirds of its life gone": Case(
        m.renew(GOOD, HOSTS, later(days=2400)),
        "the authority is due for renewal",
        later(days=2440),
    ),
    "another key": Case(
        replace(GOOD, pair=Pair(GOOD.pair.cert, OTHER.pair.key)),
        "certificate and key do not belong together",
    ),
    "another authority": Case(
        replace(GOOD, bundle=OTHER.bundle), "the certificate is signed by another authority"
    ),
    "other hosts": Case(
        m.make(("elsewhere",), NOW), f"the certificate is not for {', '.join(sorted(HOSTS))}"
    ),
    "somebody else's, for our hosts": Case(somebody_elses(*HOSTS), ""),
    "somebody else's, for others": Case(
        somebody_elses("127.0.0.1"), f"the certificate is not for {HOSTS[0]}"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_fault(case: Case) -> None:
    assert m.fault(case.material, HOSTS, case.now) == case.want


def test_garbage_is_a_fault() -> None:
    for spoilt in (
        replace(GOOD, pair=Pair(b"no", GOOD.pair.key)),
        replace(GOOD, pair=Pair(GOOD.pair.cert, b"no")),
        replace(GOOD, bundle=b"no"),
    ):
        assert m.fault(spoilt, HOSTS, NOW).startswith("it cannot be read: ")


def test_a_renewed_certificate_has_the_same_authority() -> None:
    now = later(days=61)
    new = m.renew(GOOD, HOSTS, now)
    assert new.bundle == GOOD.bundle
    assert new.pair != GOOD.pair
    assert m.fault(new, HOSTS, now) == ""


def test_a_renewed_authority_is_trusted_beside_the_old_one() -> None:
    now = later(days=2450)
    old = m.renew(GOOD, HOSTS, later(days=2400))

    new = m.renew(old, HOSTS, now)

    authorities = certs(new.bundle)
    assert authorities[1:] == certs(GOOD.bundle)
    certs(new.pair.cert)[0].verify_directly_issued_by(authorities[0])
    certs(old.pair.cert)[0].verify_directly_issued_by(authorities[1])
    assert m.fault(new, HOSTS, now) == ""


def test_an_authority_that_has_expired_is_trusted_no_more() -> None:
    new = m.renew(GOOD, HOSTS, later(days=3700))
    assert len(certs(new.bundle)) == 1
    assert certs(new.bundle) != certs(GOOD.bundle)


SPOILT = {
    "the authority's key": replace(GOOD, authority_key=b"no"),
    "the authority's key by that of another": replace(GOOD, authority_key=OTHER.authority_key),
    "the authority": replace(GOOD, bundle=b"no"),
}


@pytest.mark.parametrize("spoilt", SPOILT.values(), ids=SPOILT.keys())
def test_what_cannot_be_renewed_is_made_anew(spoilt: Material) -> None:
    new = m.renew(spoilt, HOSTS, NOW)
    assert m.fault(new, HOSTS, NOW) == ""
    assert new.bundle != GOOD.bundle


async def test_who_trusts_both_authorities_accepts_either_certificate() -> None:
    """The authorities have one name: what tells them apart is the key that they name."""
    now = datetime.now(UTC)
    made = m.make(HOSTS, now - timedelta(days=2450))
    old = m.renew(made, HOSTS, now - timedelta(days=50))
    new = m.renew(old, HOSTS, now)
    tls = Tls()
    for material in (old, new):
        tls.load(material.pair)
        async with serving(tls) as port:
            assert await presented(port, trusting(new.bundle)) == serial(material.pair)
