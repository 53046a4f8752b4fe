"""Durations as they stand in API objects: Go's syntax, such as `1h2m3.5s` or `300ms`."""

from __future__ import annotations

import re

_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "\N{MICRO SIGN}s": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|\N{MICRO SIGN}s|ms|h|m|s)")


def seconds(duration: str) -> float | None:
    """Return the length of a Go duration such as `1h2m3.5s`, None where it is not one."""
    if duration == "0":
        return 0.0
    sign = -1.0 if duration.startswith("-") else 1.0
    text = duration[1:] if duration[:1] in ("+", "-") else duration
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sign * sum(float(number) * _UNITS[unit] for number, unit in parts)


def duration(length_s: float) -> str:
    """Return a length in Go's syntax, as `5m0s` or `1h0m2.5s`."""
    if length_s <= 0:
        return "0s"
    if length_s < 1:
        return f"{_number(length_s * 1000)}ms"
    whole, rest = divmod(length_s, 60)
    hours, minutes = divmod(int(whole), 60)
    text = f"{_number(rest)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{hours}h{text}" if hours else text


def _number(value: float) -> str:
    return f"{value:.9f}".rstrip("0").rstrip(".")
