"""Masks over nodes, joined."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import numpy as np

from pumice.core.resources import Bools


def any_of(masks: Iterable[Bools]) -> Bools:
    """Return where at least one of the masks holds; there is at least one."""
    return reduce(np.logical_or, masks)


def all_of(masks: Iterable[Bools]) -> Bools:
    """Return where every mask holds; there is at least one."""
    return reduce(np.logical_and, masks)
