"""
Run case files: `python -m tests.cases FILE...`.

Any Python 3 may start this, from anywhere and without a package installed: until the project's
virtual environment runs it, it uses nothing but the standard library. An environment that is
missing is made first.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv"
MODULE = "tests.cases"


def is_inside() -> bool:
    """Tell whether this is the project's environment, with the project's modules to import."""
    return __package__ == MODULE and Path(sys.prefix).resolve() == ENVIRONMENT.resolve()


def enter(arguments: list[str]) -> None:
    """Start again inside the project's environment, with the same files."""
    if not (ENVIRONMENT / ".installed").exists():
        made = subprocess.call(["make", "-C", str(ROOT), "controlplane"], stdout=sys.stderr)
        if made != 0:
            sys.exit(f"{ENVIRONMENT} is missing, and `make controlplane` could not make it")
    files = [a if a.startswith("-") else os.path.abspath(a) for a in arguments]
    python = str(ENVIRONMENT / "bin" / "python")
    os.chdir(ROOT)
    os.execv(python, [python, "-m", MODULE, *files])


if __name__ == "__main__":
    if not is_inside():
        enter(sys.argv[1:])
    from tests.cases.command import main

    sys.exit(main(sys.argv[1:]))
