"""
Device plugins in simulation: they hand cards out by what stands on pods, and look for faults.

They see nodes and pods as the API server shows them, in the order of one watch, and share no code
with what they watch over. A fault is a pod that comes without a choice, or with one that is not
what it asked for; a card of which more is handed out than there is, in memory, in compute or in
number; one allocation that two pods have; and two pods of a node that a real plugin could not tell
apart, since it goes by their times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]
DOMAIN = "volcano.sh/"
OWN_ID = "pumice.dev/device-allocation"
THOUSANDS = {"k": 1000, "M": 1000**2, "G": 1000**3}
END_OF_TIME = (1 << 64) - 1
HANDED_OUT = {
    f"{DOMAIN}bind-phase": "success",
    f"{DOMAIN}devices-to-allocate": "",
    f"{DOMAIN}vgpu-time": str(END_OF_TIME),
}
"""What a plugin writes on a pod once it has given it its vGPU cards."""


@dataclass(frozen=True)
class Card:
    """A card as its node registered it."""

    slots: int
    memory: int


@dataclass(frozen=True)
class Part:
    """What one container gets of one card; `instance` where the card is cut."""

    card: str
    instance: str
    memory: int
    cores: int


@dataclass
class DevicePlugins:
    """Those of all nodes; `faults` is to stay empty."""

    cards: dict[str, dict[str, Card]] = field(default_factory=dict)
    #: node -> pod uid -> what each container has, and whether it is over before the next one starts
    held: dict[str, dict[str, list[tuple[bool, list[Part]]]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    faults: list[str] = field(default_factory=list)
    #: pods that came with cards, ever
    served: int = 0
    _allocations: dict[str, str] = field(default_factory=dict)
    _times: dict[str, str] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def node(self, body: Json) -> None:
        """Take note of what a node registers."""
        meta, status = body["metadata"], body.get("status", {})
        text = meta.get("annotations", {}).get(f"{DOMAIN}node-vgpu-register", "")
        entries = (entry.split(",") for entry in text.split(":") if entry)
        found = {e[0]: Card(int(e[1]), int(e[2])) for e in entries}
        capacity = status.get("capacity", {})
        number = _amount(capacity.get(f"{DOMAIN}gpu-number", "0"))
        memory = _amount(capacity.get(f"{DOMAIN}gpu-memory", "0"))
        found |= {str(i): Card(1 << 30, memory // number) for i in range(number)}
        self.cards[meta["name"]] = found

    def pod(self, kind: str, body: Json) -> bool:
        """Take note of an event of a pod; return whether it was given its cards just now."""
        uid, node = body["metadata"]["uid"], body["spec"].get("nodeName")
        if not node or not _asks(body):
            return False
        if kind == "DELETED" or body.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            self.held[node].pop(uid, None)
            return False
        if uid in self._seen:
            if HANDED_OUT.items() <= body["metadata"].get("annotations", {}).items():
                self._times.pop(uid, None)  # No other pod is taken for it any more.
            return False
        self._seen.add(uid)
        return self._allocate(node, body)

    def used(self, node: str) -> dict[str, tuple[int, int, int]]:
        """Return what of each card is handed out: shares, memory, compute."""
        sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for containers in self.held[node].values():
            for card, amounts in _largest(_phases(containers)).items():
                for i, amount in enumerate(amounts):
                    sums[card][i] += amount
        return {card: (s[0], s[1], s[2]) for card, s in sums.items()}

    # --- inside -----------------------------------------------------------------------------

    def _allocate(self, node: str, body: Json) -> bool:
        meta = body["metadata"]
        who, notes = f"pod {meta['name']} on {node}", meta.get("annotations", {})
        parts = list(self._chosen(node, body, notes))
        for asked, got in zip(_asks(body), parts, strict=False):
            self._check(who, node, asked, got)
        if len(parts) != len(_asks(body)) or not all(parts):
            self.faults.append(f"{who} came without a choice: {dict(notes)}")
            return False
        self._check_identity(who, node, meta["uid"], notes)
        self.served += 1
        over = [bool(asked["init"]) for asked in _asks(body)]
        self.held[node][meta["uid"]] = list(zip(over, parts, strict=True))
        self._check_cards(who, node, {part.card for got in parts for part in got})
        return True

    def _chosen(self, node: str, body: Json, notes: Json) -> Iterator[list[Part]]:
        """Yield what each container that asks for cards gets, in the order of the kubelet."""
        if f"{DOMAIN}gpu-index" in notes:
            [asked] = _asks(body)
            whole = asked.get("gpu-number", 0) > 0
            for_each = asked.get("gpu-memory", 0)
            yield [
                Part(i, "", self.cards[node][i].memory if whole else for_each, 0)
                for i in notes[f"{DOMAIN}gpu-index"].split(",")
            ]
            return
        if notes.get(f"{DOMAIN}vgpu-node") != node:
            return
        if notes.get(f"{DOMAIN}bind-phase") != "allocating":
            return
        for place in notes.get(f"{DOMAIN}devices-to-allocate", "").split(";"):
            if place:
                yield [_part(entry) for entry in place.split(":") if entry]

    def _check(self, who: str, node: str, asked: Mapping[str, int], got: list[Part]) -> None:
        number = asked.get("vgpu-number") or asked.get("gpu-number") or 1
        if len({part.card for part in got}) != number:
            self.faults.append(f"{who} asked for {number} cards and got {got}")
        for part in got:
            card = self.cards.get(node, {}).get(part.card)
            if card is None:
                self.faults.append(f"{who} got {part.card}, which is not there")
            elif "vgpu-number" in asked or "vgpu-memory" in asked:
                percentage = asked.get("vgpu-memory-percentage", 100)
                wanted = asked.get("vgpu-memory") or card.memory * percentage // 100
                enough = part.memory >= wanted if part.instance else part.memory == wanted
                if not enough or part.cores != asked.get("vgpu-cores", 0):
                    self.faults.append(f"{who} asked for {dict(asked)} and got {part}")

    def _check_identity(self, who: str, node: str, uid: str, notes: Json) -> None:
        allocation = notes.get(OWN_ID, "")
        if not allocation or self._allocations.setdefault(allocation, uid) != uid:
            self.faults.append(f"{who} has the allocation {allocation!r} of another pod")
        time = notes.get(f"{DOMAIN}vgpu-time") or notes.get(f"{DOMAIN}predicate-time", "")
        if not time.isdigit() or int(time) >= END_OF_TIME:
            self.faults.append(f"{who} has {time!r}, which is no time")
        if time in {self._times.get(other) for other in self.held[node]}:
            self.faults.append(f"{who} has the time {time!r} of another pod")
        self._times[uid] = time

    def _check_cards(self, who: str, node: str, cards: set[str]) -> None:
        """Check the cards that were handed out; others may have shrunk meanwhile."""
        used = self.used(node)
        for card in cards:
            shares, memory, cores = used[card]
            has = self.cards.get(node, {}).get(card, Card(0, 0))
            if shares > has.slots or memory > has.memory or cores > 100:
                sums = f"{shares} shares, {memory} MB, {cores} % of compute"
                self.faults.append(f"with {who} {sums} are handed out of {card}, which has {has}")
        pods = self.held[node].values()
        instances = [
            (p.card, p.instance) for held in pods for _, got in held for p in got if p.instance
        ]
        if len(set(instances)) != len(instances):
            self.faults.append(f"with {who} an instance is handed out twice: {instances}")


def _asks(body: Json) -> list[dict[str, int]]:
    """Return what each container asks of cards, in order; the older kinds go by pod."""
    spec = body["spec"]
    found = []
    for role in ("initContainers", "containers"):
        for container in spec.get(role) or ():
            resources = container.get("resources", {})
            limits = {**resources.get("requests", {}), **resources.get("limits", {})}
            asked = {
                name.removeprefix(DOMAIN): _amount(amount)
                for name, amount in limits.items()
                if name.startswith((f"{DOMAIN}vgpu-", f"{DOMAIN}gpu-"))
            }
            if asked:
                sidecar = container.get("restartPolicy") == "Always"
                found.append({**asked, "init": int(role == "initContainers" and not sidecar)})
    return found


def _amount(text: str) -> int:
    """Return a whole number as the API server writes it: 24k is 24,000."""
    return int(text[:-1]) * THOUSANDS[text[-1]] if text[-1] in THOUSANDS else int(text)


def _part(entry: str) -> Part:
    name, _, memory, cores = entry.split(",")
    card, _, instance = name.partition("[")
    return Part(card, instance, int(memory), int(cores))


def _phases(containers: list[tuple[bool, list[Part]]]) -> list[list[Part]]:
    """Return what there is at a time: by each init container beside the sidecars, then by all."""
    phases: list[list[Part]] = []
    staying: list[Part] = []
    for is_init, parts in containers:
        if is_init:
            phases.append([*staying, *parts])
        else:
            staying = [*staying, *parts]
    return [*phases, staying]


def _largest(phases: list[list[Part]]) -> dict[str, tuple[int, int, int]]:
    """Return what a pod has of each card at most at a time."""
    most: dict[str, tuple[int, int, int]] = {}
    for phase in phases:
        sums: dict[str, tuple[int, int, int]] = {}
        for part in phase:
            shares, memory, cores = sums.get(part.card, (0, 0, 0))
            sums[part.card] = (shares + 1, memory + part.memory, cores + part.cores)
        for card, amounts in sums.items():
            before = most.get(card, (0, 0, 0))
            most[card] = (
                max(before[0], amounts[0]),
                max(before[1], amounts[1]),
                max(before[2], amounts[2]),
            )
    return most
