"""`pumice explain`: what it asks, what it prints, and how it ends where there is no answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from extender.api.examples import AT, EXPLANATION
from pumice.cli import explain
from pumice.cli.main import app
from pumice.core.explain.answers import (
    Choice,
    Comparison,
    Decision,
    Explanation,
    Holder,
    Members,
    NodeVerdict,
    Placement,
    Refused,
)
from pumice.local import keeper
from tests.unit.local.test_keeper import STATE


@dataclass
class Extender:
    """Answers every request alike, and remembers it."""

    url: str
    status: int = 200
    body: bytes = msgspec.json.encode(EXPLANATION)
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@pytest.fixture
def extender() -> Iterator[Extender]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known.asked.append((self.path, self.headers["Authorization"]))
            self.send_response(known.status)
            self.send_header("Content-Length", str(len(known.body)))
            self.end_headers()
            self.wfile.write(known.body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        known = Extender(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=[0.01], name="extender")
        thread.start()
        try:
            yield known
        finally:
            server.shutdown()
            thread.join()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments])


PRINTED = """\
Job team-a/training: waiting

The gang needs 8 pods at the same time, but only 7 of them find a node (8 nodes: not enough cpu\
 for a pod that asks for 4).

PodGroup  training-5f0c, Inqueue, in queue research
Pods      8 in all: 8 waiting; at least 8 at the same time
          8 Held
Compared  WHO       OF THE   WHAT     WANTED  HAD
          gang      gang     members  8       7
          allocate  cluster  cpu      32      31
          allocate  node     cpu      4       3
Nodes     8 of 8: not enough cpu for a pod that asks for 4
Held by   1 cpu: queue serving
          1 cpu: PodGroup team-b/podgroup-1d2e, queue serving
Refused   2026-03-01T12:00:00Z: kube-scheduler refused training-worker-3 on node-2: Unschedulable:\
 0/8 nodes are available: 1 node(s) had untolerated taint(s).
Decided   by session s42 at 2026-03-01T12:00:00Z
"""


def test_an_explanation_for_people(extender: Extender) -> None:
    result = run("job", "training", "-n", "team-a", "--server", extender.url)
    assert (result.exit_code, result.output) == (0, PRINTED)
    assert extender.asked == [("/debug/explain/job/team-a/training", None)]


POD = Explanation(
    kind="pod",
    namespace="team-a",
    name="training-worker-0",
    state="running",
    sentence="The pod has node node-3: Pumice chose the node and pinned the pod to it.",
    pod_group="training-5f0c",
    queue="research",
    phase="Running",
    members=Members(minimum=8, total=8, placed=8, running=8, ledger={"Bound": 8}),
    placement=Placement(
        "node-3",
        "Pumice chose the node and pinned the pod to it",
        AT,
        Decision("s41", AT, "allocate"),
        together=8,
    ),
    choice=Choice(
        10,
        6,
        (Refused(4, "Insufficient cpu", "not enough cpu for a pod that asks for 4"),),
        NodeVerdict(
            "node-3", True, (), {"cpu": "4"}, {"cpu": "8"}, score=87.5, best=90.0, better=1
        ),
    ),
)
POD_PRINTED = """\
Pod team-a/training-worker-0: running

The pod has node node-3: Pumice chose the node and pinned the pod to it.

PodGroup  training-5f0c, Running, in queue research
Pods      8 in all: 8 placed, 8 running; at least 8 at the same time
          8 Bound
Node      node-3 since 2026-03-01T12:00:00Z: Pumice chose the node and pinned the pod to it
          chosen by session s41 at 2026-03-01T12:00:00Z with 7 others of its gang
Choice    6 of 10 nodes would take it as things stand
          4: not enough cpu for a pod that asks for 4
          node-3: asked for 4 cpu, has 8 cpu
          node-3: score 87.5, the best 90, higher ones 1
"""


def test_a_pod_and_its_node_for_people(extender: Extender) -> None:
    extender.body = msgspec.json.encode(POD)
    result = run("pod", "p", "--node", "node-3", "--server", extender.url)
    assert (result.exit_code, result.output) == (0, POD_PRINTED)
    assert extender.asked == [("/debug/explain/pod/default/p?node=node-3", None)]


def test_little_is_said_where_little_is_known(extender: Extender) -> None:
    alone = Explanation("pod", "ns", "p", "waiting", "The pod is not Pumice's to place.")
    extender.body = msgspec.json.encode(alone)
    result = run("pod", "p", "--server", extender.url)
    assert result.output == "Pod ns/p: waiting\n\nThe pod is not Pumice's to place.\n"


def test_everybody_who_may_hold_something_has_a_name(extender: Extender) -> None:
    held = (
        Holder("job", {"cpu": "2", "memory": "1Gi"}, "ns", "g"),
        Holder("others", {"cpu": "3"}, jobs=2),
        Holder("ending", {"cpu": "1"}),
        Holder("outside", {"cpu": "1"}),
    )
    bound = (Comparison("proportion", "queue", "cpu", "3", "1", "4"),)
    found = replace(EXPLANATION, holders=held, compared=bound)
    extender.body = msgspec.json.encode(found)
    lines = run("job", "g", "--server", extender.url).output.splitlines()
    at = lines.index("Held by   2 cpu, 1Gi memory: PodGroup ns/g")
    assert [line.strip() for line in lines[at + 1 : at + 4]] == [
        "3 cpu: others (2 jobs)",
        "1 cpu: pods that are ending",
        "1 cpu: pods of other schedulers",
    ]
    assert "          proportion  queue   cpu   3       1 of 4" in lines


def test_the_answer_as_it_came(extender: Extender) -> None:
    result = run("podgroup", "g", "-o", "json", "--server", extender.url)
    assert json.loads(result.output) == json.loads(extender.body)


def test_names_are_no_part_of_the_path(extender: Extender) -> None:
    run("pod", "a/b?c", "-n", "..", "--server", f"{extender.url}/")
    assert extender.asked == [("/debug/explain/pod/../a%2Fb%3Fc", None)]


@pytest.mark.parametrize("how", ["option", "variable"])
def test_a_token_is_presented(
    extender: Extender, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "variable":
        monkeypatch.setenv("PUMICE_TOKEN", "t")
        run("pod", "p", "--server", extender.url)
    else:
        run("pod", "p", "--token", "t", "--server", extender.url)
    assert extender.asked == [("/debug/explain/pod/default/p", "Bearer t")]


# No answer.

REFUSALS = {
    404: (b'{"detail": "there is no Pod ns/p"}', "There is no Pod ns/p.\n"),
    401: (
        b'{"detail": "a bearer token is required"}',
        "A bearer token is required.\nGive a token by --token or PUMICE_TOKEN.\n",
    ),
    403: (b'{"detail": "user may not"}', "User may not.\n"),
    500: (b"Internal Server Error", "The server answers with status 500.\n"),
    502: (b"[1]", "The server answers with status 502.\n"),
    200: (b'{"kind": "cake"}', "What the server answers is no explanation: "),
}


@pytest.mark.parametrize("status", REFUSALS)
def test_what_is_no_explanation_is_told_and_ends_with_1(extender: Extender, status: int) -> None:
    extender.status = status
    extender.body, told = REFUSALS[status]
    result = run("pod", "p", "--server", extender.url)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(told)


def test_nobody_there_ends_with_3_and_says_what_to_do(extender: Extender) -> None:
    extender_is_gone = "http://127.0.0.1:1"
    result = run("pod", "p", "--server", extender_is_gone)
    assert result.exit_code == 3
    assert result.stderr.startswith(f"No answer from {extender_is_gone}: ")
    assert "kubectl -n pumice-system port-forward" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--server", "nonsense"),
        ("--server", "ftp://h"),
        ("--server", "http://h:99999"),
        ("--server", "http://h/path"),
        ("--server", "http://example.com", "--token", "t"),
        ("--ca", "/no/such/file"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anybody_is_asked(arguments: tuple[str, ...]) -> None:
    assert run("pod", "p", *arguments).exit_code == 2


# Where the extender is.


@pytest.mark.parametrize(
    ("state", "want"),
    [
        (None, explain.DEFAULT_SERVER),
        (STATE, explain.DEFAULT_SERVER),
        (replace(STATE, extender="http://127.0.0.1:7"), "http://127.0.0.1:7"),
    ],
    ids=["no local cluster", "a local cluster of before", "a local cluster"],
)
def test_the_local_cluster_is_asked_where_there_is_one(
    state: keeper.State | None, want: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(keeper, "current", lambda _: state)
    monkeypatch.setattr(keeper, "state_directory", lambda: tmp_path)
    assert explain._default_server() == want
