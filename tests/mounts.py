"""
Files as a kubelet mounts them: a ConfigMap, a token.

    scheduler.conf -> ..data/scheduler.conf
    ..data         -> ..7x_0k2a9              a change swaps this link, and nothing else
    ..7x_0k2a9/scheduler.conf
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path


def mount(directory: Path, files: Mapping[str, str]) -> None:
    """Make a directory hold these files; those of a change before are exchanged all at once."""
    directory.mkdir(parents=True, exist_ok=True)
    content = Path(tempfile.mkdtemp(prefix="..", dir=directory))
    for name, text in files.items():
        (content / name).write_text(text)
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(Path("..data", name))
    data, fresh = directory / "..data", directory / "..data_tmp"
    old = data.resolve() if data.is_symlink() else None
    fresh.symlink_to(content.name)
    fresh.rename(data)
    if old:
        shutil.rmtree(old)
