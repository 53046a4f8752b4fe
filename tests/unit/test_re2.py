"""RE2's expressions in Python: the same are refused, and the same is found."""

from __future__ import annotations

import pytest

from pumice.core import re2

FOUND: dict[str, tuple[str, list[str]]] = {
    "a prefix": ("^node-", ["node-0", "node-12"]),
    "found anywhere": ("ode", ["node-0", "node-12"]),
    "the end of the text": (r"-0\z", ["node-0"]),
    "repetition": ("-[0-9]{2}$", ["node-12"]),
    "a group with a name": ("(?P<kind>node)-(?<number>0)", ["node-0"]),
    "no matter in what case": ("(?i)NODE-1", ["node-12"]),
    "no matter in what case, within a group": ("(?i:RACK).a$", ["rack.a"]),
    "literally": (r"\Qrack.a\E", ["rack.a"]),
    "a class by its name": ("^[[:alpha:]]+[[:punct:]]a", ["rack.a"]),
    "a class by its name in Unicode": (r"^\pL+\p{Pd}\p{Nd}$", ["node-0"]),
    "anything but a class": (r"\PL0", ["node-0"]),
    "an assertion again and again": ("^*rack", ["rack.a"]),
    "a brace that counts nothing": ("{,2}|rack", ["rack.a"]),
    "a code": (r"\x6eode-\x{30}", ["node-0"]),
    "an octal code": (r"\60", ["node-0"]),
    "a bracket within a set": ("[[.]a", ["rack.a"]),
    "everything": ("", ["node-0", "node-12", "rack.a"]),
}


@pytest.mark.parametrize(("pattern", "want"), FOUND.values(), ids=FOUND.keys())
def test_what_is_found(pattern: str, want: list[str]) -> None:
    expression = re2.compiled(pattern)
    assert [name for name in ("node-0", "node-12", "rack.a") if expression.search(name)] == want


REFUSED = {
    "a reference back": (r"(a)\1", r"invalid escape sequence: `\1`"),
    "a look ahead": ("a(?=b)", "invalid or unsupported Perl syntax: `(?=`"),
    "a look behind": ("(?<!a)b", "invalid or unsupported Perl syntax: `(?<`"),
    "an atomic group": ("(?>a)", "invalid or unsupported Perl syntax: `(?>`"),
    "a repetition that keeps": ("a*+", "invalid nested repetition operator: `*+`"),
    "a repetition of a repetition": ("a{2}{3}", "invalid nested repetition operator: `}{3}`"),
    "too many": ("a{1001}", "invalid repeat count: `{1001}`"),
    "a set that stays open": ("node-[0-9", "missing closing ]: `[0-9`"),
    "a group that stays open": ("(a", "missing ), unterminated subpattern"),
    "a group that nobody opened": ("a)", "unbalanced parenthesis"),
    "nothing to repeat": ("*a", "nothing to repeat"),
    "a backslash at the end": ("a\\", "trailing backslash"),
    "an escape that means nothing": (r"\y", r"invalid escape sequence: `\y`"),
    "a class that there is not": ("[[:nothing:]]", "invalid character class range"),
    "a class of Unicode that there is not": (r"\p{Nothing}", "invalid character class range"),
    "a range that goes down": ("[z-a]", "bad character range"),
    "a code that there is not": (r"\x{110000}", "invalid escape sequence"),
}


@pytest.mark.parametrize(("pattern", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(re2.PatternError) as refused:
        re2.compiled(pattern)
    assert str(refused.value).startswith("error parsing regexp: ")
    assert words in str(refused.value)
