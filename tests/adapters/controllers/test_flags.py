"""The command line of the controllers."""

from __future__ import annotations

import pytest

from controllers.flags import Settings, Workers, arguments, settings, terms
from pumice.kube.lease import Terms


def test_by_default_everything_runs_and_a_leader_is_elected() -> None:
    args = arguments([])
    assert settings(args) == Settings()
    assert args.leader_elect is True
    assert terms(args) == Terms("pumice-system", "pumice-controllers")


def test_the_command_line_of_volcanos_controller_manager_is_understood() -> None:
    args = arguments(
        [
            "--logtostderr",
            "--enable-healthz=true",
            "--enable-metrics=true",
            "--leader-elect=false",
            "--leader-elect-resource-namespace=volcano-system",
            "--leader-elect-lease-duration=30s",
            "--kube-api-qps=50",
            "--kube-api-burst=100",
            "--worker-threads=4",
            "--worker-threads-for-gc=5",
            "--worker-threads-for-podgroup=6",
            "--worker-threads-for-queue=7",
            "--worker-threads-for-cronjob=8",
            "--max-requeue-num=-1",
            "--inherit-owner-annotations=false",
            "--scheduler-name=volcano",
            "--scheduler-name=other",
            "--feature-gates=WorkLoadSupport=true",
            "-v=4",
        ]
    )

    assert settings(args) == Settings(
        scheduler_names=("volcano", "other"),
        workers=Workers(jobs=4, cron_jobs=8, pod_groups=6, queues=7, garbage=5),
        max_requeues=-1,
        inherits=False,
    )
    assert (args.leader_elect, args.enable_metrics) == (False, True)
    assert terms(args) == Terms("volcano-system", "pumice-controllers", duration_s=30)


def test_namespace_and_release_are_those_of_the_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBE_POD_NAMESPACE", "batch")
    monkeypatch.setenv("HELM_RELEASE_NAME", "mine")
    args = arguments([])
    assert settings(args).configuration == ("batch", "mine-controller-configmap")
    assert terms(args).namespace == "batch"


CHOICES = {
    "*": {"job-controller": True, "sharding-controller": True},
    "*,-sharding-controller": {"job-controller": True, "sharding-controller": False},
    "job-controller": {"job-controller": True, "gc-controller": False},
    "+job-controller,gc-controller": {"gc-controller": True, "pg-controller": False},
    "-job-controller,*": {"job-controller": False, "gc-controller": True},
    "-job-controller": {"job-controller": False, "gc-controller": False},
    "": {"job-controller": True},
}


@pytest.mark.parametrize(("text", "want"), CHOICES.items(), ids=CHOICES)
def test_which_controllers_run(text: str, want: dict[str, bool]) -> None:
    chosen = settings(arguments([f"--controllers={text}"]))
    assert {name: chosen.runs(name) for name in want} == want


WRONG = {
    "--controllers=*,nothing": "there is no controller nothing",
    "--controllers=+gc-controller,-gc-controller": "controllers option -gc-controller cannot have"
    " both '-' and '+' prefixes",
    "--leader-elect=perhaps": "perhaps is neither true nor false",
    "--leader-elect-renew-deadline=20s": "a lease lasts longer than its deadline",
    "--leader-elect-retry-period=soon": "soon is no duration, such as 15s",
    "--worker-threads=0": "0 is not a number from 1 on",
}


@pytest.mark.parametrize(("flag", "message"), WRONG.items(), ids=WRONG)
def test_mistakes_are_told(flag: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments([flag])
    assert message in capsys.readouterr().err
