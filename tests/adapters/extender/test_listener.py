"""Where the extender listens, to whom it answers, and how its certificate is renewed."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from extender.addresses import is_loopback, split
from extender.hot import HotPath
from extender.main import arguments, listener, tls_files
from extender.tls import LOOK_S, TlsFiles
from pumice.kube.certs import Authority, Pair
from pumice.kube.serving import Server
from pumice.kube.tls import BadPairError
from tests.adapters.extender.test_hot import BINDING, Recorded, the_rest
from tests.fakeapi import ManualClock

HOSTS = ("127.0.0.1",)
TLS = ["--tls-cert=tls.crt", "--tls-key=tls.key", "--client-ca=ca.crt"]


# What the command line may say.

SAFE = {
    "loopback": ["--listen=127.0.0.1:1"],
    "loopback of IPv6": ["--listen=[::1]:1"],
    "loopback by name": ["--listen=localhost:1"],
    "everywhere, with TLS": ["--listen=0.0.0.0:1", *TLS],
    "everywhere without saying so, with TLS": ["--listen=:1", *TLS],
    "loopback with TLS": ["--listen=127.0.0.1:1", *TLS],
}
OPEN = "could bind pods: give --tls-cert, --tls-key and --client-ca, or listen on loopback"
TOGETHER = "--tls-cert, --tls-key and --client-ca belong together"
UNSAFE = {
    "everywhere": (["--listen=0.0.0.0:1"], OPEN),
    "everywhere without saying so": (["--listen=:1"], OPEN),
    "an address of this machine": (["--listen=10.0.0.1:1"], OPEN),
    "a name that may be anybody's": (["--listen=here:1"], OPEN),
    "TLS that knows no clients": (["--listen=0.0.0.0:1", *TLS[:2]], TOGETHER),
    "clients without TLS": (["--listen=127.0.0.1:1", TLS[2]], TOGETHER),
    "no port": (["--listen=127.0.0.1"], "--listen is host:port, not '127.0.0.1'"),
}


@pytest.mark.parametrize("argv", SAFE.values(), ids=SAFE.keys())
def test_it_listens_where_that_is_safe(argv: list[str]) -> None:
    assert arguments(argv).listen == argv[0].partition("=")[2]


@pytest.mark.parametrize(("argv", "why"), UNSAFE.values(), ids=UNSAFE.keys())
def test_it_refuses_to_listen_where_that_is_not_safe(
    argv: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments(argv)
    assert ended.value.code == 2
    assert why in capsys.readouterr().err


def test_files_that_are_no_good_end_the_process_with_what_is_wrong(tmp_path: Path) -> None:
    argv = [f"{option.partition('=')[0]}={tmp_path / 'gone'}" for option in TLS]
    with pytest.raises(SystemExit, match=f"^extender: .*No such file.*{tmp_path / 'gone'}"):
        tls_files(arguments(argv))


ADDRESSES = {
    "127.0.0.1:10270": ("127.0.0.1", True),
    "127.9.9.9:10270": ("127.9.9.9", True),
    "[::1]:10270": ("::1", True),
    "localhost:10270": ("localhost", True),
    "[::]:10270": ("::", False),
    ":10270": ("", False),
    "node.example:10270": ("node.example", False),
}


@pytest.mark.parametrize(("address", "want"), ADDRESSES.items())
def test_which_addresses_are_loopback(address: str, want: tuple[str, bool]) -> None:
    host, port = split(address)
    assert (host, is_loopback(host)) == want
    assert port == 10270


# Certificates.


@dataclass
class Files:
    """The three files, and who signs."""

    directory: Path
    servers: Authority
    clients: Authority

    def write(self, pair: Pair | None = None) -> None:
        pair = pair or self.servers.server("extender", HOSTS)
        pair.write(self.directory, "tls")
        (self.directory / "ca.crt").write_bytes(self.clients.cert)

    def read(self, clock: ManualClock) -> TlsFiles:
        d = self.directory
        return TlsFiles(d / "tls.crt", d / "tls.key", d / "ca.crt", clock)

    def client(self, signer: Authority | None) -> ssl.SSLContext:
        """Return the context of a client; without a signer it has no certificate."""
        context = ssl.create_default_context(cadata=self.servers.cert.decode())
        if signer is not None:
            pair = signer.client("kube-scheduler").write(self.directory, "client")
            context.load_cert_chain(*pair)
        return context


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(tmp_path, Authority("servers"), Authority("clients"))
    made.write()
    return made


@asynccontextmanager
async def serving(files: TlsFiles, verbs: Recorded | None = None) -> AsyncIterator[str]:
    """Serve the hot path until the block ends; yield the URL."""
    app = HotPath(verbs or Recorded(), the_rest, guarded=True)
    server = Server(listener(app, "127.0.0.1:0", files))
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(), name="server")
        await server.listening.wait()
        yield f"https://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        server.should_exit = True


async def bind(url: str, tls: ssl.SSLContext) -> tuple[int, Any]:
    """Send one `bind` call on a connection of its own."""
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session,
        session.post(f"{url}/bind", json=BINDING) as answer,
    ):
        return answer.status, await answer.json()


async def test_a_client_of_the_authority_binds_and_others_do_not(files: Files) -> None:
    verbs = Recorded()
    async with serving(files.read(ManualClock()), verbs) as url:
        assert await bind(url, files.client(files.clients)) == (200, {"Error": ""})
        status, why = await bind(url, files.client(None))
        assert (status, why) == (401, {"error": "a client certificate is required"})
        with pytest.raises(aiohttp.ClientError):
            await bind(url, files.client(Authority("clients")))
    assert len(verbs.asked) == 1


async def test_pages_need_no_certificate(files: Files) -> None:
    connector = aiohttp.TCPConnector(ssl=files.client(None))
    async with (
        serving(files.read(ManualClock())) as url,
        aiohttp.ClientSession(connector=connector) as session,
        session.get(f"{url}/healthz") as answer,
    ):
        assert await answer.text() == "rest"


async def test_new_files_are_for_new_connections_and_old_ones_go_on(files: Files) -> None:
    clock = ManualClock()
    tls = files.read(clock)
    old = files.client(files.clients)
    async with (
        serving(tls) as url,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=old, limit=1)) as session,
    ):
        watching = asyncio.create_task(tls.watch(), name="watch")
        async with session.post(f"{url}/bind", json=BINDING) as answer:
            assert answer.status == 200

        files.servers, files.clients = Authority("servers"), Authority("clients")
        files.write()
        await clock.advance(LOOK_S)

        assert await bind(url, files.client(files.clients)) == (200, {"Error": ""})
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await bind(url, old)
        async with session.post(f"{url}/bind", json=BINDING) as answer:
            assert answer.status == 200
        watching.cancel()


BAD = {
    "a key of another certificate": lambda f: (f / "tls.key").write_bytes(
        Authority("x").server("x", HOSTS).key
    ),
    "an authority that is none": lambda f: (f / "ca.crt").write_text("nobody"),
    "an empty authority": lambda f: (f / "ca.crt").write_text(""),
    "a file that is gone": lambda f: (f / "tls.crt").unlink(),
}


@pytest.mark.parametrize("spoil", BAD.values(), ids=BAD.keys())
async def test_files_that_do_not_work_leave_the_old_ones_in_force(
    files: Files, spoil: Any, caplog: pytest.LogCaptureFixture
) -> None:
    tls = files.read(ManualClock())
    async with serving(tls) as url:
        spoil(files.directory)
        tls.look()
        tls.look()
        assert await bind(url, files.client(files.clients)) == (200, {"Error": ""})
        refusals = [r for r in caplog.messages if "the last good one stays in force" in r]
        assert len(refusals) == 1

        files.clients = Authority("clients")
        files.write()
        tls.look()
        assert tls.refused == ""
        assert await bind(url, files.client(files.clients)) == (200, {"Error": ""})


def test_files_that_do_not_work_to_begin_with_are_an_error(files: Files) -> None:
    (files.directory / "ca.crt").write_text("nobody")
    with pytest.raises(BadPairError):
        files.read(ManualClock())
