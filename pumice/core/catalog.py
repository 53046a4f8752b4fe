"""
The catalogue of plugins and actions: names as they stand in the configuration -> what they do.

Built-in ones are imported when a configuration first names them. Others are added by whoever
starts the process, from Python entry points.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pumice.core.conf import Arguments
    from pumice.core.session import Action, Plugin

_PLUGINS: Final = {
    "binpack": "Binpack",
    "capacity": "Capacity",
    "cdp": "Cdp",
    "conformance": "Conformance",
    "deviceshare": "DeviceShare",
    "drf": "Drf",
    "extender": "Extender",
    "gang": "Gang",
    "network-topology-aware": "NetworkTopologyAware",
    "nodegroup": "NodeGroup",
    "nodeorder": "NodeOrder",
    "numa-aware": "NumaAware",
    "overcommit": "Overcommit",
    "pdb": "Pdb",
    "predicates": "Predicates",
    "priority": "Priority",
    "proportion": "Proportion",
    "rescheduling": "Rescheduling",
    "reservation": "Reservations",
    "resource-strategy-fit": "ResourceStrategyFit",
    "resourcequota": "ResourceQuotas",
    "sla": "Sla",
    "task-topology": "TaskTopology",
    "tdm": "Tdm",
    "usage": "Usage",
}
_ACTIONS: Final = {
    "allocate": "Allocate",
    "backfill": "Backfill",
    "enqueue": "Enqueue",
    "gangpreempt": "GangPreempt",
    "gangreclaim": "GangReclaim",
    "preempt": "Preempt",
    "reclaim": "Reclaim",
    "shuffle": "Shuffle",
}

PluginBuilder = Callable[["Arguments"], "Plugin"]
_added: dict[str, PluginBuilder] = {}


def add_plugin(name: str, build: PluginBuilder) -> None:
    """Make a plugin known; it takes the place of a built-in one of that name."""
    _added[name] = build


def is_added(name: str) -> bool:
    """Return whether a plugin is one that was added."""
    return name in _added


def remove_plugin(name: str) -> None:
    """Forget a plugin that was added."""
    _added.pop(name, None)


def plugin_names() -> list[str]:
    """Return the names of all plugins that are known."""
    return sorted(_PLUGINS.keys() | _added)


def plugin_named(name: str) -> PluginBuilder | None:
    """Return what builds a plugin from its arguments; None for an unknown name."""
    return _added.get(name) or _load("plugins", _PLUGINS, name)


def action_named(name: str) -> Callable[[], Action] | None:
    """Return what builds an action; None for one that is not available."""
    found: Callable[[], Action] | None = _load("actions", _ACTIONS, name)
    return found


def _load(package: str, classes: dict[str, str], name: str) -> Any:
    if name not in classes:
        return None
    found: Any = getattr(
        import_module(f"pumice.core.{package}.{name.replace('-', '_')}"), classes[name]
    )
    return found
