"""Where the files are that are no Python: manifests and the Go module."""

from __future__ import annotations

from pathlib import Path

import pumice

MODULE = Path(__file__).parent
"""The directory with `go.mod` and `go.sum`."""


def manifests() -> Path:
    """Return the directory of the manifests, in a checkout or in an installed wheel."""
    checkout = Path(pumice.__file__).parents[1] / "manifests"
    return checkout if checkout.is_dir() else MODULE / "manifests"
