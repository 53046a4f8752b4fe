"""The configuration file: what is no configuration changes nothing, and is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.configuration import ConfigurationFile
from pumice.core.conf import DEFAULT
from tests.fakeapi import ManualClock

GOOD = 'actions: "allocate"\ntiers: []\n'
BAD = {
    "no YAML": b"actions: [",
    "no text": b"actions: \xff\xfe",
    "another shape": b"- actions",
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_a_bad_file_leaves_the_last_good_one_in_force(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text(GOOD)
    file = ConfigurationFile(str(path), ManualClock())
    assert file.current.actions == ("allocate",)

    path.write_bytes(content)
    file.look()

    assert file.current.actions == ("allocate",)
    assert file.refused


def test_a_file_that_is_not_there_leaves_the_default(tmp_path: Path) -> None:
    file = ConfigurationFile(str(tmp_path / "none"), ManualClock())
    assert (file.current, bool(file.refused)) == (DEFAULT, True)
