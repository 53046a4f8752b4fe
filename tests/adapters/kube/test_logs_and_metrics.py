"""Lines of JSON that say what they are about; metrics whose labels have bounds."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from pumice.kube import logs
from pumice.kube.clock import parse_rfc3339, rfc3339, rfc3339_micro
from pumice.kube.metrics import Metrics


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()
    logs.configure("info", stream)
    yield stream
    root.handlers[:], level = before
    root.setLevel(level)


def test_lines(stream: io.StringIO) -> None:
    log = logging.getLogger("somewhere")
    with logs.working_on(job="ns/j"), logs.working_on(queue="q"):
        log.info("%d of %d fit", 2, 3, extra={"node": "n"})
    log.debug("not shown")
    try:
        raise ValueError("odd")
    except ValueError:
        log.exception("failed with %s", object)
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert parse_rfc3339(first.pop("time")) > 0
    assert first == {
        "level": "info",
        "logger": "somewhere",
        "message": "2 of 3 fit",
        "job": "ns/j",
        "queue": "q",
        "node": "n",
    }
    assert second["traceback"].endswith("ValueError: odd")
    assert "job" not in second


async def test_metrics() -> None:
    metrics = Metrics("pumice_")
    binds = metrics.counter("binds", "Pods bound.", ["result"]).labels("ok")
    binds.inc()
    binds.inc()
    metrics.histogram("session_seconds", "Time.", buckets=(1, 2)).observe(1.5)
    metrics.gauge("parked", "Waiting.").set(4)
    text = (await metrics.render()).decode()
    for line in (
        'pumice_binds_total{result="ok"} 2.0',
        'pumice_session_seconds_bucket{le="2.0"} 1.0',
        "pumice_parked 4.0",
    ):
        assert line in text.splitlines()
    assert "_created" not in text


@pytest.mark.parametrize("label", ["pod", "job_id", "node_name"])
def test_labels_without_bound_are_refused(label: str) -> None:
    with pytest.raises(ValueError, match=label):
        Metrics().counter("x", "X.", ["result", label])


def test_times() -> None:
    assert rfc3339(1_700_000_000.9) == "2023-11-14T22:13:20Z"
    assert rfc3339_micro(1_700_000_000.25) == "2023-11-14T22:13:20.250000Z"
    assert parse_rfc3339("2023-11-14T22:13:20.250000Z") == 1_700_000_000.25
