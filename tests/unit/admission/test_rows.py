"""What is admitted and what is refused: our functions with an API server's schema around them."""

from __future__ import annotations

import pytest

from tests.unit.admission.apiserver import Refused, decide
from tests.unit.admission.rows import ROWS
from tests.unit.admission.rows.row import Row, at


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_row(row: Row) -> None:
    if row.refused:
        with pytest.raises(Refused) as refused:
            decide(row)
        said = str(refused.value)
        assert [word for word in row.refused if word not in said] == [], said
    else:
        stored = decide(row)
        assert {path: at(stored, path) for path in row.stored} == dict(row.stored)
