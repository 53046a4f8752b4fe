"""The certificate in force: changed under load, and never by one that does not work."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp
import pytest
import trustme
import uvicorn
from cryptography import x509

from pumice.kube.certs import Pair
from pumice.kube.connections import Connection
from pumice.kube.serving import Server
from pumice.kube.tls import BadPairError, Tls
from tests.adapters.webhooks.world import TABLE, a_job, an_app, asked, response

PATH = "/jobs/validate"
QUESTION = asked(TABLE[PATH], a_job())
HEADERS = {"Content-Type": "application/json"}


def a_pair(authority: trustme.CA, kind: trustme.KeyType = trustme.KeyType.ECDSA) -> Pair:
    made = authority.issue_cert("127.0.0.1", key_type=kind)
    chain = b"".join(blob.bytes() for blob in made.cert_chain_pems)
    return Pair(chain, made.private_key_pem.bytes())


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trust(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@asynccontextmanager
async def serving(tls: Tls, connection: type[Connection] = Connection) -> AsyncIterator[int]:
    """Serve the webhooks until the block ends; yield the port."""
    config = uvicorn.Config(
        an_app(),
        host="127.0.0.1",
        port=0,
        http=connection,
        ssl_context_factory=lambda *_: tls.context,
        lifespan="off",
        ws="none",
        log_config=None,
        timeout_keep_alive=120,
        timeout_graceful_shutdown=5,
    )
    server = Server(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(), name="server")
        await server.listening.wait()
        yield int(server.servers[0].sockets[0].getsockname()[1])
        server.should_exit = True


async def presented(port: int, trust: ssl.SSLContext) -> int:
    """Return the serial number of the certificate that a new connection is shown."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return x509.load_der_x509_certificate(der).serial_number


def serial(pair: Pair) -> int:
    return x509.load_pem_x509_certificate(pair.cert).serial_number


async def test_rotation_under_load_drops_no_request(
    authority: trustme.CA, trust: ssl.SSLContext
) -> None:
    tls = Tls()
    pairs = [a_pair(authority) for _ in range(8)]
    tls.load(pairs[0])
    asked_so_far = 0
    rotated = asyncio.Event()

    async def keep_asking(url: str, *, anew: bool) -> None:
        """Ask without a pause, on one connection or on a new one each time."""
        nonlocal asked_so_far
        connector = aiohttp.TCPConnector(ssl=trust, force_close=anew)
        async with aiohttp.ClientSession(connector=connector) as session:
            while not rotated.is_set():
                async with session.post(url, data=QUESTION, headers=HEADERS) as answer:
                    assert answer.status == 200
                    assert response(await answer.read())["allowed"]
                asked_so_far += 1

    async with serving(tls) as port, asyncio.TaskGroup() as group:
        for number in range(6):
            url = f"https://127.0.0.1:{port}{PATH}"
            group.create_task(keep_asking(url, anew=number % 2 == 0), name=f"asker {number}")
        for pair in pairs[1:]:
            before = asked_so_far
            tls.load(pair)
            assert await presented(port, trust) == serial(pair)
            async with asyncio.timeout(20):
                while asked_so_far < before + 30:  # noqa: ASYNC110 - askers have no event
                    await asyncio.sleep(0.005)
        rotated.set()

    assert asked_so_far >= 30 * len(pairs[1:])


WRONG = {
    "a certificate with the key of another": lambda a, b: Pair(b.cert, a.key),
    "a key that is none": lambda a, b: Pair(b.cert, b"-----BEGIN PRIVATE KEY-----\nno\n"),
    "a certificate that is none": lambda a, b: Pair(b"nothing", b.key),
    "nothing": lambda a, b: Pair(b"", b""),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
async def test_a_pair_that_does_not_work_leaves_the_old_one_in_force(
    authority: trustme.CA, trust: ssl.SSLContext, wrong: object
) -> None:
    assert callable(wrong)
    tls = Tls()
    old, new = a_pair(authority), a_pair(authority)
    tls.load(old)
    async with serving(tls) as port:
        with pytest.raises(BadPairError):
            tls.load(wrong(old, new))

        assert await presented(port, trust) == serial(old)
        tls.load(new)
        assert await presented(port, trust) == serial(new)


async def test_a_key_of_another_kind_replaces_the_old_one(
    authority: trustme.CA, trust: ssl.SSLContext
) -> None:
    tls = Tls()
    tls.load(a_pair(authority))
    async with serving(tls) as port:
        rsa = a_pair(authority, trustme.KeyType.RSA)
        tls.load(rsa)
        assert await presented(port, trust) == serial(rsa)


async def test_a_handshake_before_there_is_a_certificate_fails(trust: ssl.SSLContext) -> None:
    async with serving(Tls()) as port:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await presented(port, trust)


# Slow clients.


class Hurried(Connection):
    """A connection with short deadlines."""

    head_s = 0.3
    body_s = 0.3


class Impatient(Connection):
    """A connection whose deadlines are over at once."""

    head_s = 0.05
    body_s = 0.05


HEAD = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
LENGTH = f"Content-Length: {len(QUESTION)}\r\n\r\n".encode()

SLOW: dict[str, Sequence[bytes]] = {
    "one that says nothing": (),
    "one that breaks off in the head": (HEAD,),
    "one that breaks off in the body": (HEAD, LENGTH, QUESTION[:100]),
}


@pytest.mark.parametrize("sent", SLOW.values(), ids=SLOW.keys())
async def test_a_slow_client_is_cut(
    authority: trustme.CA, trust: ssl.SSLContext, sent: Sequence[bytes]
) -> None:
    tls = Tls()
    tls.load(a_pair(authority))
    async with serving(tls, Impatient) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
        writer.write(b"".join(sent))
        async with asyncio.timeout(10):
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await reader.readexactly(1)
        writer.close()


async def test_a_client_that_rests_between_questions_is_not_cut(
    authority: trustme.CA, trust: ssl.SSLContext
) -> None:
    tls = Tls()
    tls.load(a_pair(authority))
    async with serving(tls, Hurried) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
        for rest_s in (2 * Hurried.body_s, 0):
            writer.write(HEAD + LENGTH + QUESTION)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            assert response(await reader.readexactly(length))["allowed"]
            # Longer than either deadline.
            await asyncio.sleep(rest_s)
        writer.close()
        await writer.wait_closed()
