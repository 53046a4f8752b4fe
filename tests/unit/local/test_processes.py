"""Processes end when they are told to, and when those above them die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from pumice.local.errors import ComponentError, NotReadyError
from pumice.local.processes import Processes

ANSWER = "import sys; print(sys.argv[1], flush=True)"
STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('on', flush=True);"


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path)
    yield started
    started.close()


def is_alive(pid: int) -> bool:
    """A zombie that nobody has waited for counts as gone."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until_gone(pids: list[int], timeout_s: float = 10) -> None:
    deadline = monotonic() + timeout_s
    while any(map(is_alive, pids)):
        assert monotonic() < deadline, f"still alive: {[pid for pid in pids if is_alive(pid)]}"
        sleep(0.01)


def test_output_goes_to_the_log_of_the_name(processes: Processes) -> None:
    processes.start("greeter", ["sh", "-c", "echo hello; exec sleep 60"])
    processes.wait_ready("greeter", lambda: processes.tail("greeter") == "hello", 10)
    assert processes.log("greeter").read_text() == "hello\n"


def test_our_environment_overrides_defaults_and_a_command_overrides_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "ours")
    processes = Processes(tmp_path, defaults=dict.fromkeys(("DEFAULT", "OURS", "OWN"), "default"))
    try:
        script = 'echo "$DEFAULT $OURS $OWN"; exec sleep 60'
        processes.start("printer", ["sh", "-c", script], {"OWN": "own"})
        processes.wait_ready("printer", lambda: processes.tail("printer") != "", 10)
        assert processes.tail("printer") == "default ours own"
    finally:
        processes.close()


def test_a_killed_process_is_gone_at_once_and_starts_again_as_before(processes: Processes) -> None:
    processes.start("sleeper", ["sleep", "60"])
    first = processes.pid("sleeper")
    processes.kill("sleeper")

    assert not is_alive(first)
    assert processes.exit_code("sleeper") == -signal.SIGKILL

    processes.restart("sleeper")
    assert processes.exit_code("sleeper") is None
    assert processes.pid("sleeper") != first
    assert Path(f"/proc/{processes.pid('sleeper')}/cmdline").read_bytes() == b"sleep\x0060\x00"


def test_a_process_that_ignores_sigterm_is_stopped_by_force(processes: Processes) -> None:
    processes.start("stubborn", [sys.executable, "-c", STUBBORN + "time.sleep(60)"])
    processes.wait_ready("stubborn", lambda: processes.tail("stubborn") == "on", 10)
    processes.stop("stubborn", timeout_s=0.1)
    assert processes.exit_code("stubborn") == -signal.SIGKILL


def test_a_process_that_ends_while_waited_for_is_an_error_with_its_log(
    processes: Processes,
) -> None:
    processes.start("failing", ["sh", "-c", "echo no such file; exit 3"])
    with pytest.raises(ComponentError, match=r"failing ended with code 3.*\n.*no such file"):
        processes.wait_ready("failing", lambda: False, 10)


def test_a_process_that_does_not_get_ready_is_an_error(processes: Processes) -> None:
    processes.start("slow", ["sleep", "60"])
    with pytest.raises(NotReadyError, match=r"slow was not ready after 0\.1 s"):
        processes.wait_ready("slow", lambda: False, 0.1)


def test_an_unknown_name_is_an_error(processes: Processes) -> None:
    with pytest.raises(ProcessLookupError, match="no such process: nobody"):
        processes.exit_code("nobody")


def test_the_same_name_does_not_run_twice(processes: Processes) -> None:
    processes.start("sleeper", ["sleep", "60"])
    with pytest.raises(ProcessLookupError, match="sleeper runs already"):
        processes.start("sleeper", ["sleep", "60"])


def test_closing_ends_everything_and_removes_the_scratch_directory(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "data").write_text("much")
    started = Processes(tmp_path, scratch=scratch)
    for name in ("one", "two"):
        started.start(name, ["sleep", "60"])
    pids = [started.supervisor_pid, started.pid("one"), started.pid("two")]
    started.close()

    assert [pid for pid in pids if is_alive(pid)] == []
    assert not scratch.exists()


PARENT = """
import sys, time
from pathlib import Path
from pumice.local.processes import Processes
started = Processes(Path(sys.argv[1]))
started.start("one", ["sleep", "60"])
started.start("two", ["sh", "-c", "sleep 60 & wait"])
print(started.supervisor_pid, started.pid("one"), started.pid("two"), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("victim", ["the parent", "the supervisor"])
def test_everything_ends_when_one_above_is_killed(tmp_path: Path, victim: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        supervisor, *pids = map(int, parent.stdout.readline().split())
        assert all(map(is_alive, pids))
        os.kill(parent.pid if victim == "the parent" else supervisor, signal.SIGKILL)
        wait_until_gone([supervisor, *pids])
        parent.kill()
