"""
Selectors over labels and nodes, taints and tolerations: Kubernetes' matching rules.

A selector is parsed once into requirements and then asked many times. The parsed forms are
hashable values: two selectors that say the same in the same words are equal, so what was
counted or masked for one serves the other. The rules are those of kube-scheduler 1.36, its
oddities included: `NotIn` and `DoesNotExist` hold where the label is absent, `Gt` and `Lt`
read both sides as 64-bit integers, a nil label selector matches nothing and an empty one
everything, a node selector term that is empty or malformed matches no node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pumice.core.api.core import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
    Toleration,
)
from pumice.core.api.meta import LabelSelector, LabelSelectorRequirement

NAME_FIELD: Final = "metadata.name"
"""The one node field that terms may select by."""

_INT = re.compile(r"[+-]?[0-9]+", re.ASCII)
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_SET_OPERATORS = frozenset({"In", "NotIn"})
_BARE_OPERATORS = frozenset({"Exists", "DoesNotExist"})
_NUMBER_OPERATORS = frozenset({"Gt", "Lt"})


class SelectorError(ValueError):
    """A selector that Kubernetes itself would refuse to parse."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression over a label: it accepts a value, or the absence of one."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    @classmethod
    def parse(cls, key: str, operator: str, values: Iterable[str] | None) -> Requirement:
        """Return the requirement; raise SelectorError where Kubernetes would refuse it."""
        held = tuple(values or ())
        if not _is_label_key(key):
            raise SelectorError(f"{key!r} is not a valid label key")
        if operator in _SET_OPERATORS:
            if not held:
                raise SelectorError(f"operator {operator} on {key!r} needs values")
        elif operator in _BARE_OPERATORS:
            if held:
                raise SelectorError(f"operator {operator} on {key!r} takes no values")
        elif operator in _NUMBER_OPERATORS:
            if len(held) != 1 or parse_int64(held[0]) is None:
                raise SelectorError(f"operator {operator} on {key!r} needs one integer")
        else:
            raise SelectorError(f"{operator!r} is not a selector operator")
        for value in held:
            if not _VALUE.fullmatch(value):
                raise SelectorError(f"{value!r} is not a valid label value")
        return cls(key, operator, held)

    def accepts(self, value: str | None) -> bool:
        """Return whether the requirement holds for `value`; None means the label is absent."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number = None if value is None else parse_int64(value)
        bound = parse_int64(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "Gt" else number < bound


@dataclass(frozen=True, slots=True)
class Selector:
    """A conjunction of requirements over a set of labels; `NOTHING` matches none."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether all requirements hold for the labels."""
        return not self.nothing and all(r.accepts(labels.get(r.key)) for r in self.requirements)

    @property
    def keys(self) -> frozenset[str]:
        """Return the label keys that the selector mentions."""
        return frozenset(r.key for r in self.requirements)

    @property
    def everything(self) -> bool:
        """Return whether the selector matches every set of labels."""
        return not self.nothing and not self.requirements

    def also(self, requirements: Iterable[Requirement]) -> Selector:
        """Return the selector with further requirements; nothing stays nothing."""
        return self if self.nothing else Selector((*self.requirements, *requirements))


NOTHING: Final = Selector(nothing=True)
EVERYTHING: Final = Selector()


def label_selector(selector: LabelSelector | None) -> Selector:
    """Parse a label selector: nil matches nothing, empty matches everything."""
    if selector is None:
        return NOTHING
    found = [Requirement.parse(k, "In", (v,)) for k, v in (selector.match_labels or {}).items()]
    found += [_label_requirement(r) for r in selector.match_expressions or ()]
    return Selector(tuple(sorted(found, key=lambda r: r.key)))


def _label_requirement(expression: LabelSelectorRequirement) -> Requirement:
    if expression.operator in _NUMBER_OPERATORS:
        raise SelectorError(f"{expression.operator!r} is not an operator of label selectors")
    return Requirement.parse(expression.key, expression.operator, expression.values)


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A conjunction over a node's labels and its name."""

    labels: tuple[Requirement, ...] = ()
    names: tuple[Requirement, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the term holds for a node of this name with these labels."""
        return all(r.accepts(labels.get(r.key)) for r in self.labels) and all(
            r.accepts(name) for r in self.names
        )


def node_term(term: NodeSelectorTerm) -> NodeTerm | None:
    """Parse a term; None for one that matches no node, being empty or malformed."""
    expressions, fields = term.match_expressions or (), term.match_fields or ()
    if not expressions and not fields:
        return None
    try:
        labels = tuple(Requirement.parse(e.key, e.operator, e.values) for e in expressions)
        return NodeTerm(labels, tuple(_name_requirement(f) for f in fields))
    except SelectorError:
        return None


def _name_requirement(field: NodeSelectorRequirement) -> Requirement:
    """Fields know two operators with one value each; a field nodes lack is the empty text."""
    values = field.values or []
    if field.operator not in _SET_OPERATORS or len(values) != 1:
        raise SelectorError(f"field {field.key!r} needs In or NotIn with one value")
    if field.key != NAME_FIELD:
        raise SelectorError(f"nodes have no field {field.key!r}")
    return Requirement(field.key, field.operator, tuple(values))


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """Which nodes a pod may go to: `nodeSelector` and required node affinity together."""

    selector: Selector = EVERYTHING
    #: None: no affinity was asked; empty: no term can match
    terms: tuple[NodeTerm, ...] | None = None

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the pod may go to a node of this name with these labels."""
        if not self.selector.matches(labels):
            return False
        return self.terms is None or any(t.matches(name, labels) for t in self.terms)

    @property
    def anywhere(self) -> bool:
        """Return whether every node is allowed."""
        return self.selector.everything and self.terms is None


def node_choice(selector: Mapping[str, str] | None, required: NodeSelector | None) -> NodeChoice:
    """Parse a pod's `nodeSelector` and required node affinity."""
    labels = Selector(
        tuple(Requirement(k, "In", (v,)) for k, v in sorted((selector or {}).items()))
    )
    if required is None:
        return NodeChoice(labels)
    terms = (node_term(term) for term in required.node_selector_terms or ())
    return NodeChoice(labels, tuple(term for term in terms if term is not None))


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Return whether one of the tolerations tolerates the taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Numeric operators (`Lt`, `Gt`) never match: their feature is off in 1.36."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def parse_int64(text: str) -> int | None:
    """Return the text as a 64-bit integer, or None where it is none."""
    if not _INT.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not (_PREFIX.fullmatch(prefix) and len(prefix) <= 253):
        return False
    return bool(_NAME.fullmatch(name))
