"""The CRD manifests: what is checked in is what the structs say, and says it Kubernetes' way."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.core.api.crd import manifests
from pumice.core.api.schema import QUANTITY

CRDS = Path(__file__).parents[2] / "manifests" / "crds"


@cache
def crd(file: str) -> dict[str, Any]:
    result: dict[str, Any] = yaml.safe_load((CRDS / file).read_text())
    return result


def properties(file: str, *path: str) -> dict[str, Any]:
    """Return the schema at a path of fields; `[]` is the item of a list, `*` the value of a map."""
    schema = crd(file)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for step in path:
        match step:
            case "[]":
                schema = schema["items"]
            case "*":
                schema = schema["additionalProperties"]
            case _:
                schema = schema["properties"][step]
    result: dict[str, Any] = {k: v for k, v in schema.items() if k != "description"}
    return result


JOBS = "batch.volcano.sh_jobs.yaml"
GROUPS = "scheduling.volcano.sh_podgroups.yaml"
QUEUES = "scheduling.volcano.sh_queues.yaml"
COMMANDS = "bus.volcano.sh_commands.yaml"
CRON_JOBS = "batch.volcano.sh_cronjobs.yaml"
FLOWS = "flow.volcano.sh_jobflows.yaml"
TEMPLATES = "flow.volcano.sh_jobtemplates.yaml"
HYPERNODES = "topology.volcano.sh_hypernodes.yaml"
INT32 = {"type": "integer", "format": "int32"}
DNS = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$"

FIELDS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "a number has its bounds": (
        (JOBS, "spec", "minAvailable"),
        INT32 | {"minimum": 0},
    ),
    "a default that is not zero is written": (
        (JOBS, "spec", "maxRetry"),
        INT32 | {"minimum": 0, "default": 3},
    ),
    "a zero is written where Volcano writes it": (
        (GROUPS, "spec", "subGroupPolicy", "[]", "minSubGroups"),
        INT32 | {"minimum": 0, "default": 0},
    ),
    "a number may have both bounds": (
        (QUEUES, "spec", "weight"),
        INT32 | {"minimum": 1, "maximum": 65535, "default": 1},
    ),
    "a name has pattern, length and default": (
        (JOBS, "spec", "queue"),
        {"type": "string", "maxLength": 253, "pattern": DNS, "default": "default"},
    ),
    "an enumeration lists its words": (
        (QUEUES, "spec", "dequeueStrategy"),
        {"type": "string", "enum": ["fifo", "traverse"], "default": "traverse"},
    ),
    "an empty phase is one of the words": (
        (GROUPS, "status", "phase"),
        {
            "type": "string",
            "enum": ["", "Completed", "Inqueue", "Pending", "Running", "Unknown"],
        },
    ),
    "a quantity is a number or text": (
        (QUEUES, "spec", "capability", "*"),
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITY,
            "maxLength": 64,
            "x-kubernetes-int-or-string": True,
        },
    ),
    "a plugin's arguments may be null without losing the plugin": (
        (JOBS, "spec", "plugins", "*"),
        {"type": "array", "items": {"type": "string"}, "nullable": True},
    ),
    "a claim keeps every field": (
        (JOBS, "spec", "volumes", "[]", "volumeClaim"),
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    ),
    "a time has its format": (
        (JOBS, "status", "state", "lastTransitionTime"),
        {"type": "string", "format": "date-time"},
    ),
    "a default of false is written where Volcano writes it": (
        (CRON_JOBS, "spec", "suspend"),
        {"type": "boolean", "default": False},
    ),
    "a limit may be nothing, and has a default": (
        (CRON_JOBS, "spec", "successfulJobsHistoryLimit"),
        INT32 | {"minimum": 0, "default": 3},
    ),
    "a number may be long": (
        (CRON_JOBS, "spec", "startingDeadlineSeconds"),
        {"type": "integer", "format": "int64", "minimum": 0},
    ),
    "metadata of what is made is kept": (
        (CRON_JOBS, "spec", "jobTemplate", "metadata", "labels"),
        {"type": "object", "additionalProperties": {"type": "string"}},
    ),
    "a name may not be empty": (
        (FLOWS, "spec", "flows", "[]", "name"),
        {"type": "string", "minLength": 1},
    ),
    "a list that Volcano spells its own way": (
        (FLOWS, "status", "unKnowJobs"),
        {"type": "array", "items": {"type": "string"}},
    ),
    "a template is the specification of a Job": (
        (TEMPLATES, "spec", "maxRetry"),
        INT32 | {"minimum": 0, "default": 3},
    ),
    "a tier is not negative": ((HYPERNODES, "spec", "tier"), INT32 | {"minimum": 0}),
    "an optional flag is a flag": (
        (QUEUES, "spec", "reclaimable"),
        {"type": "boolean"},
    ),
}


@pytest.mark.parametrize(("path", "want"), FIELDS.values(), ids=FIELDS.keys())
def test_field(path: tuple[str, ...], want: dict[str, Any]) -> None:
    assert properties(*path) == want


def test_manifests_are_what_the_structs_say() -> None:
    checked_in = {path.name: path.read_text() for path in CRDS.iterdir()}
    assert checked_in == manifests(), "run `python -m pumice.core.api.crd manifests/crds`"


def test_a_pod_template_keeps_every_field_and_asks_for_containers() -> None:
    template = properties(JOBS, "spec", "tasks", "[]", "template")
    assert template["x-kubernetes-preserve-unknown-fields"] is True
    spec = template["properties"]["spec"]
    assert spec["x-kubernetes-preserve-unknown-fields"] is True
    assert spec["required"] == ["containers"]
    assert spec["properties"]["containers"]["items"] == {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }


def test_what_must_be_given() -> None:
    required = {
        "volume": properties(JOBS, "spec", "volumes", "[]")["required"],
        "partitions": properties(JOBS, "spec", "tasks", "[]", "partitionPolicy")["required"],
        "condition": properties(JOBS, "status", "conditions", "[]")["required"],
        "target": properties(COMMANDS, "target")["required"],
        "cron job": properties(CRON_JOBS, "spec")["required"],
        "flow": properties(FLOWS, "spec", "flows", "[]")["required"],
        "hypernode": properties(HYPERNODES, "spec")["required"],
        "member": properties(HYPERNODES, "spec", "members", "[]")["required"],
    }
    assert required == {
        "volume": ["mountPath"],
        "partitions": ["partitionSize", "totalPartitions"],
        "condition": ["status"],
        "target": ["apiVersion", "kind", "name", "uid"],
        "cron job": ["jobTemplate", "schedule"],
        "flow": ["name"],
        "hypernode": ["tier"],
        "member": ["type"],
    }


def test_names_scope_and_subresources() -> None:
    got = {}
    for file in sorted(path.name for path in CRDS.iterdir()):
        meta, spec = crd(file)["metadata"], crd(file)["spec"]
        version = spec["versions"][0]
        assert meta["annotations"] == {"helm.sh/resource-policy": "keep"}
        got[meta["name"]] = (
            spec["names"]["kind"],
            spec["names"].get("shortNames"),
            spec["scope"],
            version["name"],
            version.get("subresources"),
        )
    assert got == {
        "jobs.batch.volcano.sh": (
            "Job",
            ["vcjob", "vj"],
            "Namespaced",
            "v1alpha1",
            {"status": {}},
        ),
        "podgroups.scheduling.volcano.sh": (
            "PodGroup",
            ["pg", "podgroup-v1beta1"],
            "Namespaced",
            "v1beta1",
            None,
        ),
        "queues.scheduling.volcano.sh": (
            "Queue",
            ["q", "queue-v1beta1"],
            "Cluster",
            "v1beta1",
            {"status": {}},
        ),
        "commands.bus.volcano.sh": ("Command", None, "Namespaced", "v1alpha1", None),
        "cronjobs.batch.volcano.sh": (
            "CronJob",
            ["cronvcjob", "cronvj"],
            "Namespaced",
            "v1alpha1",
            {"status": {}},
        ),
        "jobflows.flow.volcano.sh": (
            "JobFlow",
            ["jf"],
            "Namespaced",
            "v1alpha1",
            {"status": {}},
        ),
        "jobtemplates.flow.volcano.sh": (
            "JobTemplate",
            ["jt"],
            "Namespaced",
            "v1alpha1",
            {"status": {}},
        ),
        "hypernodes.topology.volcano.sh": (
            "HyperNode",
            ["hn"],
            "Cluster",
            "v1alpha1",
            {"status": {}},
        ),
        "numatopologies.nodeinfo.volcano.sh": (
            "Numatopology",
            ["numatopo"],
            "Cluster",
            "v1alpha1",
            None,
        ),
    }


def test_notes_of_fields_become_their_descriptions() -> None:
    schema = crd(JOBS)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec = schema["properties"]["spec"]
    assert spec["description"] == "What the user asks for."
    assert spec["properties"]["maxRetry"]["description"] == (
        "How often the job may be restarted before it fails; 0 means 3."
    )
