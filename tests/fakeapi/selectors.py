"""Label and field selectors, as query parameters have them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.fakeapi.refusals import Json, bad_request

Match = Callable[[Json], bool]

_REQUIREMENT = re.compile(
    r"""\s*(?:
        (?P<absent>!)\s*(?P<absent_key>[^\s,()=!]+)
      | (?P<key>[^\s,()=!]+)\s*(?:
            (?P<op>==|=|!=)\s*(?P<value>[^\s,()=!]*)
          | \s(?P<set>in|notin)\s*\((?P<values>[^()]*)\)
        )?
    )\s*(?:,|$)""",
    re.VERBOSE,
)

FIELDS = {
    "pods": (
        "metadata.name",
        "metadata.namespace",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "nodes": ("metadata.name", "spec.unschedulable"),
    "events": ("metadata.name", "metadata.namespace", "involvedObject.uid", "reason", "type"),
}


def labels(text: str) -> Match:
    """Return the predicate of a label selector."""
    tests: list[Callable[[dict[str, str]], bool]] = []
    position = 0
    while position < len(text):
        got = _REQUIREMENT.match(text, position)
        if not got:
            raise bad_request(f"unable to parse requirement: {text[position:]!r}")
        tests.append(_requirement(got.groupdict()))
        position = got.end()
    return lambda obj: all(t(obj["metadata"].get("labels") or {}) for t in tests)


def _requirement(got: dict[str, Any]) -> Callable[[dict[str, str]], bool]:
    if got["absent"]:
        return lambda have: got["absent_key"] not in have
    key = got["key"]
    if got["set"]:
        values = {v.strip() for v in got["values"].split(",")}
        if got["set"] == "in":
            return lambda have: have.get(key) in values
        return lambda have: have.get(key) not in values
    if got["op"] == "!=":
        return lambda have: have.get(key) != got["value"]
    if got["op"]:
        return lambda have: have.get(key) == got["value"]
    return lambda have: key in have


def fields(plural: str, text: str) -> Match:
    """Return the predicate of a field selector; few fields of each kind can be asked for."""
    tests: list[Match] = []
    for part in filter(None, text.split(",")):
        path, sign, value = part.replace("==", "=").partition("=")
        wanted = not path.endswith("!")
        path = path.removesuffix("!")
        if not sign or path not in FIELDS.get(plural, ("metadata.name", "metadata.namespace")):
            raise bad_request(f"field label not supported: {path}")
        tests.append(_field(path, value, wanted))
    return lambda obj: all(t(obj) for t in tests)


def _field(path: str, value: str, wanted: bool) -> Match:
    def test(obj: Json) -> bool:
        node: Any = obj
        for step in path.split("."):
            node = (node or {}).get(step)
        text = str(node).lower() if isinstance(node, bool) else str(node or "")
        if path in ("spec.unschedulable", "spec.hostNetwork") and not text:
            text = "false"
        return (text == value) == wanted

    return test
