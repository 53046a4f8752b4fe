"""The decision log of a running extender, and its last session over HTTP."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path

import pytest

from extender.logbook import SUFFIX, Entry, Logbook
from pumice.core.conf import DEFAULT
from pumice.core.cycle import run_session
from pumice.core.replay.record import Record, read
from pumice.core.replay.run import rerun
from tests.adapters.extender.bed import Bed
from tests.adapters.extender.pages import Pages
from tests.builders import a_cluster, a_job, a_node


def an_entry(number: int = 1) -> Entry:
    snapshot = a_cluster(a_node("n"), a_job("j")).snapshot()
    plan = run_session(snapshot, DEFAULT, float(number), f"s{number}")
    return Entry(snapshot, DEFAULT, [], plan)


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def unpacked(content: bytes) -> Record:
    return read(gzip.decompress(content))


def is_the_same_again(found: Record) -> bool:
    return rerun(found).decisions == bytes(found.decisions)


async def test_an_extender_records_the_sessions_that_decide(tmp_path: Path) -> None:
    bed = Bed()
    bed.nodes(2)
    bed.gang("g", 3)
    async with bed.extender("--decision-log", str(tmp_path)), bed.scheduler():
        await bed.until(lambda: len(bed.bound()) == 3)
        await bed.quiet()
        await bed.until(lambda: files(tmp_path))

    records = [unpacked(file.read_bytes()) for file in files(tmp_path)]
    assert all(is_the_same_again(found) for found in records)
    assert sum(b'"placements":[{' in bytes(found.decisions) for found in records) == 1


async def test_the_last_session_can_be_had_over_http() -> None:
    bed = Bed()
    bed.nodes(1)
    bed.gang("g", 1)
    async with bed.extender() as extender, bed.scheduler():
        await bed.until(lambda: len(bed.bound()) == 1)
        await bed.quiet()
        answer = await Pages(extender).answer("/debug/record")

    assert answer.headers["content-type"] == "application/gzip"
    assert SUFFIX in answer.headers["content-disposition"]
    assert is_the_same_again(unpacked(answer.content))


async def test_the_oldest_files_go(tmp_path: Path) -> None:
    logbook = Logbook(tmp_path, kept=2)
    for number in (9, 10, 11):
        await logbook.write(an_entry(number))
    assert [path.name.split("-")[1] for path in files(tmp_path)] == [f"s10{SUFFIX}", f"s11{SUFFIX}"]


async def test_what_cannot_be_written_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    logbook = Logbook(in_the_way / "log")
    with caplog.at_level(logging.ERROR):
        for number in (1, 2):
            await logbook.write(an_entry(number))
    assert caplog.text.count("the session is not recorded") == 1


IN_A_RECORD = (
    *("pods", "nodes", "podgroups", "queues", "priorityclasses", "hypernodes"),
    *("poddisruptionbudgets", "resourcequotas", "numatopologies"),
    *("persistentvolumeclaims", "persistentvolumes", "storageclasses"),
    *("csinodes", "csidrivers", "csistoragecapacities"),
)


async def test_it_is_for_those_alone_who_may_read_all_that_is_in_it() -> None:
    bed = Bed()
    async with bed.extender() as extender:
        await bed.until(lambda: extender.engine.entry)
        pages = {}
        for missing in ("", *IN_A_RECORD):
            rights = [f"list {kind}" for kind in IN_A_RECORD if kind != missing]
            token = bed.api.reviews.let(f"without-{missing}", *rights)
            pages[missing] = await Pages(extender, token).answer("/debug/record")

    codes = {missing: page.status_code for missing, page in pages.items()}
    assert codes == {"": 200, **dict.fromkeys(IN_A_RECORD, 403)}
    assert "hypernodes" in pages["hypernodes"].text
