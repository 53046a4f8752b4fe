"""
The control plane itself, with a stock scheduler in place of ours.

What the other tests take for granted is shown here: fake pods live and die as their commands
say, deletions can be seen, components can be killed, and nothing outlives its parent.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import pytest

from pumice.local.api import Object
from pumice.local.controlplane import ControlPlane
from pumice.local.errors import ApiError
from pumice.local.install import install
from pumice.local.nodes import add_nodes
from pumice.local.scheduler import STOCK, start_stock_scheduler
from pumice.local.users import USERS
from pumice.local.watching import Watched
from tests.acceptance.length import patient
from tests.acceptance.objects import EXIT_AFTER, EXIT_CODE, a_pod

pytestmark = pytest.mark.cluster

READY_S = 20.0
PODS = "/api/v1/namespaces/default/pods"
IGNORE_SIGTERM = "pumice.dev/ignore-sigterm"


@pytest.fixture(scope="module")
def plane(
    binary_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane with four nodes and a stock scheduler."""
    directory = tmp_path_factory.mktemp("plane")
    with ControlPlane(directory, audit_level="Metadata") as running:
        add_nodes(running.api, 4, zones=2)
        start_stock_scheduler(running)
        accounts = Watched(running.api, "/api/v1/namespaces/default/serviceaccounts").start()
        accounts.wait(lambda found: "default/default" in found, READY_S)
        accounts.stop()
        yield running


@pytest.fixture
def pods(plane: ControlPlane) -> Iterator[Watched]:
    """The pods of namespace `default`, none at first."""
    watched = Watched(plane.api, PODS, keep_history=True).start()
    try:
        yield watched
        plane.api.delete(PODS, {"gracePeriodSeconds": 0})
        watched.wait(lambda found: not found, READY_S, "the pods are gone")
    finally:
        watched.stop()


def stock(name: str, **kind: object) -> Object:
    """Return a pod for the stock scheduler."""
    return a_pod(name, scheduler="default-scheduler", **kind)  # type: ignore[arg-type]


def phase(pods: Watched, name: str) -> str:
    found = pods.get(f"default/{name}", {})
    value: str = found.get("status", {}).get("phase", "")
    return value


def first_container(pods: Watched, name: str) -> Object:
    statuses: list[Object] = pods[f"default/{name}"]["status"]["containerStatuses"]
    return statuses[0]


def wait(check: Callable[[], object], what: str) -> None:
    """Wait for what no watch tells of."""
    deadline = monotonic() + patient(READY_S)
    while not check():
        assert monotonic() < deadline, what
        sleep(0.05)


def test_it_is_ready_soon_and_says_its_version(binary_directory: Path) -> None:
    started = monotonic()
    with ControlPlane() as plane:
        assert monotonic() - started < patient(READY_S)
        assert plane.api.get("/version")["gitVersion"].startswith("v")
        directory = plane.directory
    assert not directory.exists()


def test_a_bound_pod_runs_and_keeps_the_conditions_of_others(
    plane: ControlPlane, pods: Watched
) -> None:
    plane.api.post(PODS, stock("plain"))
    pods.wait(lambda found: phase(found, "plain") == "Running", READY_S)

    status = pods["default/plain"]["status"]
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "PodScheduled": "True",
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "ContainersReady": "True",
        "Ready": "True",
    }
    assert status["podIP"].startswith("10.")
    bound = next(s.at for s in pods.history if s.object["spec"].get("nodeName"))
    running = next(s.at for s in pods.history if s.object["status"]["phase"] == "Running")
    assert running - bound < patient(1)


@dataclass(frozen=True)
class Ending:
    """A command and how its pod ends."""

    command: list[str]
    code: int
    after_s: float = 0.0
    annotations: Mapping[str, str] | None = None
    restart: str = "Never"


def shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


ENDINGS = {
    "sleep ends well": Ending(["sleep", "1"], 0, 1),
    "units are understood": Ending(shell("sleep 0.02m"), 0, 1.2),
    "a success ends even where failures restart": Ending(
        ["sleep", "0.5"], 0, 0.5, None, "OnFailure"
    ),
    "an exit code after a sleep": Ending(shell("sleep 1s && exit 3"), 3, 1),
    "a semicolon is as good": Ending(shell("sleep 0.5; exit 4"), 4, 0.5),
    "an unknown command after a sleep": Ending(shell("sleep 0.5s && xxx"), 127, 0.5),
    "a script that no image has": Ending(shell("sh fake.sh"), 127),
    "an exit code at once": Ending(shell("exit 9"), 9),
    "false": Ending(["false"], 1),
    "echo": Ending(shell("echo done"), 0),
    "an annotation beats the command": Ending(
        ["sleep", "100"], 7, 0.5, {EXIT_AFTER: "0.5", EXIT_CODE: "7"}
    ),
    "an annotation ends a pod for good": Ending(["nginx"], 2, 0, {EXIT_CODE: "2"}, "Always"),
}


def test_pods_end_as_their_commands_and_annotations_say(plane: ControlPlane, pods: Watched) -> None:
    bodies = {
        what: stock(
            f"e{index}",
            command=ending.command,
            annotations=ending.annotations,
            restart=ending.restart,
        )
        for index, (what, ending) in enumerate(ENDINGS.items())
    }
    for body in bodies.values():
        plane.api.post(PODS, body)
    names = {what: body["metadata"]["name"] for what, body in bodies.items()}
    ended = ("Succeeded", "Failed")
    pods.wait(lambda found: all(phase(found, n) in ended for n in names.values()), READY_S)

    got = {
        what: (
            phase(pods, name),
            first_container(pods, name)["state"]["terminated"]["exitCode"],
            lifetime(pods, name) >= ENDINGS[what].after_s - 0.1,
        )
        for what, name in names.items()
    }
    assert got == {
        what: ("Failed" if ending.code else "Succeeded", ending.code, True)
        for what, ending in ENDINGS.items()
    }


def lifetime(pods: Watched, name: str) -> float:
    """Return the seconds from the first sight of a pod to its end."""
    mine = [seen for seen in pods.history if seen.object["metadata"]["name"] == name]
    end = next(
        seen.at for seen in mine if seen.object["status"]["phase"] in ("Succeeded", "Failed")
    )
    return end - mine[0].at


RUNNING_ON = {
    "a server": {"command": ["nginx", "-g", "daemon off;"]},
    "a sleep without end": {"command": ["sleep", "infinity"]},
    "a script we cannot read": {"command": shell("while true; do sleep 1; done")},
}


def test_other_commands_run_on_until_an_annotation_ends_them(
    plane: ControlPlane, pods: Watched
) -> None:
    names = [f"r{index}" for index in range(len(RUNNING_ON))]
    for name, kind in zip(names, RUNNING_ON.values(), strict=True):
        plane.api.post(PODS, stock(name, **kind))
    pods.wait(lambda found: all(phase(found, name) == "Running" for name in names), READY_S)
    for name in names:
        plane.api.patch(f"{PODS}/{name}", {"metadata": {"annotations": {EXIT_CODE: "5"}}})
    pods.wait(lambda found: all(phase(found, name) == "Failed" for name in names), READY_S)
    codes = {first_container(pods, n)["state"]["terminated"]["exitCode"] for n in names}
    assert codes == {5}


def test_a_failing_container_is_restarted_where_its_policy_says_so(
    plane: ControlPlane, pods: Watched
) -> None:
    plane.api.post(PODS, stock("again", command=shell("exit 3"), restart="OnFailure"))
    pods.wait(
        lambda found: (
            "default/again" in found
            and found["default/again"]["status"]
            .get("containerStatuses", [{}])[0]
            .get("restartCount")
        ),
        READY_S,
    )
    container = first_container(pods, "again")
    assert phase(pods, "again") == "Running"
    assert container["lastState"]["terminated"]["exitCode"] == 3


def test_a_deletion_can_be_watched_and_ends_as_a_kubelet_ends_it(
    plane: ControlPlane, pods: Watched
) -> None:
    plane.api.post(PODS, stock("going", grace_s=30))
    pods.wait(lambda found: phase(found, "going") == "Running", READY_S)
    plane.api.delete(f"{PODS}/going")
    took = pods.wait(lambda found: "default/going" not in found, READY_S)

    assert 0.8 < took < patient(4)
    going = [s for s in pods.history if s.object["metadata"].get("deletionTimestamp")]
    assert going[0].object["status"]["phase"] == "Running"
    last = going[-1].object["status"]
    assert last["phase"] == "Failed"
    assert last["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143


def test_a_pod_that_ignores_sigterm_takes_its_grace_period_unless_forced(
    plane: ControlPlane, pods: Watched
) -> None:
    notes = {IGNORE_SIGTERM: "true"}
    plane.api.post(PODS, stock("slow", grace_s=4, annotations=notes))
    plane.api.post(PODS, stock("forced", grace_s=300, annotations=notes))
    both = ("slow", "forced")
    pods.wait(lambda found: all(phase(found, name) == "Running" for name in both), READY_S)
    for name in both:
        plane.api.delete(f"{PODS}/{name}")
    took = pods.wait(lambda found: "default/slow" not in found, READY_S)

    assert took > 2.5
    assert "default/forced" in pods
    plane.api.delete(f"{PODS}/forced", {"gracePeriodSeconds": 0})
    assert pods.wait(lambda found: "default/forced" not in found, READY_S) < patient(2)


def test_a_pod_on_an_unknown_node_stays_pending(plane: ControlPlane, pods: Watched) -> None:
    plane.api.post(PODS, stock("lost", node="no-such-node"))
    plane.api.post(PODS, stock("later"))
    pods.wait(lambda found: phase(found, "later") == "Running", READY_S)
    assert phase(pods, "lost") == "Pending"


def test_a_pod_with_its_node_given_runs_whatever_its_scheduler(
    plane: ControlPlane, pods: Watched
) -> None:
    plane.api.post(PODS, a_pod("placed", scheduler="nobody", node="node-0"))
    pods.wait(lambda found: phase(found, "placed") == "Running", READY_S)


def test_container_statuses_written_by_others_stay(plane: ControlPlane, pods: Watched) -> None:
    plane.api.post(PODS, stock("touched"))
    pods.wait(lambda found: phase(found, "touched") == "Running", READY_S)
    statuses = pods["default/touched"]["status"]["containerStatuses"]
    statuses[0]["restartCount"] = 4
    plane.api.patch(f"{PODS}/touched/status", {"status": {"containerStatuses": statuses}})
    plane.api.post(PODS, stock("after"))
    pods.wait(lambda found: phase(found, "after") == "Running", READY_S)
    assert first_container(pods, "touched")["restartCount"] == 4


def test_a_killed_component_comes_back_on_its_port(plane: ControlPlane, pods: Watched) -> None:
    plane.processes.kill(STOCK)
    plane.api.post(PODS, stock("patient"))
    plane.processes.restart(STOCK)
    pods.wait(lambda found: phase(found, "patient") == "Running", READY_S)


def trail(plane: ControlPlane) -> list[Object]:
    lines = plane.audit_log.read_text().split("\n")[:-1]  # The last one may be half written.
    return [json.loads(line) for line in lines]


def audited(plane: ControlPlane, name: str) -> list[tuple[str, str | None]]:
    """Return who wrote an object and which part of it."""
    mine = [event for event in trail(plane) if event["objectRef"].get("name") == name]
    return [(e["user"]["username"], e["objectRef"].get("subresource")) for e in mine]


def test_the_audit_log_tells_who_wrote_what_and_no_more(plane: ControlPlane, pods: Watched) -> None:
    plane.api.post(PODS, stock("audited"))
    pods.wait(lambda found: phase(found, "audited") == "Running", READY_S)
    # A write may be seen a moment before its line is.
    wait(lambda: "kwok" in [who for who, _ in audited(plane, "audited")], "the last line is there")

    assert audited(plane, "audited") == [
        ("admin", None),
        ("system:kube-scheduler", "binding"),
        ("kwok", "status"),
    ]
    events = trail(plane)
    assert not {event["verb"] for event in events} & {"get", "list", "watch"}
    assert not {event["objectRef"]["resource"] for event in events} & {"events", "leases"}


def test_our_users_have_the_rights_of_the_manifests_and_no_more(plane: ControlPlane) -> None:
    install(plane.api)
    extender = plane.api_as("pumice-extender")
    assert extender.get(PODS)["kind"] == "PodList"
    with pytest.raises(ApiError, match="cannot create resource"):
        extender.post(PODS, stock("forbidden"))
    with pytest.raises(ApiError, match=USERS["pumice-extender"].name):
        extender.delete(f"{PODS}/nothing")


def test_control_planes_live_side_by_side(plane: ControlPlane, pods: Watched) -> None:
    with ControlPlane() as other:
        add_nodes(other.api, 2, prefix="other-")
        mine = {node["metadata"]["name"] for node in plane.api.get("/api/v1/nodes")["items"]}
        theirs = {node["metadata"]["name"] for node in other.api.get("/api/v1/nodes")["items"]}
    assert mine == {"node-0", "node-1", "node-2", "node-3"}
    assert theirs == {"other-0", "other-1"}


PARENT = """
import sys, time
from pathlib import Path
from pumice.local.controlplane import ControlPlane
plane = ControlPlane(Path(sys.argv[1])).start()
print(*(plane.processes.pid(name) for name in plane.processes.names), flush=True)
time.sleep(600)
"""


def test_nothing_outlives_a_killed_parent(binary_directory: Path, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = parent.stdout.readline().split()
        assert len(pids) == 4
        os.kill(parent.pid, signal.SIGKILL)
    wait(
        lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "all end with their parent"
    )
    assert (tmp_path / "logs" / "kube-apiserver.log").stat().st_size
