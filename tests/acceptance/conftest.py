"""
The real control plane for the tests marked `cluster`.

One cluster serves all tests of a module; each test has a namespace of its own and makes its own
nodes. When a test fails, the ends of the components' logs are in its report, and the directory
with the whole logs is kept and named there.

A module may say with `LAYOUTS` in which layouts its tests run; where it does not, they run in the
usual one, and in the other where the environment variable PUMICE_LAYOUT (own, shared) asks for it.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import pytest

from pumice.local.build import binaries
from pumice.local.cluster import Cluster, Layout
from pumice.local.processes import Processes
from pumice.local.services import Webhooks
from tests.acceptance.bed import Bed
from tests.acceptance.length import Length, chosen_length
from tests.acceptance.replicas import Replicas

LOG_LINES = 25


@pytest.fixture(scope="session")
def binary_directory() -> Path:
    """The programs of the control plane, built when they are missing."""
    return binaries()


@pytest.fixture(scope="session")
def length() -> Length:
    """How often and how long, by the environment variable PUMICE_LENGTH."""
    return chosen_length()


LAYOUT = "PUMICE_LAYOUT"
LAYOUTS: Sequence[Layout] = get_args(Layout)
USUAL = LAYOUTS[:1]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let each test run in its layouts; nothing is said of it where that is the usual one."""
    chosen, own = os.environ.get(LAYOUT), getattr(metafunc.module, "LAYOUTS", None)
    if chosen and chosen not in LAYOUTS:
        raise pytest.UsageError(f"{LAYOUT} is one of {', '.join(LAYOUTS)}, not {chosen!r}")
    layouts = tuple(name for name in own or LAYOUTS if name == chosen) if chosen else own or USUAL
    if "layout" in metafunc.fixturenames and layouts != USUAL:
        metafunc.parametrize("layout", layouts, scope="module")


@pytest.fixture(scope="module")
def layout() -> Layout:
    """Whose kube-scheduler places our pods."""
    return USUAL[0]


@pytest.fixture(scope="module")
def configuration() -> str:
    """What sessions do, as the file's text; empty for what they do anyway."""
    return ""


@pytest.fixture(scope="module")
def has_webhooks() -> bool:
    """Whether the webhooks run."""
    return False


@pytest.fixture(scope="module")
def cluster(
    layout: Layout,
    configuration: str,
    has_webhooks: bool,
    binary_directory: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    """A cluster with Pumice in it and without nodes, for the tests of one module."""
    directory = tmp_path_factory.mktemp("cluster")
    file = directory / "scheduler.conf" if configuration else None
    if file:
        file.write_text(configuration)
    with Cluster(
        directory,
        nodes=0,
        audit_level="RequestResponse",
        configuration=file,
        layout=layout,
        webhooks=has_webhooks,
    ) as running:
        yield running


@pytest.fixture
def bed(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Bed]:
    """A test's own view of the module's cluster."""
    marks = {name: _size(cluster.plane.processes, name) for name in cluster.plane.processes.names}
    view = Bed(cluster)
    view.open()
    _forget_earlier_tests()
    try:
        yield view
    finally:
        if _failed(request.node):
            _report(request.node, cluster, marks)
        if _is_last_of_module(request):
            view.stop()
        else:
            view.close()


@pytest.fixture
def webhooks(cluster: Cluster) -> Iterator[Webhooks]:
    """The webhooks' service; it runs again afterwards, whatever the test did to it."""
    assert cluster.webhooks is not None
    yield cluster.webhooks
    cluster.webhooks.start()


@pytest.fixture
def replicas(bed: Bed) -> Iterator[Replicas]:
    """Two replicas of the controllers in place of the one."""
    with Replicas(bed) as made:
        yield made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Leave on the test whether it failed, for fixtures that end after it."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report  # type: ignore[return-value]


FAILED = pytest.StashKey[bool]()


def _is_last_of_module(request: pytest.FixtureRequest) -> bool:
    """Whether the cluster ends with this test: then nothing need be cleared away."""
    items = request.session.items
    following = items[items.index(request.node) + 1 :][:1]
    return not any(item.path == request.node.path for item in following)


def _forget_earlier_tests() -> None:
    """
    Keep the collector away from what earlier tests left.

    Where one failed, pytest keeps all it had watched. To look through that takes seconds, in
    which the proxies and watches of this process stand still.
    """
    gc.collect()
    gc.freeze()


def _failed(item: pytest.Item) -> bool:
    return item.stash.get(FAILED, False)


def _size(processes: Processes, name: str) -> int:
    log = processes.log(name)
    return log.stat().st_size if log.exists() else 0


def _report(item: pytest.Item, cluster: Cluster, marks: dict[str, int]) -> None:
    """Add what our components said during the test to its report."""
    processes = cluster.plane.processes
    for name in ("extender", "controllers", "kube-scheduler"):
        if name in processes.names:
            with processes.log(name).open(errors="replace") as log:
                log.seek(marks.get(name, 0))
                tail = log.read().splitlines()[-LOG_LINES:]
            item.add_report_section("teardown", f"log of {name}", "\n".join(tail))
    item.add_report_section("teardown", "logs", str(cluster.plane.directory / "logs"))
