"""What the components are started with: kubeconfigs, audit policy, scheduler and KWOK files."""

from __future__ import annotations

import base64
import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.core import names
from pumice.local import audit, kwok
from pumice.local.certs import Pair
from pumice.local.paths import manifests
from pumice.local.scheduler import metric_sum, pumice_config, shared_config, stock_config
from pumice.local.users import render

PERCENTAGE = names.VGPU_MEMORY_PERCENTAGE


def test_a_kubeconfig_holds_all_it_needs() -> None:
    text = render("https://127.0.0.1:1", b"ca", "someone", Pair(b"cert", b"key"))
    config = yaml.safe_load(text)

    assert config["clusters"] == [
        {
            "name": "pumice",
            "cluster": {
                "server": "https://127.0.0.1:1",
                "certificate-authority-data": base64.b64encode(b"ca").decode(),
            },
        }
    ]
    assert config["users"] == [
        {
            "name": "someone",
            "user": {
                "client-certificate-data": base64.b64encode(b"cert").decode(),
                "client-key-data": base64.b64encode(b"key").decode(),
            },
        }
    ]
    assert config["contexts"] == [
        {"name": config["current-context"], "context": {"cluster": "pumice", "user": "someone"}}
    ]


def test_the_scheduler_runs_with_the_published_configuration() -> None:
    published = yaml.safe_load((manifests() / "scheduler-config.yaml").read_text())
    local = pumice_config(Path("/k"), "http://127.0.0.1:7")

    assert local["clientConnection"].pop("kubeconfig") == "/k"
    assert local["extenders"][0].pop("urlPrefix") == "http://127.0.0.1:7"
    del published["clientConnection"]["kubeconfig"]
    del published["extenders"][0]["urlPrefix"]
    assert local == published


def test_the_published_configuration_binds_through_the_extender_and_nothing_else() -> None:
    config = pumice_config(Path("/k"), "http://127.0.0.1:7")

    assert config["extenders"] == [
        {
            "urlPrefix": "http://127.0.0.1:7",
            "bindVerb": "bind",
            "nodeCacheCapable": True,
            "httpTimeout": "600s",
            "ignorable": False,
        }
    ]
    ignored = {"ignoredResources": [PERCENTAGE]}
    assert config["profiles"] == [
        {
            "schedulerName": "volcano",
            "plugins": {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}},
            "pluginConfig": [{"name": "NodeResourcesFit", "args": ignored}],
        }
    ]


def test_a_shared_scheduler_runs_with_its_published_configuration() -> None:
    published = yaml.safe_load((manifests() / "shared" / "scheduler-config.yaml").read_text())
    local = shared_config(Path("/k"), "https://127.0.0.1:7", {"caFile": "/ca"})

    assert local.pop("leaderElection") == {"leaderElect": False}
    assert local["clientConnection"].pop("kubeconfig") == "/k"
    del published["clientConnection"]["kubeconfig"]
    for ours, theirs in zip(local["extenders"], published["extenders"], strict=True):
        assert ours.pop("urlPrefix") == "https://127.0.0.1:7"
        assert ours.pop("tlsConfig") == {"caFile": "/ca"}
        assert theirs.pop("urlPrefix").startswith("https://")
        assert theirs.pop("tlsConfig").keys() == {"serverName", "caFile", "certFile", "keyFile"}
    assert local == published


def managed(extender: dict[str, Any]) -> dict[str, bool]:
    """Return whose pods go to an extender: resource -> whether kube-scheduler looks past it."""
    listed = extender["managedResources"]
    return {entry["name"]: entry.get("ignoredByScheduler", False) for entry in listed}


def test_only_pods_of_ours_and_those_with_shared_cards_go_to_the_extender() -> None:
    config = shared_config(Path("/k"), "https://127.0.0.1:7", {})
    binding, loop = config["extenders"]

    assert (binding["bindVerb"], binding["ignorable"]) == ("bind", False)
    assert managed(binding) == {
        names.MARKER_RESOURCE: True,
        "volcano.sh/vgpu-number": False,
        "volcano.sh/vgpu-memory": False,
        "volcano.sh/gpu-memory": False,
        "volcano.sh/gpu-number": False,
    }
    # What is called in kube-scheduler's loop may not hold it up, nor fail it.
    assert "bindVerb" not in loop
    assert (loop["httpTimeout"], loop["ignorable"]) == ("2s", True)
    assert managed(loop) == {
        names.FREE_MARKER_RESOURCE: True,
        "volcano.sh/vgpu-cores": False,
        PERCENTAGE: True,
    }
    assert [profile["schedulerName"] for profile in config["profiles"]] == [
        "default-scheduler",
        "volcano",
    ]


@pytest.mark.parametrize("file", ["scheduler-config.yaml", "shared/scheduler-config.yaml"])
def test_every_line_of_the_published_configuration_has_its_reason(file: str) -> None:
    lines = (manifests() / file).read_text().partition("filterVerb")[0].splitlines()
    explained = {"qps", "podInitialBackoffSeconds", "podMaxBackoffSeconds", "kubeconfig"}
    explained |= {"nodeCacheCapable", "httpTimeout", "ignorable", "managedResources", "weight"}
    explained |= {
        "enableHTTPS",
        "- urlPrefix",
        "serverName",
        "certFile",
        "percentageOfNodesToScore",
    }

    unexplained = {
        key
        for before, line in itertools.pairwise(lines)
        if (key := line.strip().partition(":")[0]) in explained
        and not before.strip().startswith("#")
    }
    assert unexplained == set()


def test_the_stock_scheduler_knows_nothing_of_us() -> None:
    config = stock_config(Path("/k"))
    assert config["profiles"] == [{"schedulerName": "default-scheduler"}]
    assert "extenders" not in config


METRICS = """
# TYPE attempts counter
attempts{profile="volcano",result="scheduled"} 3
attempts{profile="volcano",result="unschedulable"} 4
attempts{profile="other",result="scheduled"} 50
attempts_total 600
"""


def test_metrics_add_up_over_the_labels_not_named() -> None:
    assert metric_sum(METRICS, "attempts", profile="volcano") == 7
    assert metric_sum(METRICS, "attempts", profile="volcano", result="scheduled") == 3
    assert metric_sum(METRICS, "attempts_total") == 600
    assert metric_sum(METRICS, "unknown") == 0


def levels(policy: dict[str, Any]) -> list[tuple[str, object]]:
    """Return (level, first resource or verbs) of each rule."""
    return [
        (rule["level"], rule.get("verbs") or rule.get("resources", [{"group": "*"}])[0]["group"])
        for rule in policy["rules"]
    ]


def test_the_audit_policy_leaves_out_reads_events_and_leases() -> None:
    quiet = [
        ("None", ["get", "list", "watch"]),
        ("None", ""),
        ("None", "events.k8s.io"),
        ("None", "coordination.k8s.io"),
    ]
    assert levels(audit.policy("Metadata")) == [*quiet, ("Metadata", "*")]
    assert levels(audit.policy("RequestResponse")) == [
        *quiet,
        ("RequestResponse", ""),
        ("Metadata", "*"),
    ]


def test_an_audited_request_is_one_line() -> None:
    assert audit.policy("Metadata")["omitStages"] == ["RequestReceived"]


def test_kwok_gets_its_options_and_every_stage(tmp_path: Path) -> None:
    options, *stages = yaml.safe_load_all(kwok.write_config(tmp_path / "kwok.yaml").read_text())

    assert options["kind"] == "KwokConfiguration"
    assert [stage["metadata"]["name"] for stage in stages] == [
        "node-initialize",
        "node-heartbeat",
        "pod-delete",
        "pod-forget",
        "pod-end",
        "pod-restart",
        "pod-run",
    ]
    assert {stage["kind"] for stage in stages} == {"Stage"}
