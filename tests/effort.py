"""
How hard tests that try many inputs try: quickly on every change, thoroughly in a run of all.

`make unit` and `make quick` are quick. A run of all, by the variable PUMICE_LENGTH, has more time
for the tests without a cluster, too: some in the short form (`make test`), as much as each of them
deserves at full length (`make e2e`).
"""

from __future__ import annotations

import os

from tests.acceptance.length import FULL, SHORT, VARIABLE

LENGTH = os.environ.get(VARIABLE)
#: by how much fewer examples there are than at full length, and how many steps are left out
FEWER = {FULL.name: 1, SHORT.name: 6}.get(LENGTH or "", 15)
LEAST = 5


def examples(thorough: int, enduring: int | None = None) -> int:
    """
    Return how many examples a property is tried on.

    `thorough` is the number at full length, unless it is `enduring` there.
    """
    if FULL.name == LENGTH and enduring is not None:
        return enduring
    return max(thorough // FEWER, min(thorough, LEAST))


def stride(quick: int) -> int:
    """Return every how many steps one is tried: each at full length, else each `quick`-th."""
    return {FULL.name: 1, SHORT.name: max(quick // 4, 1)}.get(LENGTH or "", quick)
