"""How carrying out an effect can end, other than well: each is answered in a way of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pumice.core.api.batch import Job
from pumice.core.jobs import types as t

Record = Callable[[Job, t.RecordEvent], None]
"""Tell the Job's owner."""


class Refused(Exception):  # noqa: N818 - an outcome, not a fault of the program
    """The server, or the core, said no; `event` tells the Job's owner."""

    def __init__(
        self, message: str, event: t.RecordEvent | None = None, *, counts: bool = True
    ) -> None:
        super().__init__(message)
        self.event = event
        #: whether the Job is ended after too many of these
        self.counts = counts


class Stale(Exception):  # noqa: N818
    """The object is not as it was when the effect was decided."""


class Away(Exception):  # noqa: N818
    """The server did not answer, or was not able to; `event` says why where it told."""

    def __init__(self, message: str, event: t.RecordEvent | None = None) -> None:
        super().__init__(message)
        self.event = event


@dataclass(slots=True)
class Made:
    """What has become of the pods that were to be made."""

    #: how many names somebody else holds
    blocked: int = 0
    #: the pods that were refused, or not tried after others of their task were
    refused: frozenset[str] = frozenset()
    #: what was said of the first of them
    refusal: Refused | None = None
