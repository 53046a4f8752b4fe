"""
The forms of names in Kubernetes; each function returns what is wrong with one, if anything is.

The sentences are those of Kubernetes' own validation, without the examples that it adds.
"""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VARIABLE: Final = re.compile(r"[ -<>-~]+")

_ALPHANUMERIC: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
    " alphanumeric character"
)
_LOWER: Final = (
    "must consist of lower case alphanumeric characters{}, and must start and end with an"
    " alphanumeric character"
)
_NAME_LIMIT: Final = 63
_SUBDOMAIN_LIMIT: Final = 253


def dns_label(value: str) -> list[str]:
    """Check a name that a host could have: containers, volumes."""
    form = "a lowercase RFC 1123 label " + _LOWER.format(" or '-'")
    return _checked(value, _LABEL, form, _NAME_LIMIT)


def dns_subdomain(value: str) -> list[str]:
    """Check the name of an object."""
    form = "a lowercase RFC 1123 subdomain " + _LOWER.format(", '-' or '.'")
    return _checked(value, _SUBDOMAIN, form, _SUBDOMAIN_LIMIT)


def qualified_name(value: str) -> list[str]:
    """Check the key of a label or annotation: a name, with a domain before it or without."""
    prefix, slash, name = value.rpartition("/")
    found = []
    if slash:
        found = [f"prefix part {why}" for why in dns_subdomain(prefix)]
    return found + [f"name part {why}" for why in _named(name)]


def label_value(value: str) -> list[str]:
    """Check the value of a label; it may be empty."""
    return [f"a valid label {why}" for why in _named(value)] if value else []


def variable_name(value: str) -> list[str]:
    """Check the name of an environment variable: printable, and no `=` in it."""
    if _VARIABLE.fullmatch(value):
        return []
    return ["a valid environment variable name must consist only of printable ASCII but '='"]


def _named(value: str) -> list[str]:
    if not value:
        return ["must be non-empty"]
    return _checked(value, _QUALIFIED, _ALPHANUMERIC, _NAME_LIMIT)


def _checked(value: str, pattern: re.Pattern[str], form: str, limit: int) -> list[str]:
    found = []
    if len(value) > limit:
        found.append(f"must be no more than {limit} characters")
    if not pattern.fullmatch(value):
        found.append(form)
    return found
