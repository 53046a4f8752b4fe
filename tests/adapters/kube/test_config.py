"""Credentials: where they come from, and that a newer token is picked up."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
import trustme
import yaml
from kubernetes.aio.config import incluster_config

from pumice.kube.config import REFRESH_S, credentials
from tests.fakeapi import ManualClock


def kubeconfig(directory: Path, user: dict[str, Any], **cluster: Any) -> str:
    path = directory / "config"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:1", **cluster}}],
                "users": [{"name": "u", "user": user}],
            }
        )
    )
    return str(path)


async def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    token, clock = tmp_path / "token", ManualClock()
    token.write_text("one")
    got = await credentials(kubeconfig(tmp_path, {"tokenFile": str(token)}), clock)
    assert got.token
    assert await got.token() == "Bearer one"

    token.write_text("two")
    assert await got.token() == "Bearer one"
    await clock.advance(REFRESH_S + 1)
    assert await got.token() == "Bearer two"


async def test_client_certificates(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    pair = authority.issue_cert("someone")
    pair.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    pair.private_key_pem.write_to_path(tmp_path / "key.pem")
    user = {
        "client-certificate": str(tmp_path / "cert.pem"),
        "client-key": str(tmp_path / "key.pem"),
    }
    path = kubeconfig(
        tmp_path,
        user,
        **{"server": "https://127.0.0.1:1/", "certificate-authority": str(tmp_path / "ca.pem")},
    )
    got = await credentials(path)
    assert (got.server, got.token) == ("https://127.0.0.1:1", None)
    assert got.tls
    assert got.tls.verify_mode == ssl.CERT_REQUIRED
    assert len(got.tls.get_ca_certs()) == 1


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory with a ServiceAccount's token, as in a pod."""
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")
    (tmp_path / "token").write_text("account")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    return tmp_path


@pytest.mark.usefixtures("account")
async def test_in_a_cluster() -> None:
    got = await credentials()
    assert got.server == "https://127.0.0.1:443"
    assert got.token
    assert (await got.token()).lower() == "bearer account"


async def test_the_token_of_a_pod_is_read_again(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is good for an hour; the kubelet writes a new one long before that."""
    minutes = [0]

    class Later(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Self:
            return super().now(tz) + datetime.timedelta(minutes=minutes[0])

    clock = SimpleNamespace(datetime=Later, timedelta=datetime.timedelta)
    monkeypatch.setattr(incluster_config, "datetime", clock)
    got = await credentials()
    assert got.token
    (account / "token").write_text("renewed")
    assert (await got.token()).lower() == "bearer account"
    minutes[0] = 2
    assert (await got.token()).lower() == "bearer renewed"
