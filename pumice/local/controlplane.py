"""
The control plane: etcd, kube-apiserver, kube-controller-manager and KWOK's fake kubelets.

    with ControlPlane() as plane:
        add_nodes(plane.api, 20)
        start_stock_scheduler(plane)
        print(plane.kubeconfig())

Everything listens on loopback, every connection is TLS with client certificates, and several
control planes run side by side. Schedulers are started apart (`scheduler`), as is what Pumice adds
(`services`). What is switched off, and why, stands beside each argument.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Self

from pumice.local import audit, kwok
from pumice.local.api import Api
from pumice.local.audit import AuditLevel
from pumice.local.build import binaries
from pumice.local.certs import Authority, Pair, signing_keys
from pumice.local.errors import ApiError
from pumice.local.ports import Ports
from pumice.local.processes import Processes
from pumice.local.users import USERS, render, write_tokens

API_SERVER = "kube-apiserver"
READY_TIMEOUT_S = 60.0
# On one machine CPU is scarce and memory is not, so garbage is collected less often.
GO_ENVIRONMENT = {"GOGC": "300"}
# Only mkdtemp writes there.
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108
SHARED_MEMORY_NEEDED = 2 << 30
SERVICE_RANGE = "10.96.0.0/16"
HOSTS = ("127.0.0.1", "localhost", "10.96.0.1", "kubernetes.default.svc")


class ControlPlane:
    """One control plane, from `start` to `stop`; a context manager."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        audit_level: AuditLevel | None = None,
        binary_directory: Path | None = None,
    ) -> None:
        """Prepare it; without a directory, a temporary one is made and removed at the end."""
        self._owns_directory = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="pumice-"))
        self.audit_level = audit_level
        #: further arguments of kube-apiserver, read when it is started
        self.api_server_arguments: list[str] = []
        self.audit_log = self.directory / "audit.jsonl"
        self.ports = Ports()
        self.server = f"https://127.0.0.1:{self.ports.claim()}"
        self._binaries = binary_directory
        self._authority = Authority()
        self._pairs: dict[str, Pair] = {}
        self._apis: dict[str, Api] = {}
        self._data = Path(tempfile.mkdtemp(prefix="pumice-etcd-", dir=_fast_directory()))
        for part in ("logs", "certs", "kubeconfigs"):
            (self.directory / part).mkdir(parents=True, exist_ok=True)
        self.processes = Processes(
            self.directory / "logs", scratch=self._data, defaults=GO_ENVIRONMENT
        )
        self.api = self.api_as("admin")
        self._token_file, self._tokens = write_tokens(self.certs)

    def start(self) -> Self:
        """Start every component and wait until each is ready; about three seconds."""
        try:
            self._start_etcd()
            self._start_api_server()
            self._start_controller_manager()
            self._start_kwok()
        except BaseException:
            self.stop(keep=True)
            raise
        return self

    def stop(self, *, keep: bool = False) -> None:
        """Kill everything; the directory with the logs goes too unless it is to be kept."""
        for api in self._apis.values():
            api.close()
        self.processes.close()
        self.ports.close()
        shutil.rmtree(self._data, ignore_errors=True)
        if self._owns_directory and not keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def restart_api_server(self) -> None:
        """Start the API server again, ending it first where it runs, and wait until it is ready."""
        self.processes.restart("kube-apiserver")
        self._wait_for_api_server()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            print(f"The logs are kept in {self.directory / 'logs'}", file=sys.stderr)
        self.stop(keep=kind is not None)

    def wait_ready(self) -> None:
        """Wait until kube-apiserver is ready, at the start or after a restart."""
        self.processes.wait_ready(API_SERVER, self._is_ready, READY_TIMEOUT_S)

    def kubeconfig(self, user: str = "admin", *, server: str | None = None) -> Path:
        """Return the kubeconfig of a user; with `server`, one that goes there (a proxy)."""
        suffix = "" if server is None else "-" + server.rpartition(":")[2]
        path = self.directory / "kubeconfigs" / f"{user}{suffix}.yaml"
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(
                render(server or self.server, self._authority.cert, user, self._credentials(user))
            )
        return path

    def _credentials(self, user: str) -> Pair | str:
        return self._tokens[user] if user in self._tokens else self.pair(user)

    def pair(self, user: str) -> Pair:
        """Return the client certificate of a user."""
        if user not in self._pairs:
            self._pairs[user] = self._authority.client(USERS[user].name, USERS[user].groups)
        return self._pairs[user]

    def server_pair(self, name: str) -> tuple[Path, Path]:
        """Write a serving certificate for loopback; return the paths of (cert, key)."""
        return self._authority.server(name, HOSTS).write(self.certs, name)

    def api_as(self, user: str) -> Api:
        """Return a client that acts as the user; it is closed with the control plane."""
        if user not in self._apis:
            pair = self.pair(user)
            self._apis[user] = Api(self.server, self._authority.cert, pair, self.certs)
        return self._apis[user]

    def binary(self, name: str) -> Path:
        """Return the path of one of the built programs."""
        if self._binaries is None:
            self._binaries = binaries()
        return self._binaries / name

    @property
    def certs(self) -> Path:
        """The directory of certificates and keys."""
        return self.directory / "certs"

    @property
    def authority(self) -> Path:
        """The certificate of the cluster's authority, as a file."""
        path = self.certs / "ca.crt"
        if not path.exists():
            path.write_bytes(self._authority.cert)
        return path

    def _start_etcd(self) -> None:
        client, peer = (f"https://127.0.0.1:{self.ports.claim()}" for _ in range(2))
        cert, key = self.server_pair("etcd")
        self._etcd = client
        self.processes.start(
            "etcd",
            [
                self.binary("etcd"),
                f"--data-dir={self._data}/etcd",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                f"--cert-file={cert}",
                f"--key-file={key}",
                "--client-cert-auth",
                f"--trusted-ca-file={self.authority}",
                f"--peer-cert-file={cert}",
                f"--peer-key-file={key}",
                "--peer-client-cert-auth",
                f"--peer-trusted-ca-file={self.authority}",
                "--unsafe-no-fsync",  # the data lives no longer than the process
                "--quota-backend-bytes=4294967296",
                "--auto-compaction-mode=periodic",
                "--auto-compaction-retention=5m",
                "--log-level=warn",
            ],
        )

    def _start_api_server(self) -> None:
        port = self.server.rpartition(":")[2]
        serving = self.server_pair("kube-apiserver")
        client = self._authority.client("kube-apiserver").write(self.certs, "etcd-client")
        private, public = signing_keys(self.certs)
        arguments: list[str | Path] = [
            self.binary("kube-apiserver"),
            f"--etcd-servers={self._etcd}",
            f"--etcd-cafile={self.authority}",
            f"--etcd-certfile={client[0]}",
            f"--etcd-keyfile={client[1]}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={serving[0]}",
            f"--tls-private-key-file={serving[1]}",
            f"--client-ca-file={self.authority}",
            f"--token-auth-file={self._token_file}",
            f"--cert-dir={self.certs}",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            f"--service-account-key-file={public}",
            f"--service-account-signing-key-file={private}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--authorization-mode=RBAC",
            "--anonymous-auth=false",
            "--allow-privileged=true",
            # A loopback address cannot be an endpoint of Service `kubernetes`.
            "--endpoint-reconciler-type=none",
            # Nodes are created Ready; no taint for a kubelet that will never report.
            "--disable-admission-plugins=TaintNodesByCondition",
            # One trusted user on one machine: limits would only distort measurements.
            "--enable-priority-and-fairness=false",
            "--max-requests-inflight=4000",
            "--max-mutating-requests-inflight=4000",
            # One by one, clearing thousands of pods would take minutes.
            "--delete-collection-workers=16",
            "--request-timeout=5m",
            *self.api_server_arguments,
        ]
        if self.audit_level is not None:
            arguments += audit.arguments(self.audit_level, self.directory, self.audit_log)
        self.processes.start(API_SERVER, arguments)
        self.wait_ready()

    def _start_controller_manager(self) -> None:
        self.processes.start(
            "kube-controller-manager",
            [
                self.binary("kube-controller-manager"),
                f"--kubeconfig={self.kubeconfig('kube-controller-manager')}",
                # Each controller writes as a ServiceAccount of its own, as on a real cluster.
                "--use-service-account-credentials=true",
                f"--service-account-private-key-file={self.certs / 'service-accounts.key'}",
                f"--root-ca-file={self.authority}",
                "--leader-elect=false",
                "--secure-port=0",
                "--kube-api-qps=1000",
                "--kube-api-burst=2000",
                # Fake kubelets renew no leases: a hundred writes a second for nothing.
                "--node-monitor-grace-period=24h",
                "--concurrent-gc-syncs=10",
            ],
        )

    def _start_kwok(self) -> None:
        config = kwok.write_config(self.directory / "kwok.yaml")
        self.processes.start(
            "kwok",
            [
                self.binary("kwok"),
                f"--kubeconfig={self.kubeconfig('kubelet')}",
                f"--config={config}",
            ],
            # KWOK also reads a configuration from the home directory; the user's is not ours.
            {"HOME": str(self.directory)} | kwok.ENVIRONMENT,
        )

    def _wait_for_api_server(self) -> None:
        self.processes.wait_ready("kube-apiserver", self._is_ready, READY_TIMEOUT_S)

    def _is_ready(self) -> bool:
        try:
            return self.api.text("/readyz") == "ok"
        except (OSError, ApiError):
            return False


def _fast_directory() -> str | None:
    """Return a directory in memory when there is one with room; etcd writes much and small."""
    try:
        room = os.statvfs(SHARED_MEMORY)
    except OSError:
        return None
    fits = room.f_bavail * room.f_frsize >= SHARED_MEMORY_NEEDED
    return str(SHARED_MEMORY) if fits and os.access(SHARED_MEMORY, os.W_OK) else None
