"""The configuration of discovery: what is read of it, and what is said of mistakes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pumice.core.hypernodes.configuration import LabelSource, Source, Topology, UfmSource, read

LABELS = """
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
"""
UFM = """
networkTopologyDiscovery:
- source: ufm
  enabled: true
"""


@dataclass(frozen=True)
class Case:
    text: str
    sources: list[Source] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


CASES = {
    "nothing is configured": Case(""),
    "labels from the highest tier down; the last stands for the node": Case(
        LABELS
        + """
      rack:
      - nodeLabel: zone
      - nodeLabel: rack
      - nodeLabel: kubernetes.io/hostname
""",
        [LabelSource((Topology("rack", ("rack", "zone")),))],
    ),
    "a label that is alone is a tier": Case(
        LABELS + "      rack: [{nodeLabel: rack}]",
        [LabelSource((Topology("rack", ("rack",)),))],
    ),
    "the name of the node alone is none": Case(
        LABELS + "      rack: [{nodeLabel: kubernetes.io/hostname}]",
        [LabelSource((Topology("rack", ()),))],
    ),
    "a type that is not right is ignored, and the others are used": Case(
        LABELS
        + """
      a-name-of-over-twenty-characters: [{nodeLabel: a}, {nodeLabel: b}]
      doubled: [{nodeLabel: a}, {nodeLabel: a}, {nodeLabel: b}]
      good: [{nodeLabel: a}, {nodeLabel: b}]
      odd: [a, b]
""",
        [LabelSource((Topology("good", ("a",)),))],
        [
            "networkTopologyTypes.a-name-of-over-twenty-characters: ignored: "
            "the name is longer than 20 characters",
            "networkTopologyTypes.doubled: ignored: a label is there twice",
            "networkTopologyTypes.odd: ignored: expected a list of {nodeLabel: KEY}",
        ],
    ),
    "a fabric manager": Case(
        UFM
        + """
  interval: 10m
  credentials: {secretRef: {name: s, namespace: n}}
  config: {endpoint: ufm.example.com, insecureSkipVerify: true}
""",
        [UfmSource("https://ufm.example.com", ("n", "s"), 600, is_verified=False)],
    ),
    "a fabric manager by default is asked each hour, and its Secret is next to the ConfigMap": Case(
        UFM + "  credentials: {secretRef: {name: s}}\n  config: {endpoint: 'http://u:1'}",
        [UfmSource("http://u:1", ("home", "s"), 3600)],
    ),
    "a fabric manager without an endpoint": Case(
        UFM + "  credentials: {secretRef: {name: s}}",
        wrong=["networkTopologyDiscovery[0]: UFM endpoint is not configured"],
    ),
    "a fabric manager without credentials": Case(
        UFM + "  config: {endpoint: u}",
        wrong=["networkTopologyDiscovery[0]: UFM authentication credentials are not configured"],
    ),
    "an interval that is none": Case(
        UFM + "  interval: soon\n  credentials: {secretRef: {name: s}}\n  config: {endpoint: u}",
        wrong=["networkTopologyDiscovery[0]: interval: 'soon' is not a duration such as 10m"],
    ),
    "a source that is off is not looked at": Case(
        "networkTopologyDiscovery: [{source: ufm, enabled: false}, {source: ufm}]"
    ),
    "an unknown source, and one that is there twice": Case(
        "networkTopologyDiscovery:\n"
        "- {source: roce, enabled: true}\n"
        "- {source: label, enabled: true}\n"
        "- {source: label, enabled: true}\n",
        [LabelSource(())],
        [
            "networkTopologyDiscovery[0]: unsupported discoverer type: roce",
            "networkTopologyDiscovery[2]: source label is there twice",
        ],
    ),
    "what is no configuration": Case("[1]", wrong=["networkTopologyDiscovery: expected a list"]),
    "an entry that is no mapping": Case(
        "networkTopologyDiscovery: [1]",
        wrong=["networkTopologyDiscovery[0]: expected a mapping, got 1"],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_read(case: Case) -> None:
    assert read(case.text, "home") == (case.sources, case.wrong)


def test_what_is_not_yaml_is_told() -> None:
    sources, wrong = read("a: [", "home")
    assert sources == []
    assert wrong[0].startswith("not YAML: ")
