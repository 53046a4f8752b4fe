"""
Pumice's own services as processes: the extender, the controllers and the webhooks.

Each runs as `python -m extender` and so on with this Python, as its own user, on ports that stay
the same across restarts.
"""

from __future__ import annotations

import http.client
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pumice.local.certs import client_authority
from pumice.local.controlplane import ControlPlane
from pumice.local.users import USERS

READY_TIMEOUT_S = 60.0


class Service:
    """One service of a control plane; a subclass says what it is called with."""

    name: ClassVar[str]
    user: ClassVar[str]

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.port = plane.ports.claim()
        #: how to trust it, where it talks TLS
        self.trust: ssl.SSLContext | None = None

    @property
    def address(self) -> str:
        """Where it listens, as `host:port`."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Where it listens, as a URL."""
        return f"{'https' if self.trust else 'http'}://{self.address}"

    def arguments(self) -> list[str]:
        """Return its command line but for the kubeconfig."""
        raise NotImplementedError

    def start(
        self,
        *extra: str,
        kubeconfig: Path | None = None,
        env: Mapping[str, str] = {},
        ready: bool = True,
    ) -> None:
        """
        Start it and wait until it is ready; one that runs already is stopped first.

        `kubeconfig` points it elsewhere than at the API server itself (a proxy), `extra` are
        further arguments. With `ready=False` it is only started.
        """
        processes = self._plane.processes
        if self.name in processes.names and processes.exit_code(self.name) is None:
            processes.stop(self.name)
        credentials = kubeconfig or self._plane.kubeconfig(self.user)
        argv = [sys.executable, "-m", self.name, f"--kubeconfig={credentials}"]
        processes.start(self.name, [*argv, *self.arguments(), *extra], env)
        if ready:
            self.wait_ready()

    def kill(self, number: int = 9) -> None:
        """Send it a signal."""
        self._plane.processes.kill(self.name, number)

    def restart(self, *, ready: bool = True) -> None:
        """Start it again as before, after ending it where it still runs."""
        self._plane.processes.restart(self.name)
        if ready:
            self.wait_ready()

    def stop(self) -> None:
        """End it in good order."""
        self._plane.processes.stop(self.name)

    def wait_ready(self) -> None:
        """Wait until /readyz says yes."""
        self._plane.processes.wait_ready(self.name, self.is_ready, READY_TIMEOUT_S)

    def is_ready(self) -> bool:
        """Tell whether /readyz says yes."""
        try:
            return self.get("/readyz")[0] == 200
        except OSError:
            return False

    def get(self, path: str) -> tuple[int, bytes]:
        """Return status and body of a GET."""
        connection = self._connection()
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self.trust is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=self.trust)


class Extender(Service):
    """
    The scheduler service; `configuration` is a file with actions, tiers and plugins.

    With `tls` it has a certificate of the cluster's authority, and an authority of its own for
    its clients: `client_tls` is what kube-scheduler needs to be one.
    """

    name = "extender"
    user = "pumice-extender"

    def __init__(
        self, plane: ControlPlane, configuration: Path | None = None, *, tls: bool = False
    ) -> None:
        super().__init__(plane)
        self.configuration = configuration
        self.client_tls: dict[str, str] = {}
        self._tls: list[str] = []
        if tls:
            self._make_certificates()

    def arguments(self) -> list[str]:
        """Return its command line but for the kubeconfig."""
        arguments = [f"--listen={self.address}", *self._tls]
        if self.configuration:
            arguments.append(f"--scheduler-conf={self.configuration}")
        return arguments

    def _make_certificates(self) -> None:
        plane = self._plane
        cert, key = plane.server_pair(self.name)
        clients, client = client_authority(self.name, USERS["kube-scheduler"].name, plane.certs)
        self._tls = [f"--tls-cert={cert}", f"--tls-key={key}", f"--client-ca={clients}"]
        self.trust = ssl.create_default_context(cafile=str(plane.authority))
        self.client_tls = {
            "caFile": str(plane.authority),
            "certFile": str(client[0]),
            "keyFile": str(client[1]),
        }


class Controllers(Service):
    """The controllers of Jobs, PodGroups, queues and HyperNodes."""

    name = "controllers"
    user = "pumice-controllers"

    def __init__(self, plane: ControlPlane, workers: int = 3) -> None:
        super().__init__(plane)
        self.workers = workers

    def arguments(self) -> list[str]:
        """Return its command line but for the kubeconfig; alone, it has nobody to wait for."""
        return [
            f"--healthz={self.address}",
            f"--workers={self.workers}",
            "--leader-elect=false",
        ]


class Webhooks(Service):
    """Defaults and validation; the API server finds them by URL, there being no Services here."""

    name = "webhooks"
    user = "pumice-webhooks"

    def __init__(self, plane: ControlPlane, gate: str = "auto") -> None:
        super().__init__(plane)
        self.gate = gate
        self.tls_port = plane.ports.claim()

    def arguments(self) -> list[str]:
        """Return its command line but for the kubeconfig."""
        listen = f"127.0.0.1:{self.tls_port}"
        return [
            f"--listen={listen}",
            f"--url=https://{listen}",
            f"--healthz={self.address}",
            f"--gate={self.gate}",
        ]
