"""The scheduler configuration: defaults, flags, arguments, and what is refused in which words."""

from __future__ import annotations

import pytest

from pumice.core.conf import (
    DEFAULT,
    FLAGS,
    Arguments,
    Configuration,
    ConfigurationError,
    PluginOption,
    parse,
)

ON = frozenset(FLAGS) - {"enableHierarchy", "enabledClusterOrder"}


def test_the_default_is_volcanos() -> None:
    assert DEFAULT.actions == ("enqueue", "allocate", "backfill")
    assert [[plugin.name for plugin in tier] for tier in DEFAULT.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder"],
    ]
    assert {plugin.enabled for tier in DEFAULT.tiers for plugin in tier} == {ON}
    assert DEFAULT.warnings == ()


def test_everything_that_can_be_written() -> None:
    conf = parse("""
actions: " enqueue ,allocate"
tiers:
- plugins:
  - name: gang
    enablePreemptable: false
    enableHierarchy: true
- plugins:
  - name: nodeorder
    arguments:
      nodeaffinity.weight: 2
configurations:
- name: allocate
  arguments: {predicateErrorCacheEnable: true}
metrics:
  type: prometheus
""")
    assert conf == Configuration(
        actions=("enqueue", "allocate"),
        tiers=(
            (PluginOption("gang", ON - {"enablePreemptable"} | {"enableHierarchy"}),),
            (PluginOption("nodeorder", ON, Arguments({"nodeaffinity.weight": 2})),),
        ),
        configurations={"allocate": Arguments({"predicateErrorCacheEnable": True})},
        metrics={"type": "prometheus"},
    )
    assert conf.action("backfill") == Arguments()


REFUSED = {
    "not YAML": ("actions: [", "not YAML: while parsing"),
    "a text": ("hello", "the configuration: expected a mapping, got str"),
    "nothing at all": ("", "actions: no action is named"),
    "actions as a list": ("actions: [allocate]", "actions: expected names with commas between"),
    "an unknown action": ("actions: allocate, elect", "failed to find Action elect"),
    "tiers as a mapping": ("actions: allocate\ntiers: {}", "tiers: expected a list, got dict"),
    "a plugin without a name": (
        "actions: allocate\ntiers:\n- plugins:\n  - arguments: {}",
        r"tiers\[0\].plugins\[0\]: a plugin needs a name",
    ),
    "a plugin that is a text": (
        "actions: allocate\ntiers:\n- plugins:\n  - gang",
        r"tiers\[0\].plugins\[0\]: expected a mapping, got str",
    ),
    "plugins that are a mapping": (
        "actions: allocate\ntiers:\n- plugins: {name: gang}",
        r"tiers\[0\].plugins: expected a list, got dict",
    ),
    "a flag that is a text": (
        'actions: allocate\ntiers:\n- plugins:\n  - {name: gang, enableJobOrder: "no"}',
        r"tiers\[0\].plugins\[0\].enableJobOrder: 'no' is neither true nor false",
    ),
    "arguments as a list": (
        "actions: allocate\ntiers:\n- plugins:\n  - {name: gang, arguments: [1]}",
        r"tiers\[0\].plugins\[0\].arguments: expected a mapping, got list",
    ),
    "arguments for an unknown action": (
        "actions: allocate\nconfigurations:\n- name: elect",
        r"configurations\[0\]: 'elect' is not the name of an action",
    ),
    "drf with hierarchy beside proportion": (
        "actions: allocate\ntiers:\n- plugins:\n  - {name: drf, enableHierarchy: true}\n"
        "  - {name: proportion}",
        "proportion and drf with hierarchy enabled conflicts",
    ),
}


@pytest.mark.parametrize(("text", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(text: str, want: str) -> None:
    with pytest.raises(ConfigurationError, match=want):
        parse(text)


def test_drf_with_hierarchy_and_proportion_may_stand_in_different_tiers() -> None:
    conf = parse(
        "actions: allocate\ntiers:\n- plugins:\n  - {name: drf, enableHierarchy: true}\n"
        "- plugins:\n  - {name: proportion}"
    )
    assert [tier[0].name for tier in conf.tiers] == ["drf", "proportion"]


def test_misspelt_keys_are_told() -> None:
    conf = parse(
        "actions: allocate\ntier: []\ntiers:\n- plugins:\n  - {name: gang, enablejoborder: true}"
    )
    assert conf.warnings == (
        "unknown key tier, ignored",
        "tiers[0].plugins[0]: unknown key enablejoborder, ignored",
    )


def test_arguments_have_types() -> None:
    args = Arguments(
        {"int": 3, "float": 2.5, "text": "a, b,,c ", "yes": "true", "no": False, "odd": "maybe"}
    )
    assert (args.integer("int", 0), args.number("int", 0.0)) == (3, 3.0)
    assert (args.integer("float", 1), args.number("float", 0.0)) == (1, 2.5)
    assert (args.integer("text", 1), args.number("text", 1.5)) == (1, 1.5)
    assert (args.boolean("yes", False), args.boolean("no", True)) == (True, False)
    assert (args.boolean("odd", True), args.boolean("missing", True)) == (True, True)
    assert (args.integer("no", 7), args.text("int", "x")) == (7, "x")
    assert args.names("text") == ["a", "b", "c"]


def test_arguments_of_the_wrong_type_are_told() -> None:
    args = Arguments({"weight": "2", "right": 1})
    args.integer("weight", 1)
    args.integer("right", 1)
    args.integer("missing", 1)
    assert args.faults == {"weight": "argument weight: '2' is not an integer, ignored"}
