"""waves: who of a gang is let go first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.api.core import Pod
from pumice.core.ids import PodUid
from pumice.core.model.signatures import PodTerm, Signature, Spread
from pumice.core.waves import Member, waves

ZONES = {"n1": "a", "n2": "a", "n3": "b", "n4": "b"}
LABELS = frozenset({"role", "job"})


def domain_of(node: str, topology_key: str) -> str | None:
    return {"zone": ZONES.get(node), "host": node}.get(topology_key)


def near(role: str, key: str = "zone") -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"role": role}}, "topologyKey": key}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def apart(role: str, key: str = "host") -> dict[str, Any]:
    terms = near(role, key)["podAffinity"]
    return {"podAntiAffinity": terms}


def spread(role: str, skew: int = 1, key: str = "zone") -> list[dict[str, Any]]:
    return [
        {
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"role": role}},
        }
    ]


def a_member(uid: str, role: str, *claims: str, **spec: Any) -> Member:
    labels = {"role": role, "index": uid}
    raw = {"metadata": {"name": uid, "namespace": "ns", "labels": labels}, "spec": spec}
    signature = Signature.of(msgspec.convert(raw, Pod), LABELS)
    return Member(PodUid(uid), signature, labels, "ns", frozenset(claims))


def members(role: str, n: int, **spec: Any) -> list[Member]:
    return [a_member(f"{role}{i}", role, **spec) for i in range(n)]


@dataclass(frozen=True)
class Others:
    """Pods outside the gang: zones that satisfy every affinity, and counts for every spread."""

    zones: tuple[str, ...] = ()
    count: Mapping[str, int] = field(default_factory=dict)

    def satisfies(self, terms: tuple[PodTerm, ...], topology_key: str, domain: str) -> bool:
        return domain in self.zones

    def counts(self, signature: Signature, constraint: Spread) -> Mapping[str, int]:
        return self.count


@dataclass(frozen=True)
class Case:
    members: Sequence[Member]
    nodes: str
    """The planned node of each member, in their order."""
    want: list[str]
    outside: Others | None = None
    settling: frozenset[str] = frozenset()
    alone: bool = False


CASES = {
    "nobody": Case([], "", []),
    "members without needs go together": Case(members("w", 3), "n1 n2 n3", ["w0 w1 w2"]),
    "those whom others need go first": Case(
        [*members("w", 2, affinity=near("ps")), a_member("ps", "ps")],
        "n1 n2 n1",
        ["ps", "w0 w1"],
    ),
    "a need in another domain is met by somebody outside": Case(
        [a_member("w", "w", affinity=near("ps")), a_member("ps", "ps")],
        "n3 n1",
        ["w ps"],
    ),
    "affinity to the pod's own labels needs nobody": Case(
        members("w", 3, affinity=near("w")), "n1 n1 n2", ["w0 w1 w2"]
    ),
    "affinity to pods outside the gang needs no waves": Case(
        members("w", 2, affinity=near("cache")), "n1 n2", ["w0 w1"]
    ),
    "a need that is known to be met outside needs no waves": Case(
        [*members("w", 2, affinity=near("ps")), a_member("ps", "ps")],
        "n1 n2 n1",
        ["w0 w1 ps"],
        Others(zones=("a",)),
    ),
    "a chain of needs takes a wave for each link": Case(
        [
            a_member("c", "c", affinity=near("b")),
            a_member("b", "b", affinity=near("a")),
            a_member("a", "a"),
        ],
        "n1 n1 n1",
        ["a", "b", "c"],
    ),
    "one of those who are needed is enough": Case(
        [a_member("w", "w", affinity=near("ps")), *members("ps", 2)],
        "n1 n1 n2",
        ["ps0 ps1", "w"],
    ),
    "two who need each other go together": Case(
        [a_member("a", "a", affinity=near("b")), a_member("b", "b", affinity=near("a"))],
        "n1 n2",
        ["a b"],
    ),
    "anti-affinity needs no waves": Case(
        members("w", 3, affinity=apart("w")), "n1 n2 n3", ["w0 w1 w2"]
    ),
    "an even spread goes one pod per domain at a time": Case(
        members("w", 4, topologySpreadConstraints=spread("w")),
        "n1 n2 n3 n4",
        ["w0 w2", "w1 w3"],
    ),
    "a spread over hosts goes at once where every host gets one": Case(
        members("w", 4, topologySpreadConstraints=spread("w", key="host")),
        "n1 n2 n3 n4",
        ["w0 w1 w2 w3"],
    ),
    "a spread of other pods does not hold up these": Case(
        members("w", 3, topologySpreadConstraints=spread("ps")), "n1 n1 n1", ["w0 w1 w2"]
    ),
    "pods that a spread counts keep its pace without having it": Case(
        [*members("w", 2, topologySpreadConstraints=spread("w")), a_member("x", "w")],
        "n1 n3 n1",
        ["w0 w1", "x"],
    ),
    "a soft spread needs no waves": Case(
        members(
            "w",
            2,
            topologySpreadConstraints=[{**spread("w")[0], "whenUnsatisfiable": "ScheduleAnyway"}],
        ),
        "n1 n2",
        ["w0 w1"],
    ),
    "a domain that is ahead waits for the others": Case(
        members("w", 3, topologySpreadConstraints=spread("w")),
        "n1 n3 n4",
        ["w1", "w0 w2"],
        Others(count={"a": 1, "b": 0}),
    ),
    "a larger skew lets more pods go at once where the counts are known": Case(
        members("w", 4, topologySpreadConstraints=spread("w", skew=2)),
        "n1 n2 n1 n2",
        ["w0 w1", "w2 w3"],
        Others(count={"a": 0, "b": 2}),
    ),
    "needs and spread together": Case(
        [
            *members("w", 2, affinity=near("ps"), topologySpreadConstraints=spread("w")),
            a_member("ps", "ps"),
        ],
        "n1 n2 n1",
        ["ps", "w0", "w1"],
    ),
    "members with claims go first": Case(
        [*members("w", 2), a_member("x", "x", "data"), a_member("y", "y", "card")],
        "n1 n1 n2 n3",
        ["x y", "w0 w1"],
    ),
    "of those that share a claim one goes first": Case(
        [a_member("a", "a", "data"), a_member("b", "b", "data"), a_member("c", "c", "data")],
        "n1 n1 n1",
        ["a", "b c"],
    ),
    "and what it shares with nobody makes another go next": Case(
        [a_member("w", "w"), a_member("a", "a", "data"), a_member("b", "b", "data", "log")],
        "n1 n1 n1",
        ["a", "b", "w"],
    ),
    "who is needed by a member with claims goes before it, and nobody else": Case(
        [
            *members("w", 2),
            a_member("x", "x", "data", affinity=near("ps")),
            a_member("ps", "ps", affinity=near("root")),
            a_member("root", "root"),
        ],
        "n1 n1 n1 n2 n1",
        ["root", "ps", "x", "w0 w1"],
    ),
    "a member with claims that needs one of those that wait for it goes with all at last": Case(
        [
            a_member("w", "w", affinity=near("x")),
            a_member("x", "x", "data", affinity=near("w")),
        ],
        "n1 n1",
        ["w x"],
    ),
    "claims do not make a spread uneven": Case(
        [
            *[
                a_member(f"x{i}", "w", f"c{i}", topologySpreadConstraints=spread("w"))
                for i in range(2)
            ],
            a_member("w", "w", topologySpreadConstraints=spread("w")),
        ],
        "n1 n2 n3",
        ["x0", "w", "x1"],
        Others(count={"a": 0, "b": 0}),
    ),
    "claims for which a pod is on its way need no pod more": Case(
        [a_member("a", "a", "data"), a_member("w", "w")],
        "n1 n1",
        ["a w"],
        settling=frozenset({"data"}),
    ),
    "where each may run alone only those wait that share a claim": Case(
        [a_member("w", "w"), a_member("a", "a", "data"), a_member("b", "b", "data")],
        "n1 n1 n1",
        ["w a", "b"],
        alone=True,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_waves(case: Case) -> None:
    node_of = {m.uid: node for m, node in zip(case.members, case.nodes.split(), strict=True)}

    got = waves(
        case.members,
        node_of,
        domain_of,
        case.outside,
        settling=case.settling,
        alone=case.alone,
    )

    assert [" ".join(wave) for wave in got] == case.want


ROLES = st.sampled_from(["a", "b", "c"])
SPECS = st.one_of(
    st.just({}),
    ROLES.map(lambda role: {"affinity": near(role)}),
    ROLES.map(lambda role: {"affinity": apart(role)}),
    ROLES.map(lambda role: {"topologySpreadConstraints": spread(role)}),
    st.tuples(ROLES, ROLES).map(
        lambda two: {"affinity": near(two[0]), "topologySpreadConstraints": spread(two[1])}
    ),
)
OUTSIDE = st.one_of(
    st.none(),
    st.builds(
        Others,
        st.lists(st.sampled_from(["a", "b"])).map(tuple),
        st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 5)),
    ),
)


CLAIMS = st.sets(st.sampled_from(["data", "log"]))


@given(
    st.lists(st.tuples(ROLES, CLAIMS, SPECS, st.sampled_from(sorted(ZONES))), max_size=12),
    OUTSIDE,
    st.booleans(),
)
def test_every_member_is_in_exactly_one_wave(
    drawn: list[tuple[str, set[str], dict[str, Any], str]], outside: Others | None, alone: bool
) -> None:
    gang = [a_member(f"u{i}", role, *c, **spec) for i, (role, c, spec, _) in enumerate(drawn)]
    node_of = {m.uid: node for m, (*_, node) in zip(gang, drawn, strict=True)}

    got = waves(gang, node_of, domain_of, outside, alone=alone)

    assert Counter(uid for wave in got for uid in wave) == Counter(m.uid for m in gang)
    assert all(got)
