"""Lists and watches taken apart: lines of any length, faults that cost one object."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.kube import wire
from pumice.kube.errors import Gone, Undecodable
from pumice.kube.resources import CONFIG_MAPS


async def chunked(data: bytes, cuts: list[int]) -> AsyncIterator[bytes]:
    start = 0
    for cut in sorted(c % (len(data) + 1) for c in cuts):
        yield data[start:cut]
        start = cut
    yield data[start:]


@given(
    st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b""))),
    st.lists(st.integers(0, 500)),
    st.binary(max_size=5).map(lambda b: b.replace(b"\n", b"")),
)
def test_lines_are_found_however_they_are_cut(
    want: list[bytes], cuts: list[int], unfinished: bytes
) -> None:
    data = b"".join(line + b"\n" for line in want) + unfinished

    async def read() -> list[bytes]:
        return [line async for line in wire.lines(chunked(data, cuts))]

    assert asyncio.run(read()) == want


async def test_a_line_may_be_long() -> None:
    line = b"x" * 3_000_000
    cuts = list(range(0, len(line), 65_536))
    got = [got async for got in wire.lines(chunked(line + b"\n", cuts))]
    assert got == [line]


def test_events() -> None:
    meta = b'"metadata": {"name": "m", "namespace": "n", "uid": "u", "resourceVersion": "7"}'
    added = wire.event(CONFIG_MAPS, b'{"type": "ADDED", "object": {%s}}' % meta)
    assert isinstance(added, wire.Change)
    assert (added.type, added.object.metadata.key) == ("ADDED", "n/m")
    assert wire.event(CONFIG_MAPS, b'{"type": "BOOKMARK", "object": {%s}}' % meta) == (
        wire.Bookmark("7")
    )
    bad = wire.event(CONFIG_MAPS, b'{"type": "DELETED", "object": {%s, "data": 1}}' % meta)
    assert bad == wire.MalformedChange(
        "DELETED",
        wire.Malformed(
            CONFIG_MAPS, "n/m", "u", "7", "Expected `object | null`, got `int` - at `$.data`"
        ),
    )
    with pytest.raises(Gone):
        wire.event(CONFIG_MAPS, b'{"type": "ERROR", "object": {"code": 410, "reason": "Expired"}}')


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"type": "NEWS", "object": {}}', b'{"type": 1}'])
def test_what_is_no_event(line: bytes) -> None:
    with pytest.raises(Undecodable):
        wire.event(CONFIG_MAPS, line)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"items": {}}', b'{"metadata": {}'])
def test_what_is_no_list(body: bytes) -> None:
    with pytest.raises(Undecodable):
        wire.page(CONFIG_MAPS, body)


def test_a_list_without_items() -> None:
    body = b'{"metadata": {"resourceVersion": "7"}, "items": null}'
    assert wire.page(CONFIG_MAPS, body) == wire.Page([], [], "7", "")


def test_the_collector_rests_until_the_last_list_is_read() -> None:
    assert gc.isenabled()
    with wire.gc_paused():
        with wire.gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with wire.gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()  # Whoever turned it off turns it on.
    finally:
        gc.enable()
