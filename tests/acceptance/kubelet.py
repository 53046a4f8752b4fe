"""
Pods without containers: what a kubelet does to start one, with processes in their place.

Commands and arguments are those of the pod. What a container has to itself is given like this:

* files: whatever it mounts lies below a directory of its own, laid out as the kubelet does (see
  `tests.mounts`). Paths in its arguments are put below that directory;
* a network: each port of the pod is a free one of our loopback. Addresses in its arguments and in
  the ConfigMaps that it mounts are changed to those;
* an account: the token is one that the kubelet would ask for, bound to the pod. Where clients look
  for it is compiled into them: `tests.acceptance.mounted` moves the place for Python's, and
  kube-scheduler gets a kubeconfig that names the same files.
"""

from __future__ import annotations

import json
import re
import ssl
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from pumice.local.api import Object
from pumice.local.controlplane import ControlPlane
from tests.mounts import mount

ADDRESS = re.compile(r"(?<=[=/])(?:127\.0\.0\.1)?:(\d+)\b")
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
READY_TIMEOUT_S = 60.0
PROBE_TIMEOUT_S = 5.0


class Pod:
    """One pod of a control plane; each container runs under its name."""

    def __init__(self, plane: ControlPlane, body: Object) -> None:
        self.body = body
        self.containers: list[Object] = body["spec"]["containers"]
        self._plane = plane
        self._directory = plane.directory / "pods" / body["metadata"]["name"]
        self._ports: dict[int, int] = {}

    def start(self) -> None:
        """Start every container."""
        self.mount()
        server = urlsplit(self._plane.server)
        env = {"KUBERNETES_SERVICE_HOST": server.hostname, "KUBERNETES_SERVICE_PORT": server.port}
        for container in self.containers:
            told = {k: str(v) for k, v in env.items()} | self._told(container)
            self._plane.processes.start(container["name"], self._argv(container), told)

    def _told(self, container: Object) -> dict[str, str]:
        """Return the variables that a container has of the fields of its pod."""
        fields = {"metadata.namespace": self.body["metadata"]["namespace"]}
        return {
            variable["name"]: fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
            for variable in container.get("env", ())
        }

    def mount(self) -> None:
        """Write what the containers mount, as it is now; what is there already is exchanged."""
        for container in self.containers:
            for place in container.get("volumeMounts", ()):
                directory = self._root(container) / place["mountPath"].lstrip("/")
                mount(directory, self._files(place["name"], container))

    def stop(self) -> None:
        """End every container in good order."""
        for container in self.containers:
            self._plane.processes.stop(container["name"])

    def wait_ready(self) -> None:
        """Wait until every container is ready, as its probe has it."""
        for container in self.containers:
            self._plane.processes.wait_ready(
                container["name"],
                partial(self.answers, container, "readinessProbe"),
                READY_TIMEOUT_S,
            )

    def answers(self, container: Object, probe: str) -> bool:
        """Tell whether a probe succeeds."""
        get = container[probe]["httpGet"]
        try:
            self.get(get["port"], get["path"], get.get("scheme", "HTTP"))
        except OSError:
            return False
        return True

    def get(
        self,
        port: int | str,
        path: str,
        scheme: str = "HTTP",
        client: tuple[Path, Path] | None = None,
    ) -> str:
        """
        Return the answer of a GET, sent as kubelets do; raise OSError where it is an error.

        `client` are the files of a client's certificate and key.
        """
        tls = ssl.create_default_context()
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
        if client:
            tls.load_cert_chain(*client)
        url = f"{scheme.lower()}://127.0.0.1:{self.port(port)}{path}"
        with urllib.request.urlopen(url, timeout=PROBE_TIMEOUT_S, context=tls) as answer:
            content: bytes = answer.read()
        return content.decode()

    def port(self, port: int | str) -> int:
        """Return the port of our loopback that stands for one of the pod's, by number or name."""
        number = port if isinstance(port, int) else self._number(port)
        if number not in self._ports:
            self._ports[number] = self._plane.ports.claim()
        return self._ports[number]

    def _number(self, name: str) -> int:
        named = (p for c in self.containers for p in c.get("ports", ()))
        number: int = next(p["containerPort"] for p in named if p.get("name") == name)
        return number

    def _root(self, container: Object) -> Path:
        path: Path = self._directory / container["name"]
        return path

    def _argv(self, container: Object) -> list[str]:
        root = self._root(container)
        match [self._moved(a, container) for a in (*container["command"], *container["args"])]:
            case ["python", "-m", module, *arguments]:
                runner = [sys.executable, "-m", "tests.acceptance.mounted"]
                return [*runner, str(root), module, *arguments]
            case ["kube-scheduler" as name, *arguments]:
                account = self._kubeconfig(container)
                return [
                    str(self._plane.binary(name)),
                    *arguments,
                    "--bind-address=127.0.0.1",
                    f"--secure-port={self.port(10259)}",
                    f"--authentication-kubeconfig={account}",
                    f"--authorization-kubeconfig={account}",
                ]
            case other:
                raise AssertionError(f"nobody knows how to run {other}")

    def _moved(self, argument: str, container: Object) -> str:
        """Return an argument with paths and addresses as they are here."""
        for place in container.get("volumeMounts", ()):
            path = place["mountPath"]
            argument = argument.replace(f"={path}/", f"={self._root(container)}{path}/")
        return self._readdressed(argument)

    def _readdressed(self, text: str) -> str:
        return ADDRESS.sub(lambda found: f"127.0.0.1:{self.port(int(found[1]))}", text)

    def _files(self, volume: str, container: Object) -> Mapping[str, str]:
        """Return what a volume holds."""
        source = next(v for v in self.body["spec"]["volumes"] if v["name"] == volume)
        if "configMap" in source:
            files = self._config_map(source["configMap"]["name"])
            account = json.dumps(str(self._kubeconfig(container)))
            return {
                name: self._readdressed(text).replace('kubeconfig: ""', f"kubeconfig: {account}")
                for name, text in files.items()
            }
        if "projected" in source:
            return dict(self._projected(source["projected"]["sources"]))
        assert "emptyDir" in source, source
        return {}

    def _projected(self, sources: list[Object]) -> Iterator[tuple[str, str]]:
        for source in sources:
            match source:
                case {"serviceAccountToken": wanted}:
                    yield wanted["path"], self._token(wanted["expirationSeconds"])
                case {"configMap": {"name": name, "items": items}}:
                    data = self._config_map(name)
                    yield from ((item["path"], data[item["key"]]) for item in items)
                case {"downwardAPI": {"items": [{"path": path}]}}:
                    yield path, self.body["metadata"]["namespace"]

    def _config_map(self, name: str) -> dict[str, str]:
        data: dict[str, str] = self._plane.api.get(self._path("configmaps", name))["data"]
        return data

    def _token(self, seconds: int) -> str:
        meta = self.body["metadata"]
        pod = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds, "boundObjectRef": pod},
        }
        account = self._path("serviceaccounts", self.body["spec"]["serviceAccountName"])
        token: str = self._plane.api.post(f"{account}/token", request)["status"]["token"]
        return token

    def _path(self, kind: str, name: str) -> str:
        return f"/api/v1/namespaces/{self.body['metadata']['namespace']}/{kind}/{name}"

    def _kubeconfig(self, container: Object) -> Path:
        """Write a kubeconfig that says what a client in a pod knows by itself."""
        root = self._root(container)
        cluster = {
            "server": self._plane.server,
            "certificate-authority": f"{root}{ACCOUNT}/ca.crt",
        }
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "pod",
            "contexts": [{"name": "pod", "context": {"cluster": "pod", "user": "pod"}}],
            "clusters": [{"name": "pod", "cluster": cluster}],
            "users": [{"name": "pod", "user": {"tokenFile": f"{root}{ACCOUNT}/token"}}],
        }
        root.mkdir(parents=True, exist_ok=True)
        file = root / "account.kubeconfig"
        file.write_text(json.dumps(content))
        return file
