"""What policies are made of: the objects around the expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pumice.core import names
from pumice.core.admission.conditions import Condition
from pumice.core.admission.pods import SPARED_NAMESPACES

API: Final = "admissionregistration.k8s.io/v1"
LABELS: Final = {"app.kubernetes.io/part-of": "pumice"}

Manifest = dict[str, Any]
FailurePolicy = Literal["Fail", "Ignore"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A validation; `named` is CEL for a message that names the culprit."""

    expression: str
    message: str
    named: str = ""

    def manifest(self) -> Manifest:
        """Return it as it stands in a policy."""
        named = {"messageExpression": self.named} if self.named else {}
        return {"expression": self.expression, "message": self.message} | named


@dataclass(frozen=True, slots=True)
class NoneOf:
    """The rule that a list of texts, each about one thing that is wrong, is empty."""

    #: the variable that holds the list
    name: str
    #: CEL
    texts: str
    message: str

    def manifest(self) -> Manifest:
        """Return it as it stands in a policy: whatever is wrong is told at once."""
        wrong = f"variables.{self.name}"
        return Rule(f"size({wrong}) == 0", self.message, f"{wrong}.join('; ')").manifest()


@dataclass(frozen=True, slots=True)
class Target:
    """The requests that a policy is about."""

    api: str
    resource: str
    operations: Sequence[str]
    namespaced: bool = True
    conditions: Sequence[Condition] = ()

    def constraints(self) -> Manifest:
        """Return `matchConstraints`; the namespaces of the cluster and our own are spared."""
        group, _, version = self.api.rpartition("/")
        rule = {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": list(self.operations),
            "resources": [self.resource],
            # The default, without which applying a policy again would seem to change it.
            "scope": "*",
        }
        away = {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": sorted(SPARED_NAMESPACES),
        }
        spared = {"namespaceSelector": {"matchExpressions": [away]}} if self.namespaced else {}
        return {"resourceRules": [rule], **spared}

    def match_conditions(self) -> Manifest:
        """Return `matchConditions`, where there are any."""
        found = [{"name": c.name, "expression": c.expression} for c in self.conditions]
        return {"matchConditions": found} if found else {}


@dataclass(frozen=True, slots=True)
class Validating:
    """A ValidatingAdmissionPolicy and its binding."""

    name: str
    target: Target
    rules: Sequence[Rule | NoneOf]
    variables: Mapping[str, str] = field(default_factory=dict)
    failure_policy: FailurePolicy = "Fail"
    #: evaluated once for each queue, which is `params`
    for_each_queue: bool = False

    def manifests(self) -> list[Manifest]:
        """Return both objects."""
        lists = {rule.name: rule.texts for rule in self.rules if isinstance(rule, NoneOf)}
        queues = {"apiVersion": names.SCHEDULING_API, "kind": "Queue"}
        spec = {
            "failurePolicy": self.failure_policy,
            **({"paramKind": queues} if self.for_each_queue else {}),
            "matchConstraints": self.target.constraints(),
            **self.target.match_conditions(),
            **_variables({**self.variables, **lists}),
            "validations": [rule.manifest() for rule in self.rules],
        }
        every = {"paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"}}
        binding = {
            "policyName": self.name,
            "validationActions": ["Deny"],
            **(every if self.for_each_queue else {}),
        }
        kind = "ValidatingAdmissionPolicy"
        return [_object(kind, self.name, spec), _object(f"{kind}Binding", self.name, binding)]


@dataclass(frozen=True, slots=True)
class Step:
    """A change: where `wanted` holds, `value`, both CEL, is put at `path`."""

    path: str
    value: str
    wanted: str

    def expression(self) -> str:
        """Return the patch."""
        patch = f"JSONPatch{{op: 'add', path: '{self.path}', value: {self.value}}}"
        return f"{self.wanted} ? [{patch}] : []"


@dataclass(frozen=True, slots=True)
class EachTask:
    """The same for every task `t`, whose place in the list is `i`."""

    path: str
    value: str
    wanted: str

    def expression(self) -> str:
        """Return the patch."""
        path = f"'/spec/tasks/' + string(i) + '{self.path}'"
        patch = f"JSONPatch{{op: 'add', path: {path}, value: {self.value}}}"
        return f"object.spec.?tasks.orValue([]).transformList(i, t, {self.wanted}, {patch})"


@dataclass(frozen=True, slots=True)
class Mutating:
    """
    A MutatingAdmissionPolicy and its binding; each step sees what those before it did.

    An object that cannot be read gets no defaults: what is wrong with it the schema says better.
    """

    name: str
    target: Target
    steps: Sequence[Step | EachTask]

    def manifests(self) -> list[Manifest]:
        """Return both objects."""
        spec = {
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "Never",
            "matchConstraints": self.target.constraints(),
            **self.target.match_conditions(),
            "mutations": [
                {"patchType": "JSONPatch", "jsonPatch": {"expression": step.expression()}}
                for step in self.steps
            ],
        }
        kind = "MutatingAdmissionPolicy"
        binding = {"policyName": self.name}
        return [_object(kind, self.name, spec), _object(f"{kind}Binding", self.name, binding)]


def _variables(variables: Mapping[str, str]) -> Manifest:
    found = [{"name": name, "expression": text} for name, text in variables.items()]
    return {"variables": found} if found else {}


def _object(kind: str, name: str, spec: Manifest) -> Manifest:
    return {
        "apiVersion": API,
        "kind": kind,
        "metadata": {"name": name, "labels": LABELS},
        "spec": spec,
    }
