"""The admission policies: what is checked in is what the rules say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from pumice.core.admission.policy_mode import jobs
from pumice.core.admission.policy_mode.__main__ import manifests
from pumice.core.api.batch import JobSpec, TaskSpec

POLICIES = Path(__file__).parents[3] / "manifests" / "admission" / "policies"


def bodies() -> list[dict[str, Any]]:
    return [
        body
        for path in sorted(POLICIES.glob("*.yaml"))
        for body in yaml.safe_load_all(path.read_text())
    ]


def test_policies_are_what_the_rules_say() -> None:
    checked_in = {path.name: path.read_text() for path in POLICIES.glob("*.yaml")}
    assert checked_in == manifests(), "run `make generate`"


def test_each_policy_has_its_binding() -> None:
    policies = {(b["kind"], b["metadata"]["name"]) for b in bodies() if "Binding" not in b["kind"]}
    bound = {
        (b["kind"].removesuffix("Binding"), b["spec"]["policyName"])
        for b in bodies()
        if "Binding" in b["kind"]
    }
    assert policies == bound


def test_who_looks_at_every_queue_lets_pass_what_it_cannot_judge() -> None:
    for body in bodies():
        spec = body["spec"]
        if "paramKind" in spec:
            assert spec["failurePolicy"] == "Ignore", body["metadata"]["name"]
        if "paramRef" in spec:
            assert spec["paramRef"] == {"selector": {}, "parameterNotFoundAction": "Allow"}


def test_the_cluster_and_we_ourselves_are_spared() -> None:
    for body in bodies():
        constraints = body["spec"].get("matchConstraints", {})
        (rule,) = constraints.get("resourceRules", [{"resources": ["queues"]}])
        if rule["resources"] != ["queues"]:
            (away,) = constraints["namespaceSelector"]["matchExpressions"]
            assert away["values"] == ["kube-system", "pumice-system"], body["metadata"]["name"]


def test_a_field_of_a_job_is_fixed_unless_it_is_said_to_be_free() -> None:
    expression = jobs.UPDATE.variables["now"]
    free = {"minAvailable", "priorityClassName", "replicas", "plugins"}
    for struct in (JobSpec, TaskSpec):
        for field in msgspec.structs.fields(struct):
            assert (f".?{field.encode_name}." in expression) == (field.encode_name not in free)
