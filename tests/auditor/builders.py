"""
One-line histories for the tests of the rules.

Members of gang `ns/g` have their name as uid; versions follow time, a thousand to the second, so
that a test speaks only of seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from tests.auditor.facts import Dump, Entry, Gang, Mark, Node, Pod, Request, Sighting
from tests.auditor.history import History, Settings
from tests.auditor.rules import judge

EXTENDER, CONTROLLERS, KUBELET, ADMIN = "extender", "controllers", "kubelet", "admin"
SETTINGS = Settings(
    extender_user=EXTENDER, own_users=frozenset({CONTROLLERS}), scheduler_users=frozenset()
)
CPU = {"cpu": Fraction(1)}
Fact = Sighting[Any] | Request | Mark | Dump


def pod(name: str, node: str = "", **fields: Any) -> Pod:
    """A member of gang `g` in namespace `ns` that asks for one CPU; its uid is its name."""
    base = Pod(uid=name, namespace="ns", name=name, scheduler="volcano", group="g", requests=CPU)
    return replace(base, node=node, **fields)


def seen(at: float, *objects: Pod | Node | Gang, gone: bool = False) -> list[Fact]:
    """Sightings at one time; versions follow time, a thousand to the second."""
    return [Sighting(at, int(at * 1000) + i, o, gone) for i, o in enumerate(objects)]


def gang(minimum: int, **fields: Any) -> Gang:
    """PodGroup `ns/g`."""
    return replace(Gang("g-uid", "ns", "g", minimum), **fields)


def node(name: str, cpu: int, pods: int = 110) -> Node:
    """A node."""
    return Node(f"{name}-uid", name, {"cpu": Fraction(cpu), "pods": Fraction(pods)})


def request(at: float, user: str, verb: str, what: str, name: str, **fields: Any) -> Request:
    """A request about an object in `ns` that took 10 ms."""
    resource, _, subresource = what.partition("/")
    base = Request(at, at + 0.01, user, verb, resource, name, "ns", subresource)
    return replace(base, **fields)


def binding(at: float, name: str, node_name: str = "n", user: str = EXTENDER) -> Request:
    """A binding."""
    return request(at, user, "create", "pods/binding", name, node=node_name, uid=name)


def deletion(at: float, name: str, user: str) -> Request:
    """A delete."""
    return request(at, user, "delete", "pods", name, uid=name)


def dump(at: float, **states: str) -> Dump:
    """A ledger: `a="Bound n"` says that pod a is Bound on n."""
    parts = {name: [*state.split(" "), ""] for name, state in states.items()}
    return Dump(at, {uid: Entry(uid, "ns", uid, p[1], p[0]) for uid, p in parts.items()})


@dataclass(frozen=True)
class Case:
    """What happened until `ended`, and the sentences that the rule must answer with."""

    facts: Sequence[Fact | list[Fact]]
    want: list[str] = field(default_factory=list)
    ended: float = 100.0
    decided: frozenset[str] = frozenset()
    settings: Settings = SETTINGS


def history(case: Case) -> History:
    """Feed the facts as the program would."""
    told = History(started=0.0, ended=case.ended, decided=set(case.decided))
    for fact in (
        f for group in case.facts for f in (group if isinstance(group, list) else [group])
    ):
        match fact:
            case Request():
                told.requests.append(fact)
            case Mark():
                told.marks.append(fact)
            case Dump():
                told.dumps.append(fact)
            case Sighting(object=Pod()):
                told.saw_pod(fact)
            case Sighting(object=Node()):
                told.saw_node(fact)
            case Sighting(object=Gang()):
                told.saw_gang(fact)
    return told


def verdict(rule: str, case: Case) -> list[str]:
    """Return the rule's sentences."""
    return [v.sentence for v in judge(history(case), replace(case.settings, rules=rule))]
