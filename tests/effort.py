"""
How hard tests that try many inputs try: quickly on every change, thoroughly in a run of all.

`make unit` and `make quick` are quick. Where an acceptance run is asked for (the variable
PUMICE_LENGTH is set, as by `make test` and `make e2e`), the tests without a cluster are thorough,
too; at full length some of them go on for much longer.
"""

from __future__ import annotations

import os

from tests.acceptance.length import FULL, VARIABLE

THOROUGH = VARIABLE in os.environ
ENDURING = os.environ.get(VARIABLE) == FULL.name
QUICKER = 15
LEAST = 5


def examples(thorough: int, enduring: int | None = None) -> int:
    """
    Return how many examples a property is tried on.

    `thorough` is the number of a whole run, `enduring` that of one at full length.
    """
    if ENDURING and enduring is not None:
        return enduring
    return thorough if THOROUGH else max(thorough // QUICKER, LEAST)


def stride(quick: int) -> int:
    """Return every how many steps one is tried: each in a whole run, else each `quick`-th."""
    return 1 if THOROUGH else quick
