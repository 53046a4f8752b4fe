"""Arguments of Job plugins: what Go's `flag` package makes of a list of words."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.jobs.plugins.arguments import Arguments, Flag, Value, parse

ON = Flag("on", True)
OFF = Flag("off", False)
PORT = Flag("port", 22)
PATH = Flag("key-path", "/root")


@dataclass(frozen=True)
class Case:
    given: list[str]
    #: on, off, port, key-path
    want: tuple[Value, ...] = (True, False, 22, "/root")
    fault: str = ""


CASES = {
    "nothing given is all defaults": Case([]),
    "one dash is as good as two": Case(["-off", "--port=1"], (True, True, 1, "/root")),
    "a boolean is true without a value": Case(["--off"], (True, True, 22, "/root")),
    "a boolean takes a value after the sign alone": Case(
        ["--on=false", "--off=T"], (False, True, 22, "/root")
    ),
    "a word after a boolean ends the reading": Case(
        ["--off", "false", "--port=1"], (True, True, 22, "/root")
    ),
    "a value may be the next word": Case(
        ["--port", "80", "-key-path", "/k"], (True, False, 80, "/k")
    ),
    "the next word is a value whatever it looks like": Case(
        ["--key-path", "--off"], (True, False, 22, "--off")
    ),
    "a value may hold the sign": Case(["--key-path=a=b"], (True, False, 22, "a=b")),
    "a value may be empty": Case(["--key-path="], (True, False, 22, "")),
    "the last of two counts": Case(["--port=1", "--port=2"], (True, False, 2, "/root")),
    "two dashes alone end the reading": Case(["--off", "--", "--port=1"],
                                             (True, True, 22, "/root")),
    "a dash alone ends the reading": Case(["-", "--off"]),
    "an unknown flag ends the reading, and what came before stays": Case(
        ["--off", "--no-root", "--port=1"], (True, True, 22, "/root"),
        "flag provided but not defined: -no-root",
    ),
    "a boolean that is none": Case(
        ["--off=maybe", "--port=1"], fault='invalid value "maybe" for flag -off'
    ),
    "a number that is none": Case(
        ["--off", "--port=many"], (True, True, 22, "/root"), 'invalid value "many" for flag -port'
    ),
    "a value that is missing": Case(["--port"], fault="flag needs an argument: -port"),
    "three dashes": Case(["---off"], fault="bad flag syntax: ---off"),
    "no name": Case(["--=x"], fault="bad flag syntax: --=x"),
}  # fmt: skip


def read(given: list[str]) -> Arguments:
    return parse(given, ON, OFF, PORT, PATH)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_arguments(case: Case) -> None:
    got = read(case.given)

    assert (got.get(ON), got.get(OFF), got.get(PORT), got.get(PATH)) == case.want
    assert got.fault == case.fault


@given(st.lists(st.text("-=oxnf 1", max_size=8), max_size=6))
def test_any_words_give_values_of_the_right_type(words: list[str]) -> None:
    got = read(words)

    types = [type(v) for v in (got.get(ON), got.get(OFF), got.get(PORT), got.get(PATH))]
    assert types == [bool, bool, int, str]
