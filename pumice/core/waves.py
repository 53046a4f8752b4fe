"""
Waves: in which order the members of a gang are let go to kube-scheduler.

kube-scheduler looks at one pod after the other, in an order that nobody controls, and a pod that
it cannot place *yet* waits long. So members that need others to be there first are let go after
them. A gang has one wave, unless

* members have claims that kube-scheduler settles. Where they go is known for certain only once
  they have come, so they go first, and with them those that they need; the rest waits. Of those
  that share a claim one goes first, and the others are of the rest;
* members have required affinity to pods that only other members are. Those others go first; a
  member whose terms mean itself needs nobody (the first of a series may go anywhere), nor does
  one whose terms are satisfied outside the gang;
* members have a DoNotSchedule spread constraint. Then a wave has one pod in each domain: more
  could leave a domain too far ahead, whatever the order in which the wave is looked at.

Anti-affinity needs no waves: whoever comes second was planned elsewhere. What cannot be brought
into order goes at last, all together.

Members that are alike and planned into the same domains are handled as one group, so the cost is
waves times groups, not waves times members.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Protocol

from pumice.core.ids import PodUid
from pumice.core.model.signatures import PodTerm, Signature, Spread

DomainOf = Callable[[str, str], str | None]
"""(node, topology key) -> the node's domain, None where it lacks the label."""


@dataclass(frozen=True, slots=True)
class Member:
    """A pod that is planned and about to be let go."""

    uid: PodUid
    signature: Signature
    labels: Mapping[str, str]
    namespace: str
    #: claims that kube-scheduler settles before it asks for the pod to be bound
    claims: frozenset[str] = frozenset()


class Outside(Protocol):
    """What is known of the pods that are on nodes already."""

    def satisfies(self, terms: tuple[PodTerm, ...], topology_key: str, domain: str) -> bool:
        """Return whether a pod that all the terms mean is in the domain."""

    def counts(self, signature: Signature, constraint: Spread) -> Mapping[str, int]:
        """Return how many pods a constraint counts in each of its domains, empty ones too."""


def waves(
    members: Sequence[Member],
    node_of: Mapping[PodUid, str],
    domain_of: DomainOf,
    outside: Outside | None = None,
    *,
    settling: Set[str] = frozenset(),
    alone: bool = False,
) -> list[list[PodUid]]:
    """
    Return the members' uids in waves; every member is in exactly one.

    `node_of` says where each is planned. Without `outside`, pods outside the gang are taken to
    satisfy what no member can, and to be spread evenly; with it, a wave may also hold several
    pods in a domain where the skew allows, and a domain that is ahead waits for the others.
    `settling` are the claims for which somebody was let go before; where each member may run
    `alone`, nobody waits for claims but those who share one.
    """
    signatures = {m.signature for m in members}
    orderly = any(s.affinity or s.spread for s in signatures)
    if not orderly and not any(m.claims for m in members):
        return [[m.uid for m in members]] if members else []
    gang = _Gang(signatures, domain_of, outside)
    gang.settling.update(settling)
    gang.alone = alone
    groups = gang.group(members, node_of)
    position = {m.uid: i for i, m in enumerate(members)}
    result: list[list[PodUid]] = []
    while left := [g for g in groups if g.uids]:
        result.append(sorted(gang.next_wave(left), key=position.__getitem__))
    return result


@dataclass(slots=True, eq=False)
class _Group:
    """Members of one signature and with one set of domains, and the same claims if any."""

    member: Member
    domains: Mapping[str, str]
    uids: deque[PodUid] = field(default_factory=deque)
    #: whether some of the group have been let go before this wave
    out: bool = False


class _Gang:
    """The needs of a gang's members, and who of them has been let go."""

    def __init__(
        self, signatures: Iterable[Signature], domain_of: DomainOf, outside: Outside | None
    ) -> None:
        ordered = sorted(signatures, key=lambda s: s.key)
        self.domain_of = domain_of
        self.outside = outside
        self.spreads = {(s.namespace, c): s for s in ordered for c in s.spread}
        self.topology_keys = {c.topology_key for _, c in self.spreads}
        self.topology_keys |= {t.topology_key for s in ordered for t in s.affinity}
        self.label_keys = sorted(
            {k for _, c in self.spreads for k in c.selector.keys}
            | {k for s in ordered for t in s.affinity for k in t.selector.keys}
        )
        #: who is meant by an affinity, by its terms, topology key and domain
        self.meant: dict[tuple[tuple[PodTerm, ...], str, str], list[_Group]] = defaultdict(list)
        self.affinities = {s.affinity: None for s in ordered if s.affinity}
        self.counts = {
            key: Counter(outside.counts(signature, key[1]) if outside else {})
            for key, signature in self.spreads.items()
        }
        #: the claims for which somebody has been let go
        self.settling: set[str] = set()
        self.alone = False

    def group(self, members: Sequence[Member], node_of: Mapping[PodUid, str]) -> list[_Group]:
        """Sort the members into groups, in the order in which they stand."""
        found: dict[object, _Group] = {}
        for member in members:
            node = node_of[member.uid]
            domains = {
                key: domain
                for key in sorted(self.topology_keys)
                if (domain := self.domain_of(node, key)) is not None
            }
            labels = tuple(member.labels.get(k) for k in self.label_keys)
            where = tuple(domains.items())
            key = (member.signature, member.namespace, labels, where, member.claims)
            found.setdefault(key, _Group(member, domains)).uids.append(member.uid)
        groups = list(found.values())
        for group in groups:
            self._enter(group)
        return groups

    def _enter(self, group: _Group) -> None:
        for terms in self.affinities:
            if _meant(group.member, terms):
                for key, domain in group.domains.items():
                    self.meant[terms, key, domain].append(group)
        for spread in self._spreads_on(group):
            if spread[1].topology_key in group.domains:
                self.counts[spread].setdefault(group.domains[spread[1].topology_key], 0)

    def next_wave(self, left: Sequence[_Group]) -> list[PodUid]:
        """Take the members that may go now out of their groups."""
        ready = [g for g in left if self._has_company(g)]
        added: dict[tuple[str, Spread], Counter[str]] = {key: Counter() for key in self.spreads}
        wave = self._fill(self._ahead(left, ready), added) or self._fill(ready, added)
        if not wave:
            stuck = ready[:1] or left
            wave = [(g, uid) for g in stuck for uid in ([g.uids[0]] if ready else g.uids)]
            for group, _ in wave:
                group.uids.popleft()
                self._count(group, added)
        for group, _ in wave:
            group.out = True
            self.settling |= group.member.claims
        for key, counter in added.items():
            self.counts[key].update(counter)
        return [uid for _, uid in wave]

    def _ahead(self, left: Sequence[_Group], ready: Sequence[_Group]) -> Sequence[_Group]:
        """Return those who are ready and have claims to be settled, or are needed by such."""
        claimants = [g for g in left if g.member.claims - self.settling]
        if self.alone or not claimants:
            return ready
        wanted = dict.fromkeys(claimants)
        while not (ahead := [g for g in ready if g in wanted]):
            needed = dict.fromkeys(near for g in wanted for near in self._needed_by(g))
            if needed.keys() <= wanted.keys():
                return ready
            wanted |= needed
        return ahead

    def _needed_by(self, group: _Group) -> Iterable[_Group]:
        terms = group.member.signature.affinity
        for term in terms:
            domain = group.domains.get(term.topology_key, "")
            yield from self.meant.get((terms, term.topology_key, domain), ())

    def _fill(
        self, groups: Iterable[_Group], added: Mapping[tuple[str, Spread], Counter[str]]
    ) -> list[tuple[_Group, PodUid]]:
        """Take as many of the groups as may go together, no two for one unsettled claim."""
        wave: list[tuple[_Group, PodUid]] = []
        taken: set[str] = set()
        for group in groups:
            claims = group.member.claims - self.settling
            while group.uids and taken.isdisjoint(claims) and self._keeps_even(group, added):
                wave.append((group, group.uids.popleft()))
                self._count(group, added)
                taken |= claims
        return wave

    def _has_company(self, group: _Group) -> bool:
        """Return whether all that the affinity of the group's members needs is there."""
        terms = group.member.signature.affinity
        if not terms or _meant(group.member, terms):
            return True
        return all(self._satisfied(group, terms, t.topology_key) for t in terms)

    def _satisfied(self, group: _Group, terms: tuple[PodTerm, ...], topology_key: str) -> bool:
        domain = group.domains.get(topology_key)
        if domain is None:
            return True
        near = self.meant.get((terms, topology_key, domain), ())
        if not near or any(g.out for g in near):
            return True
        return self.outside is not None and self.outside.satisfies(terms, topology_key, domain)

    def _spreads_on(self, group: _Group) -> list[tuple[str, Spread]]:
        """Return the constraints that the group has, or whose counts it adds to."""
        member, own = group.member, group.member.signature.spread
        return [
            (namespace, constraint)
            for namespace, constraint in self.spreads
            if namespace == member.namespace
            and (constraint in own or constraint.selector.matches(member.labels))
        ]

    def _keeps_even(self, group: _Group, added: Mapping[tuple[str, Spread], Counter[str]]) -> bool:
        """Return whether one more of the group may join, whatever order the wave is taken in."""
        for spread in self._spreads_on(group):
            constraint = spread[1]
            domain = group.domains.get(constraint.topology_key)
            if domain is None or not constraint.selector.matches(group.member.labels):
                continue
            if self.outside is None:
                if added[spread][domain]:
                    return False
                continue
            counts = self.counts[spread]
            ahead = counts[domain] + added[spread][domain] + 1 - min(counts.values(), default=0)
            if ahead > constraint.max_skew:
                return False
        return True

    def _count(self, group: _Group, added: Mapping[tuple[str, Spread], Counter[str]]) -> None:
        for spread in self._spreads_on(group):
            domain = group.domains.get(spread[1].topology_key)
            if domain is not None and spread[1].selector.matches(group.member.labels):
                added[spread][domain] += 1


def _meant(member: Member, terms: tuple[PodTerm, ...]) -> bool:
    return all(term.matches(member.namespace, member.labels) for term in terms)
