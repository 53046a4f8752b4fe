"""Reading the API server's audit log: when pods were created and bound, and who wrote what."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec

Line = dict[str, Any]
Write = tuple[str, str, str]
"""Verb, resource, who."""
LOOK_S = 0.1
WRITES = {"create", "update", "patch", "delete"}
STEPS = {
    ("create", "pods"): "create",
    ("patch", "pods"): "patch",
    ("create", "pods/binding"): "bind",
}


class Span(NamedTuple):
    """When a request was received and when it was answered, in seconds of the epoch."""

    began: float
    done: float


@dataclass(slots=True)
class Account:
    """What one run wrote, and when it began and ended."""

    created: list[float] = field(default_factory=list)
    bound: list[float] = field(default_factory=list)
    #: accepted writes between the first creation and the last binding
    writes: Counter[Write] = field(default_factory=Counter)
    #: when each first write of a kind to a pod was received and answered, by the pod's name
    steps: dict[str, dict[str, Span]] = field(default_factory=dict)

    def splits(self) -> dict[str, float]:
        """Return how many seconds the pod in the middle spent between two steps of its way."""
        begin = min(self.created)
        ways = [
            (way["create"], way["patch"], way["bind"])
            for way in self.steps.values()
            if way.keys() >= {"create", "patch", "bind"}
        ]
        parts = {
            "create: Job submitted → pod created": [c.done - begin for c, _, _ in ways],
            "plan: pod created → release sent": [r.began - c.done for c, r, _ in ways],
            "release: sent → answered": [r.done - r.began for _, r, _ in ways],
            "schedule: released → binding posted": [b.began - r.done for _, r, b in ways],
            "bind: posted → answered": [b.done - b.began for _, _, b in ways],
        }
        return {name: median(seconds) for name, seconds in parts.items() if seconds}

    @property
    def seconds(self) -> float:
        """Return the time from the first creation to the last binding."""
        return max(self.bound) - min(self.created)

    @property
    def binding_seconds(self) -> float:
        """Return the time from the first binding to the last."""
        return max(self.bound) - min(self.bound)


class Tail:
    """Counts accepted writes as they come, so cheaply that the count costs those none."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._at = log.stat().st_size
        self._rest = b""
        self.counts: Counter[tuple[str, str, str]] = Counter()

    def wait(self, verb: str, resource: str, namespace: str, n: int, timeout_s: float) -> None:
        """Wait until a write was made `n` times in a namespace since the tail began."""
        deadline = time.monotonic() + timeout_s
        while self.counts[verb, resource, namespace] < n:
            if time.monotonic() > deadline:
                got = self.counts[verb, resource, namespace]
                raise TimeoutError(f"{got} of {n}: {verb} {resource} in {namespace}")
            time.sleep(LOOK_S)
            self._read()

    def _read(self) -> None:
        with self._log.open("rb") as opened:
            opened.seek(self._at)
            text = self._rest + opened.read()
            self._at = opened.tell()
        *whole, self._rest = text.split(b"\n")
        for line in map(_decode, whole):
            if line.object_ref is not None and line.response_status.code < 300:
                ref = line.object_ref
                resource = f"{ref.resource}/{ref.subresource}" if ref.subresource else ref.resource
                self.counts[line.verb, resource, ref.namespace] += 1


class _Ref(msgspec.Struct, rename="camel"):
    resource: str = ""
    namespace: str = ""
    subresource: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _Event(msgspec.Struct, rename="camel"):
    verb: str = ""
    object_ref: _Ref | None = None
    response_status: _Status = msgspec.field(default_factory=_Status)


_decode = msgspec.json.Decoder(_Event).decode


def account(log: Path, namespace: str, submitted: str) -> Account:
    """Read what happened in a namespace; `submitted` is the resource whose creation starts it."""
    lines = [line for line in _lines(log) if _namespace(line) == namespace]
    result = Account()
    for line in lines:
        ref = line["objectRef"]
        step = STEPS.get((line["verb"], ref["resource"] + _sub(ref)))
        if step:
            span = Span(_time(line, "requestReceivedTimestamp"), _time(line))
            result.steps.setdefault(ref["name"], {}).setdefault(step, span)
        if line["verb"] != "create":
            continue
        if (ref["resource"], _sub(ref)) == ("pods", "/binding"):
            result.bound.append(_time(line))
        if (ref["resource"], _sub(ref)) == (submitted, ""):
            result.created.append(_time(line, "requestReceivedTimestamp"))
    last = max(result.bound)
    result.writes = Counter(_write(line) for line in lines if _time(line) <= last)
    return result


def writes(log: Path, namespace: str, since: float, until: float) -> Counter[Write]:
    """Count the accepted writes in a namespace between two moments, in seconds of the epoch."""
    lines = (line for line in _lines(log) if _namespace(line) == namespace)
    return Counter(_write(line) for line in lines if since <= _time(line) <= until)


def _lines(log: Path) -> Iterator[Line]:
    with log.open() as opened:
        for text in opened:
            line: Line = json.loads(text)
            accepted = 200 <= line.get("responseStatus", {}).get("code", 0) < 300
            if accepted and line["verb"] in WRITES and "objectRef" in line:
                yield line


def _write(line: Line) -> Write:
    ref = line["objectRef"]
    return line["verb"], ref["resource"] + _sub(ref), line["user"]["username"].rsplit(":", 1)[-1]


def _namespace(line: Line) -> str:
    return str(line["objectRef"].get("namespace", ""))


def _sub(ref: Line) -> str:
    return f"/{ref['subresource']}" if "subresource" in ref else ""


def _time(line: Line, key: str = "stageTimestamp") -> float:
    return datetime.fromisoformat(line[key]).timestamp()
