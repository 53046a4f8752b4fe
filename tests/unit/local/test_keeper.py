"""The state directory of `pumice cluster`: leftovers mean nothing."""

from __future__ import annotations

import fcntl
import json
from dataclasses import asdict
from pathlib import Path

import pytest

from pumice.local.keeper import State, current, state_directory, stop

STATE = State(
    pid=1,
    kubeconfig="/k",
    server="https://127.0.0.1:1",
    nodes=2,
    started=3.0,
    components={"etcd": 4},
    logs="/l",
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "lock").write_text("1")
    (tmp_path / "state.json").write_text(json.dumps(asdict(STATE)))
    return tmp_path


def test_a_state_without_a_keeper_is_a_leftover(directory: Path) -> None:
    assert current(directory) is None
    assert stop(directory) is False


def test_a_state_with_a_keeper_is_a_cluster(directory: Path) -> None:
    with (directory / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert current(directory) == STATE


def test_a_keeper_without_a_state_is_still_starting(directory: Path) -> None:
    (directory / "state.json").unlink()
    with (directory / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert current(directory) is None


def test_where_nothing_ever_ran_there_is_no_cluster(tmp_path: Path) -> None:
    assert current(tmp_path / "nothing") is None


def test_the_user_may_choose_where_state_goes() -> None:
    assert state_directory({"XDG_STATE_HOME": "/s"}) == Path("/s/pumice/cluster")
    assert state_directory({}) == Path.home() / ".local/state/pumice/cluster"
