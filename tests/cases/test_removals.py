"""Who removed which pod, by the audit log."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from pumice.local.users import USERS
from tests.cases.builders import a_pod, seen
from tests.cases.record import Record
from tests.cases.removals import Removals

EXTENDER = USERS["pumice-extender"].name
CONTROLLERS = USERS["pumice-controllers"].name


def line(user: str, verb: str, *, uid: str = "", code: int = 200, **reference: str) -> str:
    """Return a line of the log about pod `a/p`, written now."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    event: dict[str, Any] = {
        "stage": "ResponseComplete",
        "verb": verb,
        "user": {"username": user},
        "requestReceivedTimestamp": now,
        "stageTimestamp": now,
        "objectRef": {"resource": "pods", "namespace": "a", "name": "p", **reference},
        "responseStatus": {"code": code},
        "requestObject": {"preconditions": {"uid": uid}} if uid else {},
    }
    return json.dumps(event) + "\n"


def test_the_first_who_removes_a_pod_is_the_one_who_did_it(tmp_path: Path) -> None:
    log, record = tmp_path / "audit.jsonl", Record(pods=[seen(0, a_pod("p", uid="by-name"))])
    removals = Removals(log, record)
    log.write_text(
        line(EXTENDER, "create", subresource="eviction", code=429, uid="late")
        + line(CONTROLLERS, "delete", uid="late")
        + line(EXTENDER, "delete", uid="late")
        + line(EXTENDER, "patch", uid="patched")
        + line(EXTENDER, "delete", resource="nodes", uid="node")
        + line(EXTENDER, "create", subresource="eviction")
    )
    removals.read()
    with log.open("a") as more:
        more.write(line(EXTENDER, "delete", uid="new"))
        more.write(line(EXTENDER, "delete", uid="half-written")[:20])
    removals.read()

    assert {r.uid: r.platform for r in record.removals.values()} == {
        "late": False,
        "by-name": True,
        "new": True,
    }
    assert all(abs(r.at - monotonic()) < 5 for r in record.removals.values())
