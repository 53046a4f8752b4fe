"""
The configuration of discovery, in Volcano's format.

    networkTopologyDiscovery:
    - source: label
      enabled: true
      config:
        networkTopologyTypes:
          rack:                                  # from the highest tier down to the node
          - nodeLabel: example.com/block
          - nodeLabel: example.com/rack
          - nodeLabel: kubernetes.io/hostname
    - source: ufm
      enabled: true
      interval: 10m
      credentials: {secretRef: {name: ufm-credentials, namespace: volcano-system}}
      config: {endpoint: ufm.example.com, insecureSkipVerify: false}

A source that is not right is left out and told of; the others are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from pumice.core.hypernodes.types import SourceKind
from pumice.core.jobs import durations

KEY: Final = "volcano-controller.conf"
"""The key of the ConfigMap that the text is in."""
HOSTNAME: Final = "kubernetes.io/hostname"
DEFAULT_INTERVAL_S: Final = 3600.0
MAX_TYPE_NAME: Final = 20

Tree = Mapping[str, Any]


class ConfigurationError(ValueError):
    """A part of the configuration cannot be used; the message says which, and why."""


@dataclass(frozen=True, slots=True)
class Topology:
    """A network whose parts are told by labels of nodes, those of the lowest tier first."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LabelSource:
    """Labels of nodes."""

    topologies: tuple[Topology, ...]
    kind: SourceKind = "label"


@dataclass(frozen=True, slots=True)
class UfmSource:
    """A Unified Fabric Manager, asked every so often."""

    endpoint: str
    #: namespace and name of the Secret with `username` and `password`
    secret: tuple[str, str]
    interval_s: float = DEFAULT_INTERVAL_S
    is_verified: bool = True
    kind: SourceKind = "ufm"


Source = LabelSource | UfmSource


def read(text: str, namespace: str) -> tuple[list[Source], list[str]]:
    """
    Return the sources that are enabled and right, and what is wrong with the rest.

    `namespace` is where a Secret is looked for that says no namespace.
    """
    try:
        entries = _entries(text)
    except ConfigurationError as error:
        return [], [str(error)]
    found: dict[SourceKind, Source] = {}
    wrong: list[str] = []
    for index, entry in enumerate(entries):
        where = f"networkTopologyDiscovery[{index}]"
        try:
            source = _source(entry, namespace, wrong) if isinstance(entry, dict) else _none(entry)
            if source and source.kind in found:
                raise ConfigurationError(f"source {source.kind} is there twice")
        except ConfigurationError as error:
            wrong.append(f"{where}: {error}")
        else:
            if source:
                found[source.kind] = source
    return list(found.values()), wrong


def _entries(text: str) -> Sequence[object]:
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"not YAML: {' '.join(str(error).split())}") from error
    if tree is None:
        return []
    entries = tree.get("networkTopologyDiscovery") if isinstance(tree, dict) else tree
    if entries is None:
        return []
    if not isinstance(tree, dict) or not isinstance(entries, list):
        raise ConfigurationError("networkTopologyDiscovery: expected a list")
    return entries


def _none(entry: object) -> Source | None:
    raise ConfigurationError(f"expected a mapping, got {entry!r}")


def _source(entry: Tree, namespace: str, wrong: list[str]) -> Source | None:
    """Return the source; None for one that is off."""
    if entry.get("enabled") is not True:
        return None
    config = _mapping(entry, "config")
    match entry.get("source"):
        case "label":
            return LabelSource(tuple(_topologies(_mapping(config, "networkTopologyTypes"), wrong)))
        case "ufm":
            return _ufm(entry, config, namespace)
        case other:
            raise ConfigurationError(f"unsupported discoverer type: {other}")


def _topologies(types: Tree, wrong: list[str]) -> Iterator[Topology]:
    """Return the types that can be used, in the order of their names."""
    for name in sorted(types, key=str):
        try:
            yield _topology(str(name), types[name])
        except ConfigurationError as error:
            wrong.append(f"networkTopologyTypes.{name}: ignored: {error}")


def _topology(name: str, levels: object) -> Topology:
    if len(name) > MAX_TYPE_NAME:
        raise ConfigurationError(f"the name is longer than {MAX_TYPE_NAME} characters")
    if not isinstance(levels, list) or not all(
        isinstance(level, dict) and isinstance(level.get("nodeLabel"), str) and level["nodeLabel"]
        for level in levels
    ):
        raise ConfigurationError("expected a list of {nodeLabel: KEY}")
    labels = [level["nodeLabel"] for level in levels]
    if len(set(labels)) < len(labels):
        raise ConfigurationError("a label is there twice")
    # The last one stands for the node itself; one that is alone is a tier all the same.
    kept = labels[:-1] if len(labels) > 1 or labels == [HOSTNAME] else labels
    return Topology(name, tuple(reversed(kept)))


def _ufm(entry: Tree, config: Tree, namespace: str) -> UfmSource:
    endpoint = config.get("endpoint")
    if not isinstance(endpoint, str) or not endpoint:
        raise ConfigurationError("UFM endpoint is not configured")
    secret = _mapping(_mapping(entry, "credentials"), "secretRef")
    name = secret.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigurationError("UFM authentication credentials are not configured")
    return UfmSource(
        endpoint=endpoint if "://" in endpoint else f"https://{endpoint}",
        secret=(str(secret.get("namespace") or namespace), name),
        interval_s=_interval(entry.get("interval")),
        is_verified=config.get("insecureSkipVerify") is not True,
    )


def _interval(value: object) -> float:
    if value is None:
        return DEFAULT_INTERVAL_S
    length = durations.seconds(str(value))
    if length is None or length <= 0:
        raise ConfigurationError(f"interval: {value!r} is not a duration such as 10m")
    return length


def _mapping(tree: Tree, key: str) -> Tree:
    value = tree.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigurationError(f"{key}: expected a mapping, got {value!r}")
    return value
