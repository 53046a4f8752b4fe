"""The configuration file: what is no configuration changes nothing, and is reported."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from extender.configuration import ConfigurationFile
from pumice.core.catalog import remove_plugin
from pumice.core.conf import DEFAULT
from pumice.installed import add_installed_plugins
from tests.builders import a_cluster, a_conf, a_plugin, a_session
from tests.fakeapi import ManualClock
from tests.mounts import mount

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


async def test_a_mounted_config_map_that_changes_is_in_force_within_two_seconds(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    mount(tmp_path, {"scheduler.conf": GOOD})
    file = ConfigurationFile(str(tmp_path / "scheduler.conf"), clock)
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(file.watch(), name="configuration")
        await clock.advance(1)
        mount(tmp_path, {"scheduler.conf": GOOD.replace("allocate", "enqueue, allocate")})
        await clock.advance(2)
        watching.cancel()

    assert file.current.actions == ("enqueue", "allocate")


def install(folder: Path, entry_points: str, text: str, module: str = "acme_plugins") -> None:
    """Lay a package down in `folder` as an installer does."""
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[pumice.plugins]\n{entry_points}")
    (folder / f"{module}.py").write_text(text)


MODULE = """
class Closed:
    name = "acme"

    def __init__(self, args):
        self.hint = args.text("hint")

    def on_session_open(self, ssn):
        ssn.points.overused[self.name] = lambda queue: queue.name == self.hint

    def on_session_close(self, ssn):
        pass
"""


def test_installed_packages_bring_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(tmp_path, "acme = acme_plugins:Closed\nbroken = acme_plugins:Missing\n", MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    add_installed_plugins()
    try:
        conf = a_conf("allocate", [a_plugin("acme", hint="default"), "broken"])
        ssn = a_session(conf, a_cluster())
        assert ssn.is_overused(ssn.queues["default"])
        assert ssn.findings.warnings == ["plugin broken is not available, it is left out"]
        assert "plugin broken (acme_plugins:Missing) does not load" in caplog.text
    finally:
        remove_plugin("acme")


BROKEN = """
class Broken:
    name = "acme"

    def __init__(self, args):
        raise ValueError("argument hint is missing")
"""


def test_a_plugin_that_cannot_be_made_leaves_the_last_good_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "acme = broken_plugins:Broken\n", BROKEN, module="broken_plugins")
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "scheduler.conf"
    path.write_text(GOOD)
    file = ConfigurationFile(str(path), ManualClock())
    add_installed_plugins()
    try:
        path.write_text("actions: enqueue\ntiers: [{plugins: [{name: acme}]}]\n")
        file.look()
    finally:
        remove_plugin("acme")

    assert file.current.actions == ("allocate",)
    assert "plugin acme: ValueError: argument hint is missing (broken_plugins.py:" in file.refused
