"""
Who removed which pod, by the API server's audit log.

The log is written before a request is answered, so it never lags behind what a client knows.
"""

from __future__ import annotations

from pathlib import Path
from time import monotonic, time

from pumice.local.users import USERS
from tests.auditor.audit import parse
from tests.auditor.facts import Request
from tests.auditor.rules.evictions import removes_pod
from tests.cases.record import Record, Removal
from tests.cases.selection import key_of

PLATFORM = frozenset({USERS["pumice-extender"].name, USERS["pumice-scheduler"].name})
"""Those who place pods and take them away again; the Job controller is none of them."""


class Removals:
    """Reads the log from where it was left."""

    def __init__(self, log: Path, record: Record) -> None:
        self._log = log
        self._record = record
        self._offset = 0

    def read(self) -> None:
        """Take in what was written since the last time."""
        with self._log.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                request = parse(line)
                if request and removes_pod(request) and request.succeeded and not request.dry_run:
                    self._take(request)

    def _take(self, request: Request) -> None:
        at = request.at + monotonic() - time()
        uid = request.uid or self._uid_of(request.target, at)
        removal = Removal(at, uid, request.user in PLATFORM)
        self._record.removals.setdefault(uid, removal)

    def _uid_of(self, target: str, at: float) -> str:
        """Return the uid of the pod that bore the name at a time."""
        holders = [
            seen.object["metadata"]["uid"]
            for seen in list(self._record.pods)
            if seen.at <= at and key_of(seen.object) == target
        ]
        return holders[-1] if holders else ""
