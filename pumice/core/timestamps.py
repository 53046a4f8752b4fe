"""Moments as they stand in API objects: RFC 3339 to the second."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from pumice.core.api.meta import Time


@lru_cache(maxsize=512)
def moment(time: Time | None) -> float:
    """Return seconds since 1970; 0 where the text is no time."""
    try:
        return datetime.fromisoformat(time or "").timestamp()
    except ValueError:
        return 0.0


def stamp(now: float) -> Time:
    """Return a moment, in seconds since 1970, as Kubernetes writes it."""
    return datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
