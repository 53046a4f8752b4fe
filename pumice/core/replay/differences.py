"""Where two runs of one session differ, in words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from pumice.core.replay.record import Record

SHOWN = 20
"""Lines that are printed of one kind of decision; the rest is counted."""

NOWHERE = "no node"


def differences(record: Record, decisions: bytes, configuration: str) -> list[str]:
    """Return the lines to print; none where both runs decided the same."""
    if decisions == bytes(record.decisions):
        return []
    then, now = msgspec.json.decode(record.decisions), msgspec.json.decode(decisions)
    pods = {seen.pod.metadata.uid: seen.pod.metadata.key for seen in record.seen.pods}
    lines = list(_section("configuration", _texts(record.configuration, configuration)))
    for title, view in _VIEWS:
        lines += _section(title, _changes(view(then, pods), view(now, pods)))
    return lines or ["the decisions are the same, and told in other words or in another order"]


def summary(record: Record) -> str:
    """Return in a line what the session saw and decided."""
    plan, seen = msgspec.json.decode(record.decisions), record.seen
    placed = sum(len(made["placements"]) for made in plan["allocations"])
    evicted = sum(len(made["victims"]) for made in plan["evictions"])
    return (
        f"session {record.session}: {len(seen.groups)} groups and {len(seen.pods)} pods on "
        f"{len(seen.nodes)} nodes; {placed} pods placed, {evicted} evicted, "
        f"{len(plan['enqueued'])} groups let in"
    )


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    found = list(lines)
    if not found:
        return
    yield f"{title}:"
    yield from (f"  {line}" for line in found[:SHOWN])
    if len(found) > SHOWN:
        yield f"  and {len(found) - SHOWN} more"


def _texts(then: str, now: str) -> Iterator[str]:
    rows = difflib.unified_diff(then.splitlines(), now.splitlines(), lineterm="", n=1)
    yield from (row for row in list(rows)[2:] if not row.startswith("@@"))


def _changes(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    names = [*then, *(name for name in now if name not in then)]
    width = min(max(map(len, names), default=0), 50)
    for name in names:
        was, is_now = then.get(name, ""), now.get(name, "")
        if was != is_now:
            yield f"{name:{width}}  {was or NOWHERE} -> {is_now or NOWHERE}"


def _placements(plan: Any, pods: Mapping[str, str]) -> dict[str, str]:
    return {
        pods.get(placed["uid"], placed["uid"]): placed["node"]
        for made in plan["allocations"]
        for placed in made["placements"]
    }


def _evictions(plan: Any, pods: Mapping[str, str]) -> dict[str, str]:
    return {
        pods.get(victim["uid"], victim["uid"]): f"goes for {made['job']}"
        for made in plan["evictions"]
        for victim in made["victims"]
    }


def _let_in(plan: Any, pods: Mapping[str, str]) -> dict[str, str]:
    return {made["job"]: "let in" for made in plan["enqueued"]}


def _through(plan: Any, pods: Mapping[str, str]) -> dict[str, str]:
    uids = (uid for made in plan["admitted"] for uid in made["pods"])
    return {pods.get(uid, uid): "through the gate of its queue" for uid in uids}


def _waiting(plan: Any, pods: Mapping[str, str]) -> dict[str, str]:
    return {
        group["job"]: group["reason"]["message"] if group["reason"] else group["phase"]
        for group in plan["groups"]
    }


def _warned(plan: Any, pods: Mapping[str, str]) -> dict[str, str]:
    return dict.fromkeys(plan["warnings"], "told")


_VIEWS = (
    ("pods placed", _placements),
    ("pods evicted", _evictions),
    ("groups let in", _let_in),
    ("pods let out of a gate", _through),
    ("what is said of groups", _waiting),
    ("warnings", _warned),
)
