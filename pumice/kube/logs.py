"""
Logs as lines of JSON, with the object that is worked on in each.

Code logs through the standard library. `working_on` names the job, pod or queue at hand, and
every line logged inside carries that name, whoever logs it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

import msgspec

from pumice.kube.clock import rfc3339_micro

_context: ContextVar[dict[str, str] | None] = ContextVar("log context", default=None)

#: attributes that every record has; the others were given as `extra`
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


@contextmanager
def working_on(**names: str) -> Iterator[None]:
    """Put names, such as `job="ns/name"`, into each line logged inside."""
    token = _context.set({**(_context.get() or {}), **names})
    try:
        yield
    finally:
        _context.reset(token)


class JsonFormatter(logging.Formatter):
    """One record, one line: time, level, logger, message, names at hand, extras, traceback."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": rfc3339_micro(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(_context.get() or {})
        line.update((k, v) for k, v in vars(record).items() if k not in _STANDARD)
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """Send every record at or above the level to the stream, by default stderr."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
