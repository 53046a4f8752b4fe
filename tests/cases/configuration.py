"""The scheduler configuration of a case, as a file for the extender."""

from __future__ import annotations

import yaml

from tests.cases.schema import Config

STOCK = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""
"""What a case runs with whose answer does not depend on it."""


def text(config: Config) -> str:
    """Return the content of the configuration file."""
    if not config.counts:
        return STOCK
    return yaml.safe_dump({"actions": config.actions, "tiers": config.tiers}, sort_keys=False)
