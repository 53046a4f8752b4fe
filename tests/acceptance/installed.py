"""
A cluster in which Pumice was installed as the README has it: one file, `kubectl apply -f`.

The objects are made by kube-apiserver and kube-controller-manager as on any cluster. What starts
the pods is in `kubelet`, what brings reviews to the webhooks in `tunnel`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Self

from pumice.cli.manifests import IMAGE, render
from pumice.core.names import NAMESPACE
from pumice.local.api import Object
from pumice.local.cluster import QUEUES, Cluster
from pumice.local.install import is_gated
from pumice.local.toolchain import find_kubectl
from pumice.local.watching import Watched
from tests.acceptance.kubelet import Pod
from tests.acceptance.tunnel import Tunnel

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DEPLOYMENTS = ("pumice-controllers", "pumice-scheduler", "pumice-webhooks")
NAME = "app.kubernetes.io/name"
TIMEOUT_S = 30.0


class Installed(Cluster):
    """The cluster; a context manager."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, nodes=0, audit_level="RequestResponse")
        self.file = directory / "pumice.yaml"
        self.file.write_text(render(IMAGE))
        #: what kubectl printed
        self.printed = ""
        #: by the name of their Deployment
        self.pods: dict[str, Pod] = {}
        self._tunnel = Tunnel(directory, self._resolve)
        self.plane.api_server_arguments += self._tunnel.arguments()

    def start(self) -> Self:
        """Start the control plane, apply the file, start the pods that come of it."""
        try:
            self._tunnel.start()
            self.plane.start()
            self.printed = self.apply()
            for name, body in self._made().items():
                self.pods[name] = Pod(self.plane, body)
                self.pods[name].start()
            for pod in self.pods.values():
                pod.wait_ready()
            self._wait_for_queues_and_gate()
        except BaseException:
            self.stop(keep=True)
            raise
        return self

    def stop(self, *, keep: bool = False) -> None:
        """Kill everything; the directory with the logs goes too unless it is to be kept."""
        super().stop(keep=keep)
        self._tunnel.close()

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        super().__exit__(kind, *rest)
        self._tunnel.close()

    def apply(self) -> str:
        """Apply the file, and return what kubectl prints."""
        return self.kubectl("apply", "--validate=strict", f"--filename={self.file}")

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl as the administrator; return what it prints."""
        command = [str(find_kubectl()), f"--kubeconfig={self.plane.kubeconfig()}", *arguments]
        answer = subprocess.run(command, capture_output=True, text=True)
        assert not answer.returncode, answer.stderr
        return answer.stdout

    def _made(self) -> dict[str, Object]:
        """Return one pod of each Deployment, once all are there: one of each is started."""
        deployments = self.plane.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments")
        replicas = {d["metadata"]["name"]: d["spec"]["replicas"] for d in deployments["items"]}
        assert sorted(replicas) == sorted(DEPLOYMENTS)
        watched = Watched(self.plane.api, PODS).start()
        try:
            watched.wait(lambda found: len(found) == sum(replicas.values()), TIMEOUT_S, "the pods")
        except TimeoutError as error:
            events = self.kubectl("get", "events", f"--namespace={NAMESPACE}")
            raise TimeoutError(f"{error}\n{events}") from None
        finally:
            watched.stop()
        return {pod["metadata"]["labels"][NAME]: pod for pod in watched.values()}

    def _wait_for_queues_and_gate(self) -> None:
        queues = Watched(self.plane.api, QUEUES).start()
        try:
            queues.wait(lambda _: is_gated(self.plane.api), TIMEOUT_S, "the gate")
            queues.wait(
                lambda found: all(
                    found.get(name, {}).get("status", {}).get("state") == "Open"
                    for name in ("root", "default")
                ),
                TIMEOUT_S,
                "the queues are open",
            )
        finally:
            queues.stop()

    def _resolve(self, address: str, port: int) -> int | None:
        """Return the port that stands for a Service's; that is kube-proxy's work."""
        for service in self.plane.api.get("/api/v1/services")["items"]:
            spec = service["spec"]
            if spec["clusterIP"] == address:
                pod = self.pods[spec["selector"][NAME]]
                return next(pod.port(p["targetPort"]) for p in spec["ports"] if p["port"] == port)
        return None
