"""On how many nodes to find room before a search may stop."""

from __future__ import annotations

import pytest

from pumice.core.kernels import nodes_to_find

ROWS = {
    "a few nodes are all looked at": (10, 0, 10),
    "whatever the percentage": (10, 40, 10),
    "so are as many as are wanted at least": (100, 1, 100),
    "a thousand, adapted": (1000, 0, 420),
    "a thousand, by percentage": (1000, 40, 400),
    "thousands, adapted: the least percentage": (6000, 0, 300),
    "thousands, by percentage": (6000, 40, 2400),
    "never fewer than the least": (150, 0, 100),
    "all of them": (6000, 100, 6000),
    "a negative percentage adapts": (1000, -1, 420),
}


@pytest.mark.parametrize(("n", "percentage", "want"), ROWS.values(), ids=ROWS.keys())
def test_how_many_nodes_to_find(n: int, percentage: int, want: int) -> None:
    assert nodes_to_find(n, percentage) == want
