"""PodGroups."""

from __future__ import annotations

from typing import Any

from pumice.core import names
from tests.unit.admission.rows.queues import a_queue
from tests.unit.admission.rows.row import Object, Row, an_object


def a_group(**spec: Any) -> Object:
    return an_object(names.SCHEDULING_API, "PodGroup", {"minMember": 1, **spec})


QUEUES = (a_queue("mine"), a_queue("theirs"))
NOTES = {names.QUEUE_NAME: "theirs"}
TIERS = {"highestTierAllowed": 1, "highestTierName": "rack"}
TWO_TIERS = (
    "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
)

ROWS = {
    "a queue of its own stays": Row(
        a_group(queue="mine"), stored={"spec.queue": "mine"}, queues=QUEUES
    ),
    "the default queue gives way to that of the namespace": Row(
        a_group(queue="default"), stored={"spec.queue": "theirs"}, queues=QUEUES, notes=NOTES
    ),
    "without a queue it goes to that of the namespace": Row(
        a_group(), stored={"spec.queue": "theirs"}, queues=QUEUES, notes=NOTES
    ),
    "a namespace without a queue leaves it in the default one": Row(
        a_group(queue="default"), stored={"spec.queue": "default"}
    ),
    "a queue of its own stays in a namespace that has one": Row(
        a_group(queue="mine"), stored={"spec.queue": "mine"}, queues=QUEUES, notes=NOTES
    ),
    "a queue that is open": Row(a_group(queue="mine"), queues=QUEUES),
    "no queue": Row(a_group(), stored={"spec.queue": "default"}),
    "a tier by number and by name": Row(a_group(networkTopology=TIERS), (TWO_TIERS,)),
    "a tier of a sub-group by number and by name": Row(
        a_group(subGroupPolicy=[{"name": "s", "networkTopology": TIERS}]), (TWO_TIERS,)
    ),
}
