"""
Run one case file and say how it went.

Each case has a control plane of its own: nothing of another case can be left in it.
"""

from __future__ import annotations

import json
import shutil
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from pumice.local.cluster import Cluster
from pumice.local.errors import LocalError
from tests.cases import configuration, needs
from tests.cases.errors import CaseError, LackingError
from tests.cases.loading import identity, load
from tests.cases.player import Player
from tests.cases.schema import Case
from tests.cases.world import COLLECTIONS, World

Result = Literal["PASS", "FAIL", "SKIP"]
PAGES = ("sessions", "ledger", "check")
"""What the extender says of itself."""


class Verdict(NamedTuple):
    """How a case went; `str` is the line that is printed."""

    result: Result
    case: str
    reason: str = ""

    def __str__(self) -> str:
        reason = " ".join(self.reason.split())
        return f"{self.result} {self.case}: {reason}" if reason else f"{self.result} {self.case}"


def run(path: Path, logs: Path | None = None) -> Verdict:
    """
    Run the case in a file; whatever goes wrong is in the verdict, never an exception.

    What the components wrote is kept in a directory of the case's id under `logs`; without it,
    in a temporary one, and only where the case fails.
    """
    name = identity(path)
    try:
        case = load(path)
        needs.require(case)
        faults = _played(case, logs / case.id if logs else None)
    except LackingError as error:
        return Verdict("SKIP", name, str(error))
    except (CaseError, LocalError, OSError) as error:
        return Verdict("FAIL", name, str(error))
    except Exception as error:
        traceback.print_exc()
        return Verdict("FAIL", name, f"the runner failed: {error!r}")
    return Verdict("FAIL", name, "; ".join(faults)) if faults else Verdict("PASS", name)


def _played(case: Case, directory: Path | None) -> list[str]:
    """Play a case on a cluster of its own; return what is wrong with what was seen."""
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)
    cluster = Cluster(
        directory, nodes=0, audit_level="RequestResponse", stock_scheduler=True, webhooks=True
    )
    directory = cluster.plane.directory
    cluster.extender.configuration = directory / "volcano-scheduler.conf"
    cluster.extender.configuration.write_text(configuration.text(case.config))
    cluster.start()
    keep = True
    try:
        world = World(cluster, case.objects())
        needs.require_kinds(case, world.kinds)
        with world, _evidence(world, directory / "evidence"):
            faults = Player(case, world).play()
        keep = bool(faults)
        return faults
    except LackingError:
        keep = False
        raise
    finally:
        cluster.stop(keep=keep)
        if keep:
            print(f"{case.id}: logs and evidence are kept in {directory}", file=sys.stderr)


@contextmanager
def _evidence(world: World, directory: Path) -> Iterator[None]:
    """Write down at the end what there is and what the extender says; most often in vain."""
    try:
        yield
    finally:
        directory.mkdir()
        with suppress(LocalError, OSError):
            moment = world.moment()
            for part in COLLECTIONS:
                (directory / f"{part}.json").write_text(json.dumps(getattr(moment, part), indent=1))
        for page in PAGES:
            with suppress(OSError):
                (directory / f"{page}.json").write_bytes(
                    world.cluster.extender.get(f"/debug/{page}")[1]
                )
