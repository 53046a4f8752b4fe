"""The command line of the controllers: our flags, and those of Volcano's controller manager."""

from __future__ import annotations

import argparse
import os
import socket
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Final

from pumice.core import names
from pumice.core.jobs import durations
from pumice.kube.lease import Terms

COMPONENT: Final = "pumice-controllers"
CONTROLLERS: Final = (
    "colocation-config-controller",
    "cronjob-controller",
    "gc-controller",
    "hyperNode-controller",
    "job-controller",
    "jobflow-controller",
    "jobtemplate-controller",
    "pg-controller",
    "queue-controller",
    "sharding-controller",
)
"""All names that `--controllers` takes, those of controllers that we do not have included."""
# What means nothing here: requests are few, logs are written as they come, health is always told.
_ACCEPTED: Final = (
    "--kube-api-qps",
    "--kube-api-burst",
    "--log-flush-frequency",
    "--logtostderr",
    "--enable-healthz",
    "--feature-gates",
    "--leader-elect-resource-lock",
    "-v",
)


@dataclass(frozen=True, slots=True)
class Workers:
    """How many keys each controller works on at a time."""

    jobs: int = 3
    cron_jobs: int = 3
    pod_groups: int = 5
    queues: int = 5
    garbage: int = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """What the controllers are told about their work."""

    scheduler_names: Sequence[str] = (names.DEFAULT_SCHEDULER,)
    #: entries of `--controllers`
    controllers: Sequence[str] = ("*",)
    workers: Workers = field(default_factory=Workers)
    #: how often something that is refused is tried again; negative is for ever
    max_requeues: int = 15
    inherits: bool = True
    #: namespace and name of the ConfigMap with the configuration of discovery
    configuration: tuple[str, str] = (names.NAMESPACE, "volcano-controller-configmap")

    def runs(self, controller: str) -> bool:
        """Tell whether a controller is to run: the first entry that names it decides."""
        for entry in self.controllers:
            if entry.lstrip("+-") == controller:
                return not entry.startswith("-")
        return not self.controllers or "*" in self.controllers


def arguments(argv: Sequence[str] | None = None, about: str | None = None) -> argparse.Namespace:
    """Parse the command line; `about` is what its help begins with."""
    parser = argparse.ArgumentParser(prog="controllers", description=about, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"pumice {version('pumice')}")
    _add_places(parser)
    _add_work(parser)
    _add_election(parser)
    parser.add_argument("--log-level", default="info")
    for flag in _ACCEPTED:
        parser.add_argument(flag, nargs="?", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    try:
        terms(args)
    except ValueError as error:
        parser.error(str(error))
    return args


def _add_places(parser: argparse.ArgumentParser) -> None:
    """Add where the API server is, and where we are found."""
    add = parser.add_argument
    add("--kubeconfig", help="credentials; in a cluster the ServiceAccount's")
    add("--master", help="address of the API server, instead of the one in the kubeconfig")
    add(
        "--healthz",
        "--healthz-address",
        default="127.0.0.1:11251",
        help="address of /healthz, /readyz and /metrics",
    )
    _add_switch(parser, "--enable-metrics", False, "serve /metrics on --listen-address, too")
    add("--listen-address", default=":8081", help="see --enable-metrics")


def _add_work(parser: argparse.ArgumentParser) -> None:
    """Add what is done, and how much at a time."""
    add = parser.add_argument
    add(
        "--controllers",
        type=_controllers,
        default=("*",),
        help="names with commas between: * for all, -NAME for all but one (default: *); "
        + ", ".join(CONTROLLERS),
    )
    add(
        "--scheduler-name",
        action="append",
        help=f"scheduler name to serve, repeatable (default: {names.DEFAULT_SCHEDULER})",
    )
    workers = Workers()
    for flags, default, what in (
        (("--worker-threads", "--workers"), workers.jobs, "Jobs"),
        (("--worker-threads-for-cronjob",), workers.cron_jobs, "CronJobs"),
        (("--worker-threads-for-podgroup",), workers.pod_groups, "PodGroups"),
        (("--worker-threads-for-queue",), workers.queues, "queues"),
        (("--worker-threads-for-gc",), workers.garbage, "finished Jobs"),
    ):
        add(*flags, type=_positive, default=default, help=f"{what} worked on at a time")
    add(
        "--max-requeue-num",
        type=int,
        default=15,
        help="how often what is refused is tried again; negative is for ever",
    )
    _add_switch(
        parser,
        "--inherit-owner-annotations",
        True,
        "PodGroups get annotations of the workload that their pods belong to",
    )


def _add_election(parser: argparse.ArgumentParser) -> None:
    """Add how one of several replicas is chosen."""
    add = parser.add_argument
    _add_switch(parser, "--leader-elect", True, "work only while holding a Lease")
    for part, default, what in (
        ("lease-duration", 15.0, "that others wait for a leader that is gone"),
        ("renew-deadline", 10.0, "without renewal until a leader gives up"),
        ("retry-period", 2.0, "between two renewals; others look at the lease more often"),
    ):
        add(f"--leader-elect-{part}", type=_seconds, default=default, help=f"time {what}")
    add("--leader-elect-resource-name", default=COMPONENT, help="name of the Lease")
    add("--leader-elect-resource-namespace", default=None, help="its namespace (default: ours)")
    add("--lock-object-namespace", default=None, help=argparse.SUPPRESS)


def terms(args: argparse.Namespace) -> Terms:
    """Return the terms of the election; raise ValueError where they make no sense."""
    return Terms(
        args.lock_object_namespace or args.leader_elect_resource_namespace or namespace(),
        args.leader_elect_resource_name,
        duration_s=args.leader_elect_lease_duration,
        deadline_s=args.leader_elect_renew_deadline,
        retry_s=args.leader_elect_retry_period,
    )


def settings(args: argparse.Namespace) -> Settings:
    """Return what the command line says of the work."""
    release = os.environ.get("HELM_RELEASE_NAME") or "volcano"
    return Settings(
        scheduler_names=tuple(args.scheduler_name or [names.DEFAULT_SCHEDULER]),
        controllers=args.controllers,
        workers=Workers(
            jobs=args.worker_threads,
            cron_jobs=args.worker_threads_for_cronjob,
            pod_groups=args.worker_threads_for_podgroup,
            queues=args.worker_threads_for_queue,
            garbage=args.worker_threads_for_gc,
        ),
        max_requeues=args.max_requeue_num,
        inherits=args.inherit_owner_annotations,
        configuration=(namespace(), f"{release}-controller-configmap"),
    )


def namespace() -> str:
    """Return the namespace that we run in, as the pod is told."""
    return os.environ.get("KUBE_POD_NAMESPACE") or names.NAMESPACE


def identity() -> str:
    """Return a name for this replica that no other ever has."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def _add_switch(parser: argparse.ArgumentParser, flag: str, default: bool, what: str) -> None:
    """Add a flag that may stand alone, for true."""
    parser.add_argument(flag, nargs="?", type=_bool, const=True, default=default, help=what)


def _bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text} is neither true nor false")
    return text.lower() == "true"


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return int(text)


def _seconds(text: str) -> float:
    length = durations.seconds(text)
    if length is None:
        raise argparse.ArgumentTypeError(f"{text} is no duration, such as 15s")
    return length


def _controllers(text: str) -> tuple[str, ...]:
    entries = tuple(entry.strip() for entry in text.split(",") if entry.strip())
    seen: dict[str, str] = {}
    for entry in entries:
        name = entry.lstrip("+-")
        if name != "*" and name not in CONTROLLERS:
            raise argparse.ArgumentTypeError(f"there is no controller {name}")
        if name in seen:
            reason = f"controllers option {entry} cannot have both '-' and '+' prefixes"
            raise argparse.ArgumentTypeError(reason)
        seen[name] = entry
    return entries
