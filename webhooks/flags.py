"""The command line of the webhooks: our flags, and those of Volcano's webhook manager."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from pumice.core import names
from pumice.core.admission.queues import Rules
from pumice.core.jobs import durations
from webhooks.files import CertificateFiles
from webhooks.register import Endpoint
from webhooks.reviews import Options
from webhooks.service import GRACE_S, Settings
from webhooks.table import webhooks

COMPONENT: Final = "pumice-webhooks"
_MAX_PORT: Final = 65535
_QUEUE_GATE: Final = "SchedulingGatesQueueAdmission"
_FILES: Final = {
    "--tls-cert-file": "the certificate",
    "--tls-private-key-file": "its key",
    "--ca-cert-file": "its authority",
}
# What means nothing here: requests to the API server are few, and logs are written as they come.
_ACCEPTED: Final = (
    "--kube-api-qps",
    "--kube-api-burst",
    "--log-flush-frequency",
    "--logtostderr",
    "--enable-healthz",
    "-v",
)


def arguments(argv: Sequence[str] | None, about: str | None) -> argparse.Namespace:
    """Parse the command line; `about` is what its help begins with."""
    parser = argparse.ArgumentParser(prog="webhooks", description=about, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"pumice {version('pumice')}")
    _add_places(parser)
    _add_certificate(parser)
    _add_choices(parser)
    parser.add_argument("--log-level", default="info")
    for flag in _ACCEPTED:
        parser.add_argument(flag, nargs="?", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if len({path is None for path in _certificate_files(args)}) > 1:
        parser.error(f"give all of {', '.join(_FILES)}, or none")
    return args


def _add_places(parser: argparse.ArgumentParser) -> None:
    """Add where we listen, and who finds us there."""
    add = parser.add_argument
    add("--kubeconfig", help="credentials; in a cluster the ServiceAccount's")
    add("--master", help="address of the API server, instead of the one in the kubeconfig")
    add("--listen", default="0.0.0.0:8443", help="address of the webhooks, TLS")
    add("--listen-address", help="the same without the port")
    add("--port", type=_port, help="the same without the address")
    add(
        "--namespace",
        "--webhook-namespace",
        default=names.NAMESPACE,
        help="where Service and Secret are",
    )
    add(
        "--service",
        "--webhook-service-name",
        default=COMPONENT,
        help="the Service in front, port 443",
    )
    add(
        "--url",
        "--webhook-url",
        default="",
        help="where the API server finds us, instead of the Service",
    )
    add(
        "--healthz",
        "--healthz-address",
        default="127.0.0.1:11252",
        help="address of /healthz, /readyz and /metrics",
    )
    add(
        "--graceful-shutdown-time",
        type=_seconds,
        default=GRACE_S,
        help="how long what was asked already may take at the end",
    )


def _add_certificate(parser: argparse.ArgumentParser) -> None:
    """Add where the certificate comes from."""
    parser.add_argument(
        "--secret", default=f"{COMPONENT}-tls", help="keeps the certificate that is made here"
    )
    for flag, what in _FILES.items():
        parser.add_argument(
            flag, type=Path, help=f"{what}, where others make it; all three or none"
        )


def _add_choices(parser: argparse.ArgumentParser) -> None:
    """Add what is served, and by which rules."""
    add = parser.add_argument
    add(
        "--enabled-admission",
        type=_paths,
        help="the paths that are served, with commas between them (default: all)",
    )
    add(
        "--scheduler-name",
        action="append",
        help="scheduler name to serve, repeatable; new Jobs get the first"
        f" (default: {names.DEFAULT_SCHEDULER})",
    )
    add("--admission-conf", type=Path, help="resource groups of pods; read again when it changes")
    add(
        "--feature-gates",
        type=_gates,
        default={},
        help=f"{_QUEUE_GATE}=true puts Volcano's queue gate on pods that ask for it",
    )
    add(
        "--gate",
        choices=("auto", "on", "off"),
        default="auto",
        help="put the gate on pods; auto: where the admission policy is not there",
    )
    add(
        "--marker",
        action="store_true",
        help="where the gate is put on pods, mark them too: kube-scheduler is shared",
    )
    add("--max-queue-depth", type=int, default=5, help="how deep a tree of queues may be")
    for flag, default, what in (
        ("--enable-root-queue-protection", True, "root's amounts may not be changed"),
        (
            "--enable-queue-allocated-pods-check",
            False,
            "a queue that pods hold something of may not be deleted",
        ),
    ):
        add(flag, nargs="?", type=_bool, const=True, default=default, help=what)


def _certificate_files(args: argparse.Namespace) -> list[Path | None]:
    return [getattr(args, flag.removeprefix("--").replace("-", "_")) for flag in _FILES]


def _port(text: str) -> int:
    if not (text.isdigit() and 1 <= int(text) <= _MAX_PORT):
        raise argparse.ArgumentTypeError("the port should be in the range of 1 and 65535")
    return int(text)


def _seconds(text: str) -> int:
    length = durations.seconds(text)
    if length is None:
        raise argparse.ArgumentTypeError(f"{text} is no duration, such as 30s")
    return max(int(length), 0)


def _bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text} is neither true nor false")
    return text.lower() == "true"


def _paths(text: str) -> frozenset[str]:
    given = {path.strip() for path in text.split(",")} - {""}
    known = {webhook.path for webhook in webhooks(())}
    for path in sorted(given - known):
        reason = f"enabled admission {path} not found on the admission registered map"
        raise argparse.ArgumentTypeError(reason)
    return frozenset(given)


def _gates(text: str) -> dict[str, bool]:
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return {name.strip(): _bool(value.strip()) for name, _, value in pairs}


def settings(args: argparse.Namespace) -> Settings:
    """Return what the command line says."""
    host, _, port = args.listen.rpartition(":")
    rules = Rules(
        max_depth=args.max_queue_depth,
        protects_root=args.enable_root_queue_protection,
        keeps_allocated=args.enable_queue_allocated_pods_check,
    )
    options = Options(
        tuple(args.scheduler_name or [names.DEFAULT_SCHEDULER]),
        rules,
        marker=args.marker,
        queue_gate=args.feature_gates.get(_QUEUE_GATE, False),
    )
    files = [path for path in _certificate_files(args) if path]
    return Settings(
        host=host if args.listen_address is None else args.listen_address,
        port=args.port or int(port),
        endpoint=Endpoint(args.namespace, args.service, args.url),
        secret=args.secret,
        options=options,
        gate=args.gate,
        paths=args.enabled_admission,
        certificate=CertificateFiles(*files) if files else None,
        groups=args.admission_conf,
        grace_s=args.graceful_shutdown_time,
    )
