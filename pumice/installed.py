"""Plugins that installed packages offer: entry points of the group `pumice.plugins`."""

from __future__ import annotations

import logging
from importlib.metadata import entry_points

from pumice.core.catalog import add_plugin

log = logging.getLogger(__name__)

PLUGINS = "pumice.plugins"


def add_installed_plugins() -> None:
    """
    Make the plugins known that installed packages offer; one that does not load is left out.

    An entry point names what builds the plugin from its arguments, usually a class. It goes
    before a built-in plugin of its name.
    """
    for entry in entry_points(group=PLUGINS):
        try:
            build = entry.load()
        except Exception:
            log.exception("plugin %s (%s) does not load, it is left out", entry.name, entry.value)
            continue
        add_plugin(entry.name, build)
        log.info("plugin %s: %s", entry.name, entry.value)
