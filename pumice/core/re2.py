r"""
Regular expressions in the syntax of RE2, which the API server and Volcano read them in.

Python's own syntax has more (references back, looking around, possessive repetition) and less
(`\z`, `\pL`, `\Q...\E`, `[[:alpha:]]`). What RE2 refuses is refused here with RE2's words; the
rest is written anew so that Python reads it and finds the same.
"""

from __future__ import annotations

import re
from typing import Final

_FLAGS: Final = re.compile(r"\?([imsU]*)(-[imsU]+)?([:)])")
_NAME: Final = re.compile(r"\?P?<([A-Za-z_]\w*)>", re.ASCII)
_COUNT: Final = re.compile(r"\{(\d+)(,(\d*))?\}")
_CLASS: Final = re.compile(r"\[:(\^?)([a-z]+):\]")
_PROPERTY: Final = re.compile(r"[pP](?:\{(?P<not>\^?)(?P<name>\w+)\}|(?P<letter>\w))")
_MOST: Final = 1000
_OCTAL: Final = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_PLAIN_ESCAPES: Final = frozenset("afnrtvdDsSwW")
# In a group of its own an assertion may be repeated, which RE2 allows.
_ASSERTIONS: Final = {"A": r"(?:\A)", "z": r"(?:\Z)", "b": r"(?:\b)", "B": r"(?:\B)"}
# As far as ASCII goes, which is all that names of objects are made of.
_PROPERTIES: Final = {
    "L": "A-Za-z",
    "Latin": "A-Za-z",
    "Ll": "a-z",
    "Lu": "A-Z",
    "N": "0-9",
    "Nd": "0-9",
    "P": r"!-#%-*,-/:;?@\[-\]_{}",
    "Pd": r"\-",
}
_POSIX: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


class PatternError(ValueError):
    """The text is no regular expression; the message is RE2's."""


def compiled(pattern: str) -> re.Pattern[str]:
    """Return the expression; raise PatternError."""
    try:
        return re.compile(_Reader(pattern).translated(), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"error parsing regexp: {error}") from error


class _Reader:
    """Goes through a pattern once and writes it anew."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._out: list[str] = []
        #: whether the last thing was a repetition, which cannot be repeated again
        self._repeated = False

    def translated(self) -> str:
        """Return the pattern as Python reads it."""
        while self._at < len(self._pattern):
            repeated, self._repeated = self._repeated, False
            match self._pattern[self._at]:
                case "\\":
                    self._escape()
                case "[":
                    self._set()
                case "(":
                    self._group()
                case "*" | "+" | "?":
                    self._repeat(1, repeated)
                case "{" if found := _COUNT.match(self._pattern, self._at):
                    if max(int(found[1]), int(found[3] or 0)) > _MOST:
                        raise self._error("invalid repeat count", found[0])
                    self._repeat(len(found[0]), repeated)
                case "^" | "$" as assertion:
                    self._write(f"(?:{assertion})", 1)
                case "{" | "}" as brace:
                    self._write(f"\\{brace}", 1)
                case _:
                    self._copy(1)
        return "".join(self._out)

    def _copy(self, length: int) -> None:
        self._out.append(self._pattern[self._at : self._at + length])
        self._at += length

    def _write(self, text: str, length: int) -> None:
        self._out.append(text)
        self._at += length

    def _error(self, what: str, culprit: str) -> PatternError:
        return PatternError(f"error parsing regexp: {what}: `{culprit}`")

    def _repeat(self, length: int, repeated: bool) -> None:
        if repeated:
            culprit = self._pattern[self._at - 1 : self._at + length]
            raise self._error("invalid nested repetition operator", culprit)
        lazy = self._pattern.startswith("?", self._at + length)
        self._copy(length + lazy)
        self._repeated = True

    def _escape(self, *, within: bool = False) -> None:
        """Read a backslash and what belongs to it; `within` a set some mean nothing."""
        rest = self._pattern[self._at + 1 :]
        if not rest:
            raise PatternError("error parsing regexp: trailing backslash at end of expression: ``")
        if rest[0] == "Q" and not within:
            quoted, _, _ = rest[1:].partition("\\E")
            ended = "\\E" in rest
            self._write(re.escape(quoted), 2 + len(quoted) + 2 * ended)
        elif rest[0] in "pP":
            self._property(rest, within)
        elif rest[0] in _ASSERTIONS and not within:
            self._write(_ASSERTIONS[rest[0]], 2)
        elif found := _OCTAL.match(rest):
            self._write(re.escape(chr(int(found[0], 8))), 1 + len(found[0]))
        elif rest.startswith("x{") and (found := re.match(r"x\{([0-9A-Fa-f]{1,6})\}", rest)):
            code = int(found[1], 16)
            if code > 0x10FFFF:
                raise self._error("invalid escape sequence", f"\\{found[0]}")
            self._write(re.escape(chr(code)), 1 + len(found[0]))
        elif re.match(r"x[0-9A-Fa-f]{2}", rest) or rest[0] in _PLAIN_ESCAPES:
            self._copy(2)
        elif rest[0].isalnum() or not rest[0].isascii():
            raise self._error("invalid escape sequence", f"\\{rest[0]}")
        else:
            self._copy(2)

    def _property(self, rest: str, within: bool) -> None:
        """Read a class of characters by its name in Unicode."""
        found = _PROPERTY.match(rest)
        chars = found and _PROPERTIES.get(found["name"] or found["letter"])
        others = found is not None and (rest[0] == "P") != bool(found["not"])
        if found is None or chars is None or (within and others):
            raise self._error("invalid character class range", "\\" + rest.partition("}")[0])
        self._write(chars if within else f"[{'^' * others}{chars}]", 1 + len(found[0]))

    def _set(self) -> None:
        """Read a set of characters."""
        start = self._at
        self._copy(1)
        if self._pattern.startswith("^", self._at):
            self._copy(1)
        first = True
        while not self._pattern.startswith("]", self._at) or first:
            if self._at >= len(self._pattern):
                raise self._error("missing closing ]", self._pattern[start:])
            first = False
            if found := _CLASS.match(self._pattern, self._at):
                if found[2] not in _POSIX:
                    raise self._error("invalid character class range", found[0])
                self._write(_POSIX[found[2]], len(found[0]))
            elif self._pattern[self._at] == "\\":
                self._escape(within=True)
            elif self._pattern[self._at] in "[&~|":
                # Python would take these for operations on sets one day.
                self._write("\\" + self._pattern[self._at], 1)
            else:
                self._copy(1)
        self._copy(1)

    def _group(self) -> None:
        """Read the head of a group."""
        self._copy(1)
        if not self._pattern.startswith("?", self._at):
            return
        if found := _NAME.match(self._pattern, self._at):
            self._write(f"?P<{found[1]}>", len(found[0]))
        elif (found := _FLAGS.match(self._pattern, self._at)) and (
            found[1] or found[2] or found[3] == ":"
        ):
            self._flags(found)
        else:
            culprit = self._pattern[self._at - 1 : self._at + 2]
            raise self._error("invalid or unsupported Perl syntax", culprit)

    def _flags(self, found: re.Match[str]) -> None:
        """Write flags as Python takes them; greediness does not change what is found."""
        on = found[1].replace("U", "")
        off = (found[2] or "").replace("U", "").removeprefix("-")
        flags = on + (f"-{off}" if off else "")
        if found[3] == ":":
            self._write(f"?{flags}:", len(found[0]))
            return
        # From here to the end of the group: Python has that for a group of its own alone.
        rest = self._pattern[self._at + len(found[0]) :]
        self._write(f"?{flags}:{_Reader(_to_end(rest)).translated()})", len(found[0]))
        self._at += len(_to_end(rest))


def _to_end(rest: str) -> str:
    """Return what is left of the group that a text begins in."""
    depth = 0
    at = 0
    while at < len(rest):
        match rest[at]:
            case "\\":
                at += 1
            case "[":
                at = rest.find("]", at + 2)
                if at < 0:
                    return rest
            case "(":
                depth += 1
            case ")":
                if not depth:
                    return rest[:at]
                depth -= 1
        at += 1
    return rest
