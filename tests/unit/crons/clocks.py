"""Clocks of time zones, and moments as they show them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from pumice.core.crons.timetable import Offset


def clock(zone: str) -> Offset | None:
    """Return the clock of a zone; UTC for ""."""
    if zone == "Nowhere":
        return None
    found = ZoneInfo(zone or "UTC")

    def offset(moment: int) -> int:
        ahead = datetime.fromtimestamp(moment, found).utcoffset()
        assert ahead is not None
        return int(ahead.total_seconds())

    return offset


def at(text: str) -> int:
    """Return a moment from RFC 3339; without an offset it is UTC."""
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def shown(moment: int | None, zone: str) -> str:
    """Return what the clock of a zone shows."""
    if moment is None:
        return "never"
    return datetime.fromtimestamp(moment, ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M %Z")
