"""
Sharing: how devices are shared, as the arguments of the plugin `deviceshare` say.

Whoever chooses cards goes by this, the session for whole gangs and the extender for single pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pumice.core.conf import Arguments, Configuration
from pumice.core.devices.asks import Ask, Kind
from pumice.core.devices.cards import Offer
from pumice.core.devices.choosing import Policy
from pumice.core.devices.table import NodeCards
from pumice.core.ids import JobKey

PLUGIN: Final = "deviceshare"
_KINDS: Final[dict[str, Kind]] = {
    "deviceshare.GPUSharingEnable": "memory",
    "deviceshare.GPUNumberEnable": "number",
    "deviceshare.VGPUEnable": "vgpu",
}
_POLICIES: Final[dict[str, Policy]] = {"binpack": "binpack", "spread": "spread", "": ""}
RULES: Final = "deviceshare.GPUExclusiveRules"
Rule = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which kinds of asks are served, and how."""

    kinds: frozenset[Kind] = frozenset()
    policy: Policy = ""
    weight: int = 0
    #: pods whose labels match the same one never share a card
    rules: tuple[Rule, ...] = ()
    #: namespace and name of the ConfigMap that lists the geometries of MIG cards
    geometries: tuple[str, str] = ("kube-system", "volcano-vgpu-device-config")

    @classmethod
    def parse(cls, args: Arguments) -> Sharing:
        """Read the arguments of the plugin; what is malformed counts as absent."""
        kinds = frozenset(kind for key, kind in _KINDS.items() if args.boolean(key, False))
        policy = _POLICIES.get(args.text("deviceshare.SchedulePolicy"))
        if policy is None:
            key = "deviceshare.SchedulePolicy"
            args.faults[key] = f"argument {key}: neither binpack nor spread, ignored"
        weight = args.integer("deviceshare.ScheduleWeight", 0)
        namespace, name = cls().geometries
        geometries = (
            args.text("deviceshare.KnownGeometriesCMNamespace") or namespace,
            args.text("deviceshare.KnownGeometriesCMName") or name,
        )
        return cls(kinds, policy or "", weight, _rules(args), geometries)

    @classmethod
    def of(cls, conf: Configuration) -> Sharing:
        """Return how devices are shared by a configuration; not at all where no plugin does."""
        options = (option for tier in conf.tiers for option in tier if option.name == PLUGIN)
        option = next(options, None)
        return cls() if option is None else cls.parse(option.arguments)

    def ask(self, asks: Sequence[Ask]) -> Ask | None:
        """Return the one of a pod's asks that is served, if any."""
        return next((ask for ask in asks if ask.kind in self.kinds), None)

    def matching(self, labels: Mapping[str, str]) -> tuple[int, ...]:
        """Return which rules a pod with these labels matches."""
        return tuple(i for i, rule in enumerate(self.rules) if rule.items() <= labels.items())

    def hidden(
        self,
        ask: Ask,
        offer: Offer,
        entry: NodeCards,
        job: JobKey | None,
        matched: Sequence[int],
        *,
        future: bool = False,
    ) -> int:
        """Return as a mask the cards that the pod may not have, whatever is left of them."""
        mask = 0
        if ask.is_choosy:
            for i, uuid in enumerate(offer.uuids):
                mask |= (not ask.takes_uuid(uuid)) << i
        if not (ask.spread or matched):
            return mask
        at = {uuid: i for i, uuid in enumerate(offer.uuids)}
        for holding in entry.holders.values():
            if holding.choice.pool == offer.pool and not (future and holding.leaving):
                alike = ask.spread and job is not None and holding.job == job
                if alike or not set(matched).isdisjoint(self.matching(holding.labels)):
                    for card in holding.shares:
                        mask |= (card in at) << at.get(card, 0)
        return mask


NO_SHARING: Final = Sharing()


def _rules(args: Arguments) -> tuple[Rule, ...]:
    found = args.raw.get(RULES)
    if found is None:
        return ()
    entries = found if isinstance(found, list) else [found]
    rules = [entry.get("labels", entry) if isinstance(entry, dict) else None for entry in entries]
    if not all(isinstance(rule, dict) and rule for rule in rules):
        args.faults[RULES] = f"argument {RULES}: not a list of label maps, ignored"
        return ()
    return tuple({str(k): str(v) for k, v in rule.items()} for rule in rules if rule)
