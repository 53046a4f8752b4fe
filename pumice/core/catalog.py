"""
The catalogue of plugins and actions: what they are, and by which names configurations know them.

Built-in ones are imported when a configuration first names them. Others are added by whoever
starts the process, from Python entry points.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pumice.core.conf import Arguments
    from pumice.core.session import Session

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


class Plugin(Protocol):
    """A policy. It registers its functions when a session opens and keeps no state after it."""

    name: str

    def on_session_open(self, ssn: Session) -> None:
        """Register functions at the extension points of the session."""

    def on_session_close(self, ssn: Session) -> None:
        """Write down what the plugin has to say of the groups."""


@runtime_checkable
class Hierarchical(Protocol):
    """A plugin that knows the flag `enableHierarchy`; it is set before the session opens."""

    hierarchy: bool


class Action(Protocol):
    """One step of a cycle."""

    name: str

    def execute(self, ssn: Session) -> None:
        """Change the session by the rules of the action."""


PluginBuilder = Callable[["Arguments"], Plugin]
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
