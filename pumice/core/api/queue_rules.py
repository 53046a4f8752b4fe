"""What the API server refuses about a queue by itself; what concerns its tree is not here."""

from __future__ import annotations

from pumice.core.api import cel
from pumice.core.api.scheduling import Queue, QueueSpec
from pumice.core.api.schema import Rules, Schema

_GUARANTEE = "self.guarantee.resource"
_HAS_GUARANTEE = "has(self.guarantee) && has(self.guarantee.resource)"


def _quantity(of: str) -> str:
    return f"quantity(string({of}[r]))"


def _each(amounts: str, given: str, wrong: str, message: str, named: str) -> Schema:
    """
    Return the rule that no resource `r` of a map is `wrong`.

    `given` says whether the map is there at all; `named` is CEL for a message about one `r`.
    """
    return cel.rule(
        f"!({given}) || !{amounts}.exists(r, {wrong})",
        message,
        named=f"{amounts}.filter(r, {wrong}).map(r, {named})[0]",
    )


def _shown(word: str, amounts: str) -> str:
    """Return CEL for `word[r]=amount`."""
    return f"'{word}[' + r + ']=' + string({amounts}[r])"


def _amounts(word: str, amounts: str, given: str) -> list[Schema]:
    """Return the rules for the quantities of one map."""
    foreign = "r.contains('/') && !r.matches('^([^/]+[.])?kubernetes[.]io/')"
    return [
        _each(
            amounts,
            given,
            f"{_quantity(amounts)}.isLessThan(quantity('0'))",
            f"{word} must be greater than or equal to 0",
            f"{_shown(word, amounts)} + ' must be greater than or equal to 0'",
        ),
        _each(
            amounts,
            given,
            f"(r == 'pods' || {foreign}) && !{_quantity(amounts)}.isInteger()",
            f"{word} must be an integer for resources that have no fractions",
            f"{_shown(word, amounts)} + ' must be an integer'",
        ),
    ]


_ABOVE_CAPABILITY = (
    f"r in self.capability && {_quantity('self.deserved')}"
    f".isGreaterThan({_quantity('self.capability')})"
)
_NOT_DESERVED = (
    f"!has(self.deserved) || !(r in self.deserved)"
    f" || {_quantity(_GUARANTEE)}.isGreaterThan({_quantity('self.deserved')})"
)
_DESERVED = (
    "(has(self.deserved) && r in self.deserved"
    f" ? {_shown('deserved', 'self.deserved')} : 'deserved[' + r + ']')"
)

_QUEUE_SPEC = [
    _each(
        "self.deserved",
        "has(self.deserved) && has(self.capability)",
        _ABOVE_CAPABILITY,
        "deserved must be <= capability for each resource that both name",
        f"{_shown('deserved', 'self.deserved')} + ' must be <= '"
        f" + {_shown('capability', 'self.capability')}",
    ),
    _each(
        _GUARANTEE,
        _HAS_GUARANTEE,
        _NOT_DESERVED,
        "deserved must be >= guarantee for each resource that guarantee names",
        f"{_DESERVED} + ' must be >= ' + {_shown('guarantee', _GUARANTEE)}",
    ),
    *_amounts("capability", "self.capability", "has(self.capability)"),
    *_amounts("deserved", "self.deserved", "has(self.deserved)"),
    *_amounts("guarantee", _GUARANTEE, _HAS_GUARANTEE),
]

_QUEUE = [
    cel.rule(
        "!has(self.spec) || !has(self.spec.parent) || self.spec.parent != self.metadata.name",
        "a queue cannot use itself as parent",
        named="'queue ' + self.metadata.name + ' cannot use itself as parent'",
    ),
]

QUEUE_RULES: Rules = {Queue: _QUEUE, QueueSpec: _QUEUE_SPEC}
"""The rules by the struct that they are about."""
