"""
What a case needs of the product, found by asking the product.

What a case lists as invalid on purpose is not needed: it is there to be refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from pumice.core import catalog, conf
from pumice.core.jobs.plugins import REGISTRY
from pumice.local.api import Object
from tests.cases import configuration
from tests.cases.errors import LackingError, MalformedError
from tests.cases.kinds import Kinds
from tests.cases.schema import Case


def require(case: Case) -> None:
    """Raise LackingError where an action or a plugin that the case names is not available."""
    try:
        parsed = conf.parse(configuration.text(case.config))
    except conf.ConfigurationError as error:
        raise MalformedError(f"config: {error}") from error
    plugins = [option.name for tier in parsed.tiers for option in tier]
    _lacking(
        *(f"action {a}" for a in parsed.actions if catalog.action_named(a) is None),
        *(f"plugin {p}" for p in plugins if catalog.plugin_named(p) is None),
        *(f"Job plugin {p}" for p in sorted(set(_job_plugins(case)) - REGISTRY.keys())),
    )


def require_kinds(case: Case, kinds: Kinds) -> None:
    """Raise LackingError where the API server does not serve an object of the case."""
    for body in _needed(case):
        kinds.of(body)
    for check in case.expect:
        for ref in check.refers_to:
            kinds.named(ref)


def _job_plugins(case: Case) -> Iterator[str]:
    for body in _needed(case):
        if body["kind"] == "Job":
            yield from body.get("spec", {}).get("plugins") or ()


def _needed(case: Case) -> list[Object]:
    invalid = set(case.intentionally_invalid)
    return [body for ref, body in case.objects().items() if ref not in invalid]


def _lacking(*what: str) -> None:
    if what:
        raise LackingError(f"not available yet: {', '.join(what)}")
