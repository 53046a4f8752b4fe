"""The way in: any Python, from anywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = str(Path(sys.base_prefix) / "bin" / "python3")
BROKEN = "- this is no case\n"

pytestmark = pytest.mark.skipif(
    not (ROOT / ".venv" / ".installed").exists(), reason="would make the virtual environment"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "broken.yaml"
    path.write_text(BROKEN)
    return path


@pytest.mark.parametrize(
    "way", [["-m", "tests.cases"], ["tests/cases"], [str(ROOT / "tests/cases/__main__.py")]]
)
def test_a_bare_python_finds_its_way(way: list[str], file: Path) -> None:
    # -S: no packages but the standard library's; -E: nothing from the environment.
    bare = [PYTHON, "-S", "-E", *way, str(file)]
    answer = subprocess.run(bare, cwd=ROOT, capture_output=True, text=True)
    assert answer.stdout.splitlines()[0].startswith("FAIL broken: Expected `object`")
    assert answer.stdout.splitlines()[1] == "0 passed, 1 failed, 0 skipped"
    assert answer.returncode == 1


def test_a_file_is_looked_for_where_the_user_is(file: Path) -> None:
    command = [sys.executable, str(ROOT / "tests" / "cases"), file.name]
    answer = subprocess.run(command, cwd=file.parent, capture_output=True, text=True)
    assert "FAIL broken: Expected `object`" in answer.stdout, answer.stderr


def test_no_file_is_a_wrong_call() -> None:
    command = [sys.executable, "-m", "tests.cases"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 2
