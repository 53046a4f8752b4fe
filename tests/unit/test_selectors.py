"""Selectors, node terms, taints: what Kubernetes matches, and what it refuses to parse."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pumice.core.api.core import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
    Toleration,
)
from pumice.core.api.meta import LabelSelector, LabelSelectorRequirement
from pumice.core.selectors import (
    EVERYTHING,
    NOTHING,
    SelectorError,
    label_selector,
    node_choice,
    parse_int64,
    tolerates,
)


def an_expression(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=list(values))


def a_rule(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=list(values))


def a_term(*rules: NodeSelectorRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=list(rules))


def by_name(operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=[a_rule("metadata.name", operator, *values)])


@dataclass(frozen=True)
class LabelCase:
    selector: LabelSelector | None
    matches: list[dict[str, str]] = field(default_factory=list)
    differs: list[dict[str, str]] = field(default_factory=list)


LABEL_CASES = {
    "nil matches nothing": LabelCase(None, differs=[{}, {"a": "b"}]),
    "empty matches everything": LabelCase(LabelSelector(), matches=[{}, {"a": "b"}]),
    "labels must all be there with their values": LabelCase(
        LabelSelector(match_labels={"a": "1", "b": "2"}),
        matches=[{"a": "1", "b": "2", "c": "3"}],
        differs=[{}, {"a": "1"}, {"a": "1", "b": "3"}],
    ),
    "In needs the label": LabelCase(
        LabelSelector(match_expressions=[an_expression("a", "In", "1", "2")]),
        matches=[{"a": "1"}, {"a": "2"}],
        differs=[{}, {"a": "3"}, {"a": ""}],
    ),
    "NotIn holds without the label": LabelCase(
        LabelSelector(match_expressions=[an_expression("a", "NotIn", "1")]),
        matches=[{}, {"a": "2"}],
        differs=[{"a": "1"}],
    ),
    "Exists holds for an empty value": LabelCase(
        LabelSelector(match_expressions=[an_expression("a", "Exists")]),
        matches=[{"a": ""}, {"a": "1"}],
        differs=[{}],
    ),
    "DoesNotExist fails for an empty value": LabelCase(
        LabelSelector(match_expressions=[an_expression("a", "DoesNotExist")]),
        matches=[{}],
        differs=[{"a": ""}],
    ),
    "the empty text is a value like others": LabelCase(
        LabelSelector(match_expressions=[an_expression("a", "In", "")]),
        matches=[{"a": ""}],
        differs=[{}, {"a": "1"}],
    ),
}


@pytest.mark.parametrize("case", LABEL_CASES.values(), ids=LABEL_CASES.keys())
def test_label_selector(case: LabelCase) -> None:
    selector = label_selector(case.selector)

    assert [selector.matches(labels) for labels in case.matches] == [True] * len(case.matches)
    assert [selector.matches(labels) for labels in case.differs] == [False] * len(case.differs)


REFUSED = {
    "In without values": an_expression("a", "In"),
    "Exists with a value": an_expression("a", "Exists", "1"),
    "an operator of node selectors": an_expression("a", "Gt", "1"),
    "an unknown operator": an_expression("a", "Like", "1"),
    "a malformed key": an_expression("a b", "Exists"),
    "a key with an upper-case prefix": an_expression("Example.com/a", "Exists"),
    "a malformed value": an_expression("a", "In", "x y"),
    "a value that is too long": an_expression("a", "In", "x" * 64),
}


@pytest.mark.parametrize("expression", REFUSED.values(), ids=REFUSED.keys())
def test_malformed_label_selectors_are_refused(expression: LabelSelectorRequirement) -> None:
    with pytest.raises(SelectorError):
        label_selector(LabelSelector(match_expressions=[expression]))


def test_requirements_can_be_added_but_nothing_stays_nothing() -> None:
    more = label_selector(LabelSelector(match_labels={"a": "1"})).requirements

    assert EVERYTHING.also(more).matches({"a": "1"})
    assert not EVERYTHING.also(more).matches({})
    assert NOTHING.also(more) == NOTHING


@dataclass(frozen=True)
class NodeCase:
    """Whether the choice allows node `n1` with labels zone=a, gen=7, plain=x."""

    allowed: bool
    selector: dict[str, str] | None = None
    terms: list[NodeSelectorTerm] | None = None


NODE_CASES = {
    "no rule allows every node": NodeCase(True),
    "a node selector that matches": NodeCase(True, {"zone": "a"}),
    "a node selector with another value": NodeCase(False, {"zone": "b"}),
    "a node selector on a missing label": NodeCase(False, {"rack": "1"}),
    "one of several terms is enough": NodeCase(
        True, terms=[a_term(a_rule("zone", "In", "b")), a_term(a_rule("zone", "In", "a"))]
    ),
    "all expressions of a term must hold": NodeCase(
        False, terms=[a_term(a_rule("zone", "In", "a"), a_rule("rack", "Exists"))]
    ),
    "selector and affinity must both hold": NodeCase(
        False, {"zone": "b"}, [a_term(a_rule("zone", "Exists"))]
    ),
    "no terms match no node": NodeCase(False, terms=[]),
    "an empty term matches no node": NodeCase(False, terms=[NodeSelectorTerm()]),
    "an empty term beside one that matches does no harm": NodeCase(
        True, terms=[NodeSelectorTerm(), a_term(a_rule("zone", "In", "a"))]
    ),
    "Gt is a strict comparison of integers": NodeCase(
        True, terms=[a_term(a_rule("gen", "Gt", "6"))]
    ),
    "Gt fails for the same number": NodeCase(False, terms=[a_term(a_rule("gen", "Gt", "7"))]),
    "Lt is a strict comparison of integers": NodeCase(
        True, terms=[a_term(a_rule("gen", "Lt", "8"))]
    ),
    "Gt fails where the label is no integer": NodeCase(
        False, terms=[a_term(a_rule("plain", "Gt", "1"))]
    ),
    "Lt fails where the label is missing": NodeCase(
        False, terms=[a_term(a_rule("rack", "Lt", "1"))]
    ),
    "a term that asks for more than a text is malformed and matches no node": NodeCase(
        False, terms=[a_term(a_rule("gen", "Gt", "six"))]
    ),
    "a malformed term beside one that matches does no harm": NodeCase(
        True, terms=[a_term(a_rule("gen", "Gt", "six")), a_term(a_rule("zone", "Exists"))]
    ),
    "NotIn holds where the label is missing": NodeCase(
        True, terms=[a_term(a_rule("rack", "NotIn", "1"))]
    ),
    "the node's name": NodeCase(True, terms=[by_name("In", "n1")]),
    "another node's name": NodeCase(False, terms=[by_name("In", "n2")]),
    "any node but this": NodeCase(False, terms=[by_name("NotIn", "n1")]),
    "a field takes one value": NodeCase(False, terms=[by_name("In", "n1", "n2")]),
    "fields and expressions of a term must both hold": NodeCase(
        False,
        terms=[
            NodeSelectorTerm(
                match_fields=[a_rule("metadata.name", "In", "n1")],
                match_expressions=[a_rule("zone", "In", "b")],
            )
        ],
    ),
}


@pytest.mark.parametrize("case", NODE_CASES.values(), ids=NODE_CASES.keys())
def test_node_choice(case: NodeCase) -> None:
    required = None if case.terms is None else NodeSelector(node_selector_terms=case.terms)

    choice = node_choice(case.selector, required)

    assert choice.matches("n1", {"zone": "a", "gen": "7", "plain": "x"}) is case.allowed


@dataclass(frozen=True)
class TaintCase:
    tolerated: bool
    tolerations: list[Toleration]


TAINT_CASES = {
    "no toleration": TaintCase(False, []),
    "key, value and effect are equal": TaintCase(
        True, [Toleration(key="gpu", operator="Equal", value="yes", effect="NoSchedule")]
    ),
    "no operator means Equal": TaintCase(True, [Toleration(key="gpu", value="yes")]),
    "another value": TaintCase(False, [Toleration(key="gpu", value="no")]),
    "Exists takes any value": TaintCase(True, [Toleration(key="gpu", operator="Exists")]),
    "another effect": TaintCase(
        False, [Toleration(key="gpu", operator="Exists", effect="NoExecute")]
    ),
    "Exists without a key tolerates everything": TaintCase(True, [Toleration(operator="Exists")]),
    "another key": TaintCase(False, [Toleration(key="tpu", operator="Exists")]),
    "the operators on numbers are off": TaintCase(
        False, [Toleration(key="gpu", operator="Gt", value="1")]
    ),
    "one of several is enough": TaintCase(
        True, [Toleration(key="tpu", operator="Exists"), Toleration(key="gpu", value="yes")]
    ),
}


@pytest.mark.parametrize("case", TAINT_CASES.values(), ids=TAINT_CASES.keys())
def test_tolerations_of_a_taint(case: TaintCase) -> None:
    taint = Taint(key="gpu", value="yes", effect="NoSchedule")

    assert tolerates(case.tolerations, taint) is case.tolerated


def test_integers_are_those_of_64_bits() -> None:
    texts = ["0", "-1", "+2", "9223372036854775807", "9223372036854775808", " 1", "1_0", "", "1.0"]

    got = [parse_int64(text) for text in texts]

    assert got == [0, -1, 2, 2**63 - 1, None, None, None, None, None]
