"""The command line: our flags, and Volcano's."""

from __future__ import annotations

from pathlib import Path

import pytest

from webhooks.files import CertificateFiles
from webhooks.flags import settings
from webhooks.main import arguments, main
from webhooks.register import Endpoint
from webhooks.table import webhooks

VOLCANOS = [
    "--master=https://api:6443",
    "--enabled-admission=/jobs/mutate, /jobs/validate,,/pods/mutate",
    "--tls-cert-file=/certificates/tls.crt",
    "--tls-private-key-file=/certificates/tls.key",
    "--ca-cert-file=/certificates/ca.crt",
    "--admission-conf=/configmap/volcano-admission.conf",
    "--webhook-namespace=volcano-system",
    "--webhook-service-name=volcano-admission-service",
    "--enable-healthz=true",
    "--healthz-address=:11251",
    "--logtostderr",
    "--port=8443",
    "-v=4",
    "--kube-api-qps=50",
    "--kube-api-burst=100",
    "--graceful-shutdown-time=1m",
    "--feature-gates=SchedulingGatesQueueAdmission=true,Other=false",
    "--scheduler-name=volcano",
    "--scheduler-name=mine",
    "--enable-queue-allocated-pods-check=true",
    "--enable-root-queue-protection=false",
    "--max-queue-depth=3",
]


def test_volcanos_flags_are_understood() -> None:
    args = arguments(VOLCANOS)
    got = settings(args)
    assert (args.master, args.healthz) == ("https://api:6443", ":11251")
    assert (got.host, got.port) == ("0.0.0.0", 8443)
    assert got.paths == frozenset({"/jobs/mutate", "/jobs/validate", "/pods/mutate"})
    assert got.certificate == CertificateFiles(
        *(Path("/certificates") / name for name in ("tls.crt", "tls.key", "ca.crt"))
    )
    assert got.groups == Path("/configmap/volcano-admission.conf")
    assert got.endpoint == Endpoint("volcano-system", "volcano-admission-service")
    assert got.grace_s == 60
    assert got.options.queue_gate
    assert got.options.scheduler_names == ("volcano", "mine")
    rules = got.options.queue_rules
    assert (rules.max_depth, rules.protects_root, rules.keeps_allocated) == (3, False, True)


def test_without_flags_everything_is_served_with_a_certificate_of_our_own() -> None:
    got = settings(arguments([]))
    assert (got.host, got.port) == ("0.0.0.0", 8443)
    assert (got.paths, got.certificate, got.groups) == (None, None, None)
    assert not got.options.queue_gate
    rules = got.options.queue_rules
    assert (rules.max_depth, rules.protects_root, rules.keeps_allocated) == (5, True, False)


def test_address_and_port_can_be_given_apart() -> None:
    got = settings(arguments(["--listen=1.2.3.4:5", "--listen-address=127.0.0.1", "--port=6"]))
    assert (got.host, got.port) == ("127.0.0.1", 6)


def test_a_switch_needs_no_value() -> None:
    assert arguments(["--enable-queue-allocated-pods-check"]).enable_queue_allocated_pods_check


REFUSED = {
    "a port that there is not": (
        ["--port=65536"],
        "the port should be in the range of 1 and 65535",
    ),
    "a path that there is not": (
        ["--enabled-admission=/jobs/mutate,/nothing"],
        "enabled admission /nothing not found on the admission registered map",
    ),
    "a certificate without its key": (
        ["--tls-cert-file=a", "--ca-cert-file=b"],
        "give all of --tls-cert-file, --tls-private-key-file, --ca-cert-file, or none",
    ),
    "a time that is none": (["--graceful-shutdown-time=soon"], "soon is no duration"),
    "a switch that is neither": (["--enable-root-queue-protection=maybe"], "neither true nor"),
    "a gate that is neither": (["--feature-gates=A=maybe"], "neither true nor false"),
}


@pytest.mark.parametrize(("given", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_says_why(
    given: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        arguments(given)
    assert words in capsys.readouterr().err


def test_without_its_certificate_the_process_ends_in_words(tmp_path: Path) -> None:
    names = ("--tls-cert-file", "--tls-private-key-file", "--ca-cert-file")
    with pytest.raises(SystemExit, match="failed to read ca file"):
        main([f"{name}={tmp_path / 'none'}" for name in names])


def test_every_path_of_volcano_is_served() -> None:
    kinds = ("jobs", "queues", "podgroups", "pods")
    volcanos = {f"/{kind}/{what}" for kind in kinds for what in ("mutate", "validate")}
    volcanos |= {f"/{kind}/validate" for kind in ("jobflows", "hypernodes", "cronjobs")}
    assert volcanos <= {webhook.path for webhook in webhooks(())}
