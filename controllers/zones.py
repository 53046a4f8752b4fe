"""Clocks of time zones, by the time zone database of this machine."""

from __future__ import annotations

import time
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pumice.core.crons.timetable import Offset


def offsets(name: str) -> Offset | None:
    """Return the clock of a zone, the machine's own for ""; None where there is no such zone."""
    if not name:
        return lambda moment: time.localtime(moment).tm_gmtoff
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None

    def offset(moment: int) -> int:
        ahead = datetime.fromtimestamp(moment, zone).utcoffset()
        return int(ahead.total_seconds()) if ahead else 0

    return offset
