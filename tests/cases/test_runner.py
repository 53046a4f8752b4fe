"""The runner on real control planes: cases that pass, and one that fails for a stated reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.cases.command import main
from tests.cases.runner import Verdict, run

pytestmark = pytest.mark.cluster

EXAMPLES = Path(__file__).parent / "examples"
GANG = EXAMPLES / "gang-waits-for-a-node.yaml"
TOUR = EXAMPLES / "a-tour-of-the-steps.yaml"


def changed(directory: Path, expect: list[dict[str, object]]) -> Path:
    """Return a copy of the gang's case that expects something else."""
    case = yaml.safe_load(GANG.read_text())
    file = directory / "changed.yaml"
    file.write_text(yaml.safe_dump({**case, "id": "changed", "expect": expect}))
    return file


def test_a_gang_that_waits_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(GANG)]) == 0
    assert capsys.readouterr().out == "PASS gang-waits-for-a-node\n1 passed, 0 failed, 0 skipped\n"


def test_every_kind_of_step_does_what_it_says() -> None:
    assert run(TOUR) == Verdict("PASS", "a-tour-of-the-steps")


def test_a_case_that_expects_too_much_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    select = {"job": "team-a/pair"}
    wrong = changed(
        tmp_path,
        [
            {"check": "boundCount", "select": select, "equals": 1, "at": "waiting"},
            {"check": "boundCount", "select": select, "equals": 2},
        ],
    )
    assert main([str(wrong), "--logs", str(tmp_path / "logs")]) == 1
    assert capsys.readouterr().out == (
        "FAIL changed: boundCount of job team-a/pair at waiting: 0, expected 1\n"
        "0 passed, 1 failed, 0 skipped\n"
    )
    assert (tmp_path / "logs" / "changed" / "evidence" / "pods.json").exists()
