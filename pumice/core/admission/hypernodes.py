"""A HyperNode: who its members are."""

from __future__ import annotations

from collections.abc import Iterator

from pumice.core import re2
from pumice.core.admission import formats
from pumice.core.admission.errors import FieldError, invalid, listed
from pumice.core.api.topology import HyperNode, MemberSelector
from pumice.core.api.topology_rules import BAD_PATTERN, NO_MEMBERS, NO_SELECTOR, TWO_SELECTORS

_MEMBERS = ".spec.members"


def check(hypernode: HyperNode) -> list[FieldError]:
    """Return what is wrong with a new or changed HyperNode."""
    members = hypernode.spec.members or []
    if not members:
        return [FieldError("spec.members", f"{_MEMBERS}: Invalid value: null: {NO_MEMBERS}")]
    return [
        error
        for index, member in enumerate(members)
        for error in _selector(member.selector, f"spec.members[{index}].selector")
    ]


def _selector(selector: MemberSelector, at: str) -> Iterator[FieldError]:
    ways = (selector.exact_match, selector.regex_match, selector.label_match)
    given = sum(way is not None for way in ways)
    if given != 1:
        yield FieldError(at, TWO_SELECTORS if given else NO_SELECTOR)
    exact, regex = selector.exact_match, selector.regex_match
    if exact and (wrong := formats.dns_subdomain(exact.name)):
        text = f"member exactMatch validate failed {listed(wrong)}"
        yield FieldError(f"{at}.exactMatch.name", text)
    if regex and (why := _fault(regex.pattern)):
        field = f"{_MEMBERS}.selector.regexMatch.pattern"
        yield FieldError(f"{at}.regexMatch.pattern", invalid(field, regex.pattern, why))


def _fault(pattern: str) -> str:
    try:
        re2.compiled(pattern)
    except re2.PatternError as error:
        return f"{BAD_PATTERN}: {error}"
    return ""
