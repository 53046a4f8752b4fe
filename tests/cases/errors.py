"""
Why a case does not come to its checks.

    CaseError
    ├── MalformedError   the file is not a case
    ├── LackingError     the product does not have what the case needs
    └── StepError        a step could not be carried out
"""

from __future__ import annotations


class CaseError(Exception):
    """The root of all errors of a case; the text is the reason that is printed."""


class MalformedError(CaseError):
    """The file is not a case; the text says where and why."""


class LackingError(CaseError):
    """The product does not have what the case needs; the text says what."""


class StepError(CaseError):
    """A step could not be carried out; the text says why."""
