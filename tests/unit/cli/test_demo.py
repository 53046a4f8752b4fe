"""`pumice demo --nodes --jobs --replicas` says what it cannot show before it starts anything."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from pumice.cli.main import app
from pumice.cli.scale import Scale


@pytest.mark.parametrize(
    ("scale", "refusal"),
    [
        (Scale(nodes=1_000, jobs=20, replicas=100), ""),
        (Scale(nodes=1, jobs=4, replicas=8), ""),
        (Scale(nodes=1, jobs=3, replicas=11), "33 pods of 1 CPU do not fit on 1 nodes of 32 CPU"),
    ],
)
def test_only_what_fits_is_shown(scale: Scale, refusal: str) -> None:
    assert scale.refusal() == refusal


@pytest.mark.parametrize("arguments", [["--nodes", "0"], ["--nodes", "1", "--jobs", "1000"]])
def test_what_cannot_be_shown_is_refused(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, ["demo", *arguments]).exit_code == 2
