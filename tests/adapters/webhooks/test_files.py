"""Files that change under us: certificates of a mounted Secret, resource groups."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pumice.core.admission.resource_groups import ResourceGroup
from pumice.kube.tls import Tls
from tests.adapters.webhooks.test_material import HOSTS
from tests.fakeapi import ManualClock
from tests.fakeapi.clock import settle
from webhooks import material as m
from webhooks.files import (
    CHECK_S,
    CertificateFiles,
    CertificateFilesError,
    FileKeeper,
    GroupsFile,
)
from webhooks.material import Material

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def materials() -> list[Material]:
    return [m.make(HOSTS, NOW) for _ in range(2)]


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    return CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "ca.crt")


def put(files: CertificateFiles, certificate: Material, key: Material | None = None) -> None:
    files.certificate.write_bytes(certificate.pair.cert)
    files.key.write_bytes((key or certificate).pair.key)
    files.authority.write_bytes(certificate.bundle)


class Served(list[bytes]):
    """The certificates that were put in force, in order."""

    def __init__(self) -> None:
        super().__init__()
        self._tls = Tls()

    async def adopt(self, new: Material) -> None:
        self._tls.load(new.pair)
        self.append(new.pair.cert)


@asynccontextmanager
async def keeping(files: CertificateFiles, clock: ManualClock) -> AsyncIterator[Served]:
    """Run a keeper until the block ends; yield what it has put in force."""
    served = Served()
    keeper = FileKeeper(files, served.adopt, clock)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(keeper.run(), name="keeper")
        await keeper.ready.wait()
        yield served
        running.cancel()


async def test_a_certificate_that_changes_is_taken_into_use(
    files: CertificateFiles, materials: list[Material]
) -> None:
    old, new = materials
    clock = ManualClock()
    put(files, old)
    async with keeping(files, clock) as served:
        await clock.advance(CHECK_S)
        put(files, new)
        await clock.advance(CHECK_S)
    assert served == [old.pair.cert, new.pair.cert]


Spoil = Callable[[CertificateFiles, list[Material]], None]
SPOILT: dict[str, Spoil] = {
    "a key of another": lambda files, made: put(files, made[1], key=made[0]),
    "no key": lambda files, made: files.key.unlink(),
    "a certificate that is none": lambda files, made: put(
        files, Material(made[1].bundle, b"", made[1].pair.__class__(b"none", made[1].pair.key))
    ),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
async def test_what_does_not_work_leaves_the_old_one_in_force(
    files: CertificateFiles,
    materials: list[Material],
    spoil: Spoil,
    caplog: pytest.LogCaptureFixture,
) -> None:
    old, new = materials
    clock = ManualClock()
    put(files, old)
    async with keeping(files, clock) as served:
        spoil(files, materials)
        await clock.advance(2 * CHECK_S)
        assert served == [old.pair.cert]
        assert "the old certificate stays in force" in caplog.text
        put(files, new)
        await clock.advance(CHECK_S)
    assert served == [old.pair.cert, new.pair.cert]


async def test_without_a_certificate_there_is_no_start(
    files: CertificateFiles, materials: list[Material]
) -> None:
    put(files, materials[0])
    files.authority.unlink()
    keeper = FileKeeper(files, Served().adopt, ManualClock())
    with pytest.raises(CertificateFilesError, match=r"failed to read ca file .*ca\.crt"):
        await keeper.run()


# Resource groups.


@asynccontextmanager
async def following(path: Path, clock: ManualClock) -> AsyncIterator[list[list[str]]]:
    """Follow a file until the block ends; yield the names of the groups it told of."""
    told: list[list[str]] = []

    def changed(groups: list[ResourceGroup]) -> None:
        told.append([group.resource_group for group in groups])

    async with asyncio.TaskGroup() as group:
        running = group.create_task(GroupsFile(path, changed, clock).run(), name="groups")
        await settle()
        yield told
        running.cancel()


async def test_groups_are_read_again_when_they_change(tmp_path: Path) -> None:
    path, clock = tmp_path / "groups", ManualClock()
    path.write_text("resourceGroups: [{resourceGroup: a}]")
    async with following(path, clock) as told:
        await clock.advance(CHECK_S)
        path.write_text("resourceGroups: [{resourceGroup: b}]")
        await clock.advance(CHECK_S)
    assert told == [["a"], ["b"]]


async def test_groups_that_cannot_be_used_leave_the_old_ones_and_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock = tmp_path / "groups", ManualClock()
    path.write_text("resourceGroups: [{resourceGroup: a}]")
    async with following(path, clock) as told:
        path.write_text("resourceGroups: {")
        await clock.advance(3 * CHECK_S)
        assert caplog.text.count("pods are changed as before") == 1
        path.unlink()
        await clock.advance(CHECK_S)
        path.write_text("")
        await clock.advance(CHECK_S)
    assert told == [["a"], []]
