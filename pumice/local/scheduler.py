"""
Start kube-schedulers.

Pumice's own is configured as in `manifests/scheduler-config.yaml`, one that is shared with all
other pods as in `manifests/shared/scheduler-config.yaml`. The stock one is what a cluster has
anyway: for comparison, and for pods that are none of ours.
"""

from __future__ import annotations

import signal
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from pumice.local.controlplane import ControlPlane
from pumice.local.paths import manifests
from pumice.local.services import Extender

PUMICE = "kube-scheduler"
STOCK = "stock-scheduler"
READY_TIMEOUT_S = 30.0


def pumice_config(kubeconfig: Path, extender_url: str) -> dict[str, Any]:
    """Return the published configuration with this machine's kubeconfig and extender in it."""
    config: dict[str, Any] = yaml.safe_load((manifests() / "scheduler-config.yaml").read_text())
    config["clientConnection"]["kubeconfig"] = str(kubeconfig)
    config["extenders"][0]["urlPrefix"] = extender_url
    return config


def shared_config(
    kubeconfig: Path, extender_url: str, client_tls: Mapping[str, str]
) -> dict[str, Any]:
    """Return the published configuration of a shared one, for this machine; see `pumice_config`."""
    file = manifests() / "shared" / "scheduler-config.yaml"
    config: dict[str, Any] = yaml.safe_load(file.read_text())
    config["leaderElection"] = {"leaderElect": False}
    config["clientConnection"]["kubeconfig"] = str(kubeconfig)
    for extender in config["extenders"]:
        extender["urlPrefix"] = extender_url
        extender["tlsConfig"] = dict(client_tls)
    return config


def stock_config(kubeconfig: Path, scheduler_name: str = "default-scheduler") -> dict[str, Any]:
    """Return a plain configuration but for the client limits, to compare like with like."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 2000},
        "profiles": [{"schedulerName": scheduler_name}],
    }


class Scheduler:
    """A kube-scheduler process of a control plane."""

    def __init__(self, plane: ControlPlane, name: str) -> None:
        self.name = name
        self._plane = plane
        self._port = plane.ports.claim()
        # The serving certificate is self-signed, as kube-scheduler makes it.
        self._tls = ssl.create_default_context()
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE
        self._tls.load_cert_chain(*plane.pair("admin").write(plane.certs, "scheduler-client"))

    def start(self, config: Mapping[str, Any], *, verbosity: int = 2) -> None:
        """Start it with a configuration and wait until it is ready."""
        path = self._plane.directory / f"{self.name}.yaml"
        path.write_text(yaml.safe_dump(dict(config), sort_keys=False))
        kubeconfig = config["clientConnection"]["kubeconfig"]
        self._plane.processes.start(
            self.name,
            [
                self._plane.binary("kube-scheduler"),
                f"--config={path}",
                "--bind-address=127.0.0.1",
                f"--secure-port={self._port}",
                f"--cert-dir={self._plane.certs / self.name}",
                f"--authorization-kubeconfig={kubeconfig}",
                f"--client-ca-file={self._plane.authority}",
                # Metrics are for holders of a client certificate; nobody comes with a token.
                "--authentication-skip-lookup=true",
                f"--v={verbosity}",
            ],
        )
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until it answers its readiness check, which includes synced caches."""
        self._plane.processes.wait_ready(self.name, self._is_ready, READY_TIMEOUT_S)

    def metrics(self) -> str:
        """Return its metrics in the text format."""
        return self._get("/metrics")

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of all series of a metric that carry the labels."""
        return metric_sum(self.metrics(), name, **labels)

    def dump_cache(self) -> None:
        """Make it write its cache and queue into its log (SIGUSR2)."""
        self._plane.processes.kill(self.name, signal.SIGUSR2)

    def _is_ready(self) -> bool:
        try:
            return self._get("/readyz") == "ok"
        except (OSError, urllib.error.URLError):
            return False

    def _get(self, path: str) -> str:
        url = f"https://127.0.0.1:{self._port}{path}"
        with urllib.request.urlopen(url, timeout=10, context=self._tls) as answer:
            content: bytes = answer.read()
        return content.decode()


def metric_sum(text: str, name: str, **labels: str) -> float:
    """Add up the series of one metric in Prometheus' text format that carry the labels."""
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    total = 0.0
    for line in text.splitlines():
        series, _, value = line.rpartition(" ")
        metric, _, rest = series.partition("{")
        if metric == name and all(label in rest for label in wanted):
            total += float(value)
    return total


def start_pumice_scheduler(
    plane: ControlPlane, extender_url: str, *, user: str = "pumice-scheduler"
) -> Scheduler:
    """Start Pumice's kube-scheduler, which binds through the extender."""
    scheduler = Scheduler(plane, PUMICE)
    scheduler.start(pumice_config(plane.kubeconfig(user), extender_url))
    return scheduler


def start_shared_scheduler(plane: ControlPlane, extender: Extender) -> Scheduler:
    """Start the one kube-scheduler of all pods, which binds ours through the extender."""
    scheduler = Scheduler(plane, PUMICE)
    kubeconfig = plane.kubeconfig("kube-scheduler")
    scheduler.start(shared_config(kubeconfig, extender.url, extender.client_tls))
    return scheduler


def start_stock_scheduler(
    plane: ControlPlane, *, name: str = STOCK, scheduler_name: str = "default-scheduler"
) -> Scheduler:
    """Start a plain kube-scheduler."""
    scheduler = Scheduler(plane, name)
    scheduler.start(stock_config(plane.kubeconfig("kube-scheduler"), scheduler_name))
    return scheduler
