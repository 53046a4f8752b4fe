"""
The scheduler configuration: actions, tiers of plugins with their flags, arguments.

The format is Volcano's `volcano-scheduler.conf`. A flag that is not written is on, but for two.
Arguments are typed when they are read: what has the wrong type counts as absent, as in Volcano,
and is collected in `Arguments.faults` so that somebody may be told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import yaml

ACTIONS: Final = (
    "enqueue",
    "allocate",
    "backfill",
    "preempt",
    "reclaim",
    "shuffle",
    "gangpreempt",
    "gangreclaim",
)
FLAGS: Final = {
    "enableJobOrder": True,
    "enableHierarchy": False,
    "enableJobReady": True,
    "enableJobPipelined": True,
    "enableTaskOrder": True,
    "enablePreemptable": True,
    "enableReclaimable": True,
    "enablePreemptive": True,
    "enableQueueOrder": True,
    "enabledClusterOrder": False,
    "enablePredicate": True,
    "enableBestNode": True,
    "enableNodeOrder": True,
    "enableTargetJob": True,
    "enableReservedNodes": True,
    "enableJobEnqueued": True,
    "enabledVictim": True,
    "enableJobStarving": True,
    "enabledOverused": True,
    "enabledAllocatable": True,
    "enabledHyperNodeOrder": True,
    "enabledSubJobReady": True,
    "enabledSubJobPipelined": True,
    "enabledSubJobOrder": True,
    "enabledHyperNodeGradient": True,
}
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})

T = TypeVar("T")
Yaml = object
"""A value as YAML gives it."""


class ConfigurationError(ValueError):
    """The configuration cannot be used; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The `arguments` of one plugin or action."""

    raw: Mapping[str, Yaml] = field(default_factory=dict)
    #: keys whose value had the wrong type when it was read
    faults: dict[str, str] = field(default_factory=dict, compare=False)

    def integer(self, key: str, default: int) -> int:
        """Return the integer under `key`; anything else counts as absent."""
        found = self.raw.get(key)
        if isinstance(found, int) and not isinstance(found, bool):
            return found
        return self._absent(key, "an integer", default)

    def number(self, key: str, default: float) -> float:
        """Return the number under `key`; anything else counts as absent."""
        found = self.raw.get(key)
        if isinstance(found, int | float) and not isinstance(found, bool):
            return float(found)
        return self._absent(key, "a number", default)

    def boolean(self, key: str, default: bool) -> bool:
        """Return the truth value under `key`, which may be text; else it counts as absent."""
        found = self.raw.get(key)
        if isinstance(found, bool):
            return found
        if isinstance(found, str) and found in _TRUE | _FALSE:
            return found in _TRUE
        return self._absent(key, "true or false", default)

    def text(self, key: str, default: str = "") -> str:
        """Return the text under `key`; anything else counts as absent."""
        found = self.raw.get(key)
        return found if isinstance(found, str) else self._absent(key, "a text", default)

    def names(self, key: str) -> list[str]:
        """Return a comma-separated list under `key`, without blanks."""
        return [name for part in self.text(key).split(",") if (name := part.strip())]

    def section(self, key: str) -> Arguments:
        """Return the arguments in a mapping under `key`; anything else counts as empty."""
        found = self.raw.get(key)
        if not isinstance(found, Mapping):
            return Arguments(self._absent(key, "a mapping", {}), self.faults)
        return Arguments({str(name): value for name, value in found.items()}, self.faults)

    def _absent(self, key: str, wanted: str, default: T) -> T:
        if key in self.raw:
            self.faults[key] = f"argument {key}: {self.raw[key]!r} is not {wanted}, ignored"
        return default


@dataclass(frozen=True, slots=True)
class PluginOption:
    """A plugin in a tier: its flags and arguments."""

    name: str
    enabled: frozenset[str] = frozenset(flag for flag, on in FLAGS.items() if on)
    arguments: Arguments = field(default_factory=Arguments)

    def has(self, flag: str) -> bool:
        """Return whether a flag is on."""
        return flag in self.enabled


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a session is run by."""

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginOption, ...], ...]
    #: arguments by action
    configurations: Mapping[str, Arguments] = field(default_factory=dict)
    #: where node usage comes from, as written
    metrics: Mapping[str, Yaml] = field(default_factory=dict)
    #: what is odd but can be used
    warnings: tuple[str, ...] = ()
    #: as it was written
    text: str = field(default="", compare=False, repr=False)

    def action(self, name: str) -> Arguments:
        """Return the arguments of an action."""
        return self.configurations.get(name, Arguments())


def parse(text: str) -> Configuration:
    """Return the configuration in a YAML text; raise ConfigurationError where it is unusable."""
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as fault:
        raise ConfigurationError(f"not YAML: {' '.join(str(fault).split())}") from fault
    root = _mapping(tree, "the configuration")
    warnings = [f"unknown key {key}, ignored" for key in sorted(root.keys() - _ROOT_KEYS)]
    tiers = tuple(
        _tier(tier, f"tiers[{i}]", warnings) for i, tier in enumerate(_list(root, "tiers"))
    )
    return Configuration(
        actions=_actions(root.get("actions", "")),
        tiers=tiers,
        configurations=_configurations(_list(root, "configurations")),
        metrics=_mapping(root.get("metrics"), "metrics"),
        warnings=tuple(warnings),
        text=text,
    )


_ROOT_KEYS: Final = frozenset({"actions", "tiers", "configurations", "metrics"})
_PLUGIN_KEYS: Final = frozenset({"name", "arguments", *FLAGS})


def _actions(text: Yaml) -> tuple[str, ...]:
    if not isinstance(text, str):
        raise ConfigurationError(f"actions: expected names with commas between, got {text!r}")
    actions = tuple(name for part in text.split(",") if (name := part.strip()))
    if not actions:
        raise ConfigurationError("actions: no action is named")
    for name in actions:
        if name not in ACTIONS:
            raise ConfigurationError(f"failed to find Action {name}")
    return actions


def _tier(tree: Yaml, where: str, warnings: list[str]) -> tuple[PluginOption, ...]:
    plugins = _list(_mapping(tree, where), "plugins", where)
    options = tuple(
        _plugin(plugin, f"{where}.plugins[{i}]", warnings) for i, plugin in enumerate(plugins)
    )
    flags = {option.name: option.enabled for option in options}
    if "enableHierarchy" in flags.get("drf", ()) and "proportion" in flags:
        raise ConfigurationError(f"{where}: proportion and drf with hierarchy enabled conflicts")
    for option in options:
        if option.name == "deviceshare":
            _check_sharing(option.arguments, where)
    return options


def _check_sharing(args: Arguments, where: str) -> None:
    """Raise ConfigurationError where devices are to be shared in ways that exclude each other."""
    kinds = ("GPUSharingEnable", "GPUNumberEnable", "VGPUEnable")
    on = [f"deviceshare.{kind}" for kind in kinds if args.boolean(f"deviceshare.{kind}", False)]
    if len(on) > 1:
        raise ConfigurationError(f"{where}: {' and '.join(on)}: only one of them can be in force")


def _plugin(tree: Yaml, where: str, warnings: list[str]) -> PluginOption:
    plugin = _mapping(tree, where)
    name = plugin.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"{where}: a plugin needs a name")
    warnings += [f"{where}: unknown key {k}, ignored" for k in sorted(plugin.keys() - _PLUGIN_KEYS)]
    enabled = set()
    for flag, default in FLAGS.items():
        on = plugin.get(flag)
        if on is not None and not isinstance(on, bool):
            raise ConfigurationError(f"{where}.{flag}: {on!r} is neither true nor false")
        if default if on is None else on:
            enabled.add(flag)
    arguments = _mapping(plugin.get("arguments"), f"{where}.arguments")
    return PluginOption(name, frozenset(enabled), Arguments(arguments))


def _configurations(trees: list[Yaml]) -> dict[str, Arguments]:
    found = {}
    for i, tree in enumerate(trees):
        where = f"configurations[{i}]"
        entry = _mapping(tree, where)
        name = entry.get("name")
        if not isinstance(name, str) or name not in ACTIONS:
            raise ConfigurationError(f"{where}: {name!r} is not the name of an action")
        found[name] = Arguments(_mapping(entry.get("arguments"), f"{where}.arguments"))
    return found


def _mapping(tree: Yaml, where: str) -> dict[str, Yaml]:
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigurationError(f"{where}: expected a mapping, got {type(tree).__name__}")
    return {str(key): value for key, value in tree.items()}


def _list(tree: Mapping[str, Yaml], key: str, where: str = "") -> list[Yaml]:
    found = tree.get(key)
    if found is None:
        return []
    if not isinstance(found, list):
        path = f"{where}.{key}" if where else key
        raise ConfigurationError(f"{path}: expected a list, got {type(found).__name__}")
    return found


DEFAULT_TEXT: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
DEFAULT: Final = parse(DEFAULT_TEXT)
"""What a scheduler without a configuration file runs, as in Volcano."""
