"""How carrying out an effect can end, other than well: each is answered in a way of its own."""

from __future__ import annotations

from collections.abc import Callable

from pumice.core.api.batch import Job
from pumice.core.jobs import types as t

Record = Callable[[Job, t.RecordEvent], None]
"""Tell the Job's owner."""


class Refused(Exception):  # noqa: N818 - an outcome, not a fault of the program
    """The server, or the core, said no; `event` tells the Job's owner."""

    def __init__(self, message: str, event: t.RecordEvent | None = None) -> None:
        super().__init__(message)
        self.event = event


class Stale(Exception):  # noqa: N818
    """The object is not as it was when the effect was decided."""


class Away(Exception):  # noqa: N818
    """The server did not answer, or was not able to."""
