"""What the API server refuses about a HyperNode."""

from __future__ import annotations

from typing import Final

from pumice.core.api import cel
from pumice.core.api.schema import Rules
from pumice.core.api.topology import HyperNodeSpec, Member, MemberSelector, RegexMatch

NO_MEMBERS: Final = "member must have at least one member"
NO_SELECTOR: Final = "Either ExactMatch or RegexMatch or LabelMatch must be specified"
TWO_SELECTORS: Final = "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified"
BAD_PATTERN: Final = "member regexMatch pattern is invalid"

_SPEC = [cel.rule("has(self.members)", NO_MEMBERS)]
_MEMBER = [cel.rule("has(self.selector)", NO_SELECTOR)]

_WAYS = "[has(self.exactMatch), has(self.regexMatch), has(self.labelMatch)]"
_SELECTOR = [
    cel.rule(f"{_WAYS}.exists(given, given)", NO_SELECTOR),
    cel.rule(f"size({_WAYS}.filter(given, given)) <= 1", TWO_SELECTORS),
]

# An expression that does not compile is an error of the rule, which the API server reports with
# the compiler's words before this message.
_REGEX = [cel.rule("''.matches(self.pattern) in [true, false]", BAD_PATTERN)]

TOPOLOGY_RULES: Rules = {
    HyperNodeSpec: _SPEC,
    Member: _MEMBER,
    MemberSelector: _SELECTOR,
    RegexMatch: _REGEX,
}
"""The rules by the struct that they are about."""
