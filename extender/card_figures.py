"""
Figures of shared cards, by Volcano's names.

They are made of the table of devices whenever somebody asks, so they name what is there now: cards,
and the pods on them, and nobody who has gone. Memory is in the unit of the registration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily

from pumice.core.devices.choosing import NOTHING
from pumice.core.devices.table import NodeCards
from pumice.core.ids import PodUid

PREFIX = "volcano_vgpu_device_"
OF_CARDS = {
    "shared_number": "Containers that share a card.",
    "allocated_memory": "Memory of a card that is handed out.",
    "allocated_cores": "Compute of a card that is handed out, in percent.",
    "memory_limit": "Memory of a card.",
}
OF_PODS = {
    "memory_allocation_for_a_certain_pod": "Memory of a card that a pod has.",
    "core_allocation_for_a_certain_pod": "Compute of a card that a pod has, in percent.",
}


def of_cards(devices: Mapping[str, NodeCards]) -> Iterator[GaugeMetricFamily]:
    """Yield what there is of each vGPU card, and how much of it is in use."""
    made = _families(OF_CARDS, "devID", "NodeName")
    for node, entry in devices.items():
        offer = entry.offer("vgpu")
        limits = (
            {u: m.memory for u, m in zip(offer.uuids, offer.makes, strict=True)} if offer else {}
        )
        gone = {card for pool, card in entry.used if pool == "vgpu"} - limits.keys()
        for card in (*limits, *sorted(gone)):
            use = entry.used.get(("vgpu", card), NOTHING)
            amounts = (use.slots, use.memory, use.cores, limits.get(card, 0))
            for family, amount in zip(made, amounts, strict=True):
                family.add_metric([card, node], amount)
    yield from made


def of_pods(
    devices: Mapping[str, NodeCards], names: Mapping[PodUid, str]
) -> Iterator[GaugeMetricFamily]:
    """Yield what each pod has of each vGPU card; `names` are those of pods, with namespace."""
    made = _families(OF_PODS, "devID", "NodeName", "podName")
    for node, entry in devices.items():
        for uid, holding in entry.holders.items():
            if holding.choice.pool == "vgpu":
                for card, share in holding.shares.items():
                    for family, amount in zip(made, (share.memory, share.cores), strict=True):
                        family.add_metric([card, node, names[uid]], amount)
    yield from made


def _families(texts: Mapping[str, str], *labels: str) -> list[GaugeMetricFamily]:
    return [GaugeMetricFamily(PREFIX + name, text, labels=labels) for name, text in texts.items()]
