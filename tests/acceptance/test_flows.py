"""JobFlows on the real control plane: order, probes, patches, and what remains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from pumice.local.watching import Watched
from tests.acceptance.bed import Bed, pod_path
from tests.acceptance.objects import Object, a_flow, a_job_template

pytestmark = pytest.mark.cluster

FLOW_API = "flow.volcano.sh/v1alpha1"
FLOWS, TEMPLATES = f"/apis/{FLOW_API}/jobflows", f"/apis/{FLOW_API}/jobtemplates"
PATIENCE_S = 20.0
COLLECTED_S = 60.0
"""Kubernetes' garbage collector looks for new kinds every half minute."""
SLEEP, FAIL = ["sleep", "86400"], ["sh", "-c", "exit 1"]


class Flow:
    """The JobFlow of a test."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._flows = Watched(bed.api, FLOWS, changed=bed.changed).start()
        self._templates = Watched(bed.api, TEMPLATES, changed=bed.changed).start()

    def stop(self) -> None:
        self._flows.stop()
        self._templates.stop()

    @property
    def status(self) -> Object:
        found = self._flows.get(f"{self._bed.namespace}/flow", {})
        status: Object = found.get("status", {})
        return status

    @property
    def phase(self) -> str:
        return str(self.status.get("state", {}).get("phase", ""))

    def wait(self, phase: str) -> None:
        self._bed.wait_for(lambda: self.phase == phase, PATIENCE_S, f"the flow is {phase}")

    def used_for(self, template: str) -> list[str]:
        """Return the Jobs that a JobTemplate lists."""
        found = self._templates.get(f"{self._bed.namespace}/{template}", {})
        listed: list[str] = found.get("status", {}).get("jobDependsOnList", [])
        return listed


@pytest.fixture
def flow(bed: Bed) -> Iterator[Flow]:
    bed.nodes(2, cpu=32)
    found = Flow(bed)
    yield found
    found.stop()


def there(bed: Bed) -> list[str]:
    """Return the names of the Jobs that there are."""
    return sorted(key.rpartition("/")[2] for key in bed.jobs)


def test_steps_follow_each_other_and_what_is_done_with_goes(bed: Bed, flow: Flow) -> None:
    steps = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
    bed.create(a_flow(steps, jobRetainPolicy="delete"))
    bed.create(*map(a_job_template, steps))  # JobTemplates may come later.
    flow.wait("Succeed")

    names = [f"flow-{name}" for name in steps]
    assert flow.status["completedJobs"] == names
    for entry in flow.status["jobStatusList"]:
        assert [history["state"] for history in entry["runningHistories"]][-1] == "Completed"
    came = [seen.object["metadata"]["name"] for seen in bed.jobs.history if seen.kind == "ADDED"]
    assert sorted(came) == names
    assert (came[0], came[-1]) == ("flow-a", "flow-d")
    bed.wait_for(lambda: not bed.jobs, PATIENCE_S, "all Jobs are gone")
    assert flow.phase == "Succeed"


def test_a_flow_that_fails_goes_no_further(bed: Bed, flow: Flow) -> None:
    bed.create(a_job_template("a", FAIL), a_job_template("b"), a_job_template("c"))
    bed.create(a_flow({"a": [], "b": [], "c": ["a", "b"]}))
    flow.wait("Failed")
    bed.wait_for(lambda: flow.status.get("completedJobs") == ["flow-b"], PATIENCE_S)
    assert flow.status["failedJobs"] == ["flow-a"]
    assert there(bed) == ["flow-a", "flow-b"]


class Page:
    """What a server answers, and how often it was asked."""

    def __init__(self) -> None:
        self.status = 503
        self.asked = 0


@contextmanager
def a_server(bed: Bed, page: Page) -> Iterator[int]:
    """Serve a page on loopback; yield the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with bed.changed:
                page.asked += 1
                bed.changed.notify_all()
            self.send_response(page.status)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_a_step_begins_when_its_target_answers_and_is_patched(bed: Bed, flow: Flow) -> None:
    page = Page()
    with a_server(bed, page) as port:
        get = {"taskName": "worker", "path": "/ready", "port": port}
        more: dict[str, Object] = {
            "client": {
                "dependsOn": {"probe": {"httpGetList": [get]}},
                "patch": {"jobSpec": {"tasks": [{"name": "worker", "replicas": 3}]}},
            },
            "watcher": {
                "dependsOn": {
                    "probe": {"taskStatusList": [{"taskName": "worker", "phase": "Running"}]}
                }
            },
        }
        bed.create(*(a_job_template(name, SLEEP) for name in ("server", "client", "watcher")))
        bed.create(a_flow({"server": [], "client": ["server"], "watcher": ["server"]}, more=more))
        bed.wait_for(lambda: bed.running("flow-watcher"), PATIENCE_S, "one waits for a phase alone")
        (pod,) = bed.running("flow-server")
        address = {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
        bed.api.patch(f"{pod_path(pod)}/status", {"status": address})
        bed.wait_for(lambda: page.asked, PATIENCE_S, "the server is asked")
        assert bed.job("flow-client") is None
        page.status = 204
        bed.wait_for(lambda: len(bed.running("flow-client")) == 3, PATIENCE_S, "the client runs")
    assert flow.phase == "Running"
    bed.wait_for(lambda: flow.used_for("client") == ["flow-client"], PATIENCE_S)


def test_a_circle_is_told_and_nothing_of_it_begins(bed: Bed, flow: Flow) -> None:
    bed.create(*map(a_job_template, "abc"), a_flow({"a": [], "b": ["c"], "c": ["b"]}))
    events = Watched(bed.api, f"/api/v1/namespaces/{bed.namespace}/events", changed=bed.changed)
    events.start()
    try:
        text = "SyncJobFlow JobFlow failed for jobflow Flow is not DAG"
        bed.wait_for(
            lambda: text in [event["message"] for event in events.values()], PATIENCE_S, text
        )
    finally:
        events.stop()
    assert (there(bed), flow.phase) == ([], "Pending")


def test_nothing_is_left_of_a_flow_that_is_deleted(bed: Bed, flow: Flow) -> None:
    steps: dict[str, Sequence[str]] = {"a": [], "b": []}
    bed.create(*(a_job_template(name, SLEEP, replicas=2) for name in steps), a_flow(steps))
    bed.wait_for(lambda: all(len(bed.running(f"flow-{x}")) == 2 for x in steps), PATIENCE_S)
    bed.delete(a_flow(steps))
    bed.wait_for(lambda: not (bed.jobs or bed.pods or bed.pod_groups), COLLECTED_S, "all is gone")
    bed.wait_for(lambda: flow.used_for("a") == [], PATIENCE_S)
