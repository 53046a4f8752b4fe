"""
Probing kube-scheduler: which nodes would it take for a pod, and how does it score them?

A scheduler extender sees in `filter` the nodes that all of kube-scheduler's own filters left over,
and refuses in `bind`, so that no probe ever lands anywhere. The scores are read from the log,
which tells them at verbosity 10. Where volumes are bound before a pod is, it refuses in `filter`
already, and nothing is scored.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from pumice.local.api import Object
from pumice.local.controlplane import ControlPlane
from pumice.local.scheduler import Scheduler, stock_config
from tests.acceptance.length import patient

NAME = "probed-scheduler"
PATIENCE_S = 20.0
LOG_DELAY_S = 0.05
_SCORE = re.compile(
    r'"Plugin scored node for pod" pod="default/(\S+)" plugin="(\w+)" node="(\w+)" score=(-?\d+)'
)


@dataclass(frozen=True)
class Observed:
    """What kube-scheduler found: the nodes that pass, and plugin -> node -> weighted score."""

    nodes: list[str]
    scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: the message of the pod's condition, where it found no node
    message: str = ""


class Recorder:
    """
    The extender: remembers the first question about each pod, and binds nothing.

    With `at_filter` it does not let it come to that.
    """

    def __init__(self, *, at_filter: bool = False) -> None:
        self.at_filter = at_filter
        self.passed: dict[str, list[str]] = {}
        self.changed = threading.Condition()
        self._bound: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True, name="recorder").start()

    def is_done(self, uid: str) -> bool:
        """Return whether kube-scheduler has come to the end with the pod."""
        return uid in self._bound

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, body: Any) -> Object:
        """Take note of a call and answer it."""
        with self.changed:
            self.changed.notify_all()
            if path == "/filter":
                uid = body["Pod"]["metadata"]["uid"]
                self.passed.setdefault(uid, body["NodeNames"])
                if self.at_filter:
                    self._bound.add(uid)
                    return {"NodeNames": []}
                return {"NodeNames": body["NodeNames"]}
            self._bound.add(body["PodUID"])
            return {"Error": "a probe is not to be bound"}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                content = json.dumps(recorder.answer(self.path, body)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        return Handler


class Prober:
    """A kube-scheduler with a recorder behind it; it scores as Volcano makes it score."""

    def __init__(self, plane: ControlPlane, *, at_filter: bool = False) -> None:
        self.plane = plane
        self.recorder = Recorder(at_filter=at_filter)
        self._log = plane.directory / "logs" / f"{NAME}.log"
        self._scheduler = Scheduler(plane, NAME)
        self._scheduler.start(
            probing_config(plane.kubeconfig("kube-scheduler"), self.recorder.url), verbosity=10
        )

    def probe(self, pod: Object) -> tuple[Object, Observed]:
        """Create a pod, see what becomes of it, delete it; return it as it was created too."""
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        made: Object = self.plane.api.post(path, pod)
        name, uid = made["metadata"]["name"], made["metadata"]["uid"]
        try:
            message = self._wait(f"{path}/{name}", uid)
        finally:
            self.plane.api.delete(f"{path}/{name}", {"gracePeriodSeconds": 0})
        nodes = sorted(self.recorder.passed.get(uid, ()))
        return made, Observed(nodes, self._scores(name), message)

    def _wait(self, path: str, uid: str) -> str:
        """Wait until kube-scheduler has looked at the pod; return what it says without a node."""
        deadline = monotonic() + patient(PATIENCE_S)
        with self.recorder.changed:
            while not self.recorder.is_done(uid):
                self.recorder.changed.wait(LOG_DELAY_S)
                message = self._refusal(path, uid)
                if message:
                    return message
                assert monotonic() < deadline, f"kube-scheduler did not look at {path}"
        # The last lines of the log come after the answer.
        sleep(LOG_DELAY_S)
        return ""

    def _refusal(self, path: str, uid: str) -> str:
        conditions = self.plane.api.get(path)["status"].get("conditions", ())
        refused = (c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False")
        message = next((str(c.get("message", "")) for c in refused), "")
        return "" if uid in self.recorder.passed else message

    def _scores(self, name: str) -> dict[str, dict[str, int]]:
        scores: dict[str, dict[str, int]] = {}
        for pod, plugin, node, score in _SCORE.findall(self._log.read_text(errors="replace")):
            if pod == name:
                scores.setdefault(plugin, {}).setdefault(node, int(score))
        return scores

    def close(self) -> None:
        """Stop the recorder; kube-scheduler ends with its control plane."""
        self.recorder.close()


def probing_config(kubeconfig: Path, extender: str) -> Object:
    """Return the configuration: all nodes are scored, a refused pod is not looked at again soon."""
    config = stock_config(kubeconfig)
    balanced = [{"name": name, "weight": 1} for name in ("cpu", "memory", "nvidia.com/gpu")]
    arguments = {
        "InterPodAffinity": {"hardPodAffinityWeight": 0},
        "NodeResourcesBalancedAllocation": {"resources": balanced},
    }
    config["profiles"][0] |= {
        "plugins": {"postFilter": {"disabled": [{"name": "*"}]}},
        "pluginConfig": [{"name": name, "args": args} for name, args in arguments.items()],
    }
    return config | {
        "percentageOfNodesToScore": 100,
        "podInitialBackoffSeconds": 600,
        "podMaxBackoffSeconds": 600,
        "extenders": [
            {
                "urlPrefix": extender,
                "filterVerb": "filter",
                "bindVerb": "bind",
                "nodeCacheCapable": True,
                "weight": 1,
            }
        ],
    }
