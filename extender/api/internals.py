"""The ledger, the last sessions, and the tables against a count from scratch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict

from extender.api import examples
from extender.api.answers import JSON, InNamespace, answer, documented
from extender.api.desk import Asks, Desk
from extender.api.readers import Reads
from extender.engine import Past
from pumice.core.ledger import Entry
from pumice.kube.resources import NODES, POD_GROUPS, PODS

router = APIRouter(tags=["internals"])

PIECE = 500
"""Entries that are put into JSON at a time; in between the event loop does other things."""
DECIDED = ("allocations", "enqueued", "admitted")
TENANTS = ("session", "now", *DECIDED)
"""What of a plan is by namespace; the rest is about the cluster as a whole."""


class LedgerEntry(BaseModel):
    """One pod: how far it has got, where, and since when (seconds since 1970)."""

    uid: str
    namespace: str
    name: str
    job: str | None
    node: str
    state: str
    since: float


class Ledger(BaseModel):
    """
    The ledger, and the calls of `bind`.

    `unanswered` are writes on their way to the API server, `parked` calls that wait for their
    gang, `calls` and `errors` all so far and those answered with an error.
    """

    entries: list[LedgerEntry]
    unanswered: int
    parked: int
    calls: int
    errors: int


class PastPlan(BaseModel):
    """What a session decided; for readers of one namespace, about that namespace."""

    model_config = ConfigDict(extra="allow")
    session: str
    now: float
    allocations: list[dict[str, Any]] = []
    enqueued: list[dict[str, Any]] = []
    admitted: list[dict[str, Any]] = []


class PastSession(BaseModel):
    """A session that decided something: how much of it held, why the rest did not, its length."""

    plan: PastPlan
    placed: int
    dropped: int
    why: dict[str, str]
    seconds: float


class Check(BaseModel):
    """Where tables and a count from scratch differ, and objects that cannot be used, and why."""

    faults: list[str]
    objects: dict[str, str]


@router.get(
    "/debug/ledger",
    response_model=Ledger,
    responses=documented(examples.LEDGER),
    summary="Every pod and how far it has got",
)
async def ledger(reader: Reads, desk: Asks, namespace: InNamespace = "") -> Response:
    """
    Return the ledger, in pieces: a large one may be a moment younger at its end.

    Needed: list of pods, in the namespace or everywhere.
    """
    await reader.require("list", PODS, namespace)
    entries: Iterable[Entry] = list(desk.model.ledger)
    if namespace:
        entries = (entry for entry in entries if entry.namespace == namespace)
    return StreamingResponse(_ledger(desk, entries), media_type=JSON)


async def _ledger(desk: Desk, entries: Iterable[Entry]) -> AsyncIterator[bytes]:
    yield b'{"entries":['
    comma = b""
    for piece in _pieces(entries):
        rows = msgspec.json.encode([_row(desk, entry) for entry in piece])
        yield comma + rows[1:-1]
        comma = b","
        await asyncio.sleep(0)
    barrier = desk.barrier
    counts = {
        # What was written down here and is still on its way to the API server.
        "unanswered": len(desk.engine.statuses.outbox) + len(barrier.commits),
        "parked": len(barrier.parked),
        "calls": barrier.calls,
        "errors": barrier.errors,
    }
    yield b"]," + msgspec.json.encode(counts)[1:]


def _pieces(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    piece: list[Entry] = []
    for entry in entries:
        piece.append(entry)
        if len(piece) == PIECE:
            yield piece
            piece = []
    if piece:
        yield piece


def _row(desk: Desk, entry: Entry) -> dict[str, object]:
    return {
        "uid": entry.uid,
        "namespace": entry.namespace,
        "name": entry.name,
        "job": entry.job,
        "node": entry.node,
        "state": entry.state.value,
        "since": desk.moment(entry.since),
    }


@router.get(
    "/debug/sessions",
    response_model=list[PastSession],
    responses=documented(examples.SESSIONS, 429),
    summary="The last sessions that decided something",
)
async def sessions(reader: Reads, desk: Asks, namespace: InNamespace = "") -> Response:
    """Return them, newest last. Needed: list of PodGroups, in the namespace or everywhere."""
    await reader.require("list", POD_GROUPS, namespace)
    rows = await desk.think(_sessions, list(desk.engine.past), namespace)
    return answer(msgspec.Raw(rows))


def _sessions(past: Sequence[Past], namespace: str) -> bytes:
    rows = [_session(one, namespace) for one in past]
    return msgspec.json.encode([row for row in rows if row is not None])


def _session(past: Past, namespace: str) -> dict[str, Any] | None:
    plan: dict[str, Any] = msgspec.to_builtins(past.plan, enc_hook=str)
    why = {str(uid): text for uid, text in past.applied.why.items()}
    row = {"placed": past.applied.placed, "dropped": past.applied.dropped, "seconds": past.seconds}
    if namespace:
        start = f"{namespace}/"
        plan = {key: plan[key] for key in TENANTS}
        for key in DECIDED:
            plan[key] = [made for made in plan[key] if made["job"].startswith(start)]
        if not any(plan[key] for key in DECIDED):
            return None
        uids = {p["uid"] for made in plan["allocations"] for p in made["placements"]}
        why = {uid: text for uid, text in why.items() if uid in uids}
        row |= {"placed": len(uids) - len(why), "dropped": len(why)}
    return {"plan": plan, "why": why, **row}


@router.get(
    "/debug/check",
    response_model=Check,
    responses=documented(examples.CHECK, 429),
    summary="The tables against a count from scratch",
)
async def check(reader: Reads, desk: Asks) -> Response:
    """Return what they disagree on; nothing when all is well. Needed: list of pods and nodes."""
    await reader.require("list", PODS)
    await reader.require("list", NODES)
    cluster = desk.model.cluster
    objects = dict(cluster.faults)
    return answer({"faults": await desk.think(cluster.checker()), "objects": objects})
