"""Queues."""

from __future__ import annotations

from typing import Any

from pumice.core import names
from tests.unit.admission.rows.row import Object, Row, an_object


def a_queue(
    name: str = "x", *, state: str = "", path: str = "", weights: str = "", **spec: Any
) -> Object:
    """Return a queue; `path` and `weights` are the annotations of the older kind of tree."""
    notes = {names.HIERARCHY: path, names.HIERARCHY_WEIGHTS: weights}
    notes = {key: value for key, value in notes.items() if value}
    body = an_object(names.SCHEDULING_API, "Queue", spec)
    body["metadata"] = {"name": name, **({"annotations": notes} if notes else {})}
    return {**body, "status": {"state": state}} if state else body


def sized(
    capability: Object | None = None,
    deserved: Object | None = None,
    guarantee: Object | None = None,
) -> Object:
    """Return a queue of these amounts."""
    given: Object = {"capability": capability, "deserved": deserved}
    if guarantee:
        given["guarantee"] = {"resource": guarantee}
    return a_queue(**{key: value for key, value in given.items() if value})


DEFAULTS = {
    "others may take back": Row(a_queue(weight=1), stored={"spec.reclaimable": True}),
    "a weight": Row(a_queue(reclaimable=True), stored={"spec.weight": 1}),
    "a weight in place of none": Row(a_queue(weight=0), stored={"spec.weight": 1}),
    "everything": Row(a_queue(), stored={"spec.reclaimable": True, "spec.weight": 1}),
    "what is given stays": Row(
        a_queue(weight=5, reclaimable=False),
        stored={"spec.reclaimable": False, "spec.weight": 5},
    ),
    "the path begins at root": Row(
        a_queue(path="a/b", weights="2/3"),
        stored={
            f"metadata.annotations.{names.HIERARCHY.replace('.', '|')}": "root/a/b",
            f"metadata.annotations.{names.HIERARCHY_WEIGHTS.replace('.', '|')}": "1/2/3",
        },
    ),
}

WEIGHT = ("spec.weight", "should be greater than or equal to 1")
GUARANTEE = ("must be >= guarantee",)
LENGTH = ("must have the same length",)

ROWS = {
    "an open one": Row(a_queue(state="Open")),
    "a closed one": Row(a_queue(state="Closed")),
    "one without a state": Row(a_queue()),
    "a negative weight": Row(a_queue(weight=-1), WEIGHT),
    "no weight": Row(a_queue(), stored={"spec.weight": 1}),
    "only what it deserves": Row(sized(deserved={"cpu": "4", "memory": "8Gi"})),
    "only what it is guaranteed": Row(sized(guarantee={"cpu": "1"}), GUARANTEE),
    "it may have less than it deserves": Row(
        sized({"cpu": "2"}, {"cpu": "4"}), ("must be <= capability",)
    ),
    "it may have less than it is guaranteed": Row(
        sized({"cpu": "1"}, guarantee={"cpu": "2"}), GUARANTEE
    ),
    "it deserves less than it is guaranteed": Row(
        sized({"cpu": "8"}, {"cpu": "2"}, {"cpu": "4"}), GUARANTEE
    ),
    "everything in order": Row(sized({"cpu": "4"}, {"cpu": "2"}, {"cpu": "1"})),
    "the same amount, written in two ways": Row(
        sized({"cpu": 2}, {"cpu": "2000m"}, {"cpu": "2.0"})
    ),
    "it deserves what it has no bound for": Row(sized({"cpu": "4"}, {"memory": "8Gi"})),
    "it is guaranteed what it has no bound for": Row(
        sized({"cpu": "4"}, {"cpu": "2", "memory": "8Gi"}, {"memory": "4Gi"})
    ),
    "it is guaranteed what it does not deserve": Row(
        sized({"cpu": "4"}, {"cpu": "2"}, {"memory": "4Gi"}), GUARANTEE
    ),
    "an amount below nothing": Row(sized({"cpu": "-1"}), ("must be greater than or equal to 0",)),
    "half a device": Row(sized({"example.com/gpu": "500m"}), ("must be an integer",)),
    "half a processor": Row(sized({"cpu": "500m"})),
    "a path without weights": Row(a_queue(path="root/a"), ("denied",)),
    "a path longer than its weights": Row(a_queue(path="root/a/b", weights="1/2"), LENGTH),
    "a path shorter than its weights": Row(a_queue(path="root/a", weights="1/2/3"), LENGTH),
    "a negative weight on the path": Row(
        a_queue(path="root/a/b", weights="1/-1/3"), ("must be larger than 0",)
    ),
    "a weight on the path that is none": Row(
        a_queue(path="root/a/b", weights="1/a/3"), ("is invalid number",)
    ),
    "a path that another one leads through": Row(
        a_queue(path="root/a", weights="1/1"),
        ("root/a is not allowed to be in the sub path of root/a/b of queue other",),
        queues=(a_queue("other", path="root/a/b", weights="1/1/1"),),
    ),
    "a status that is changed along with it": Row(
        a_queue(), change=a_queue(state="Closed", weight=2), stored={"spec.weight": 2}
    ),
    "a weight that becomes negative": Row(a_queue(), WEIGHT, change=a_queue(weight=-1)),
    "one that is deleted": Row(a_queue(), deleted=True),
    "one that is deleted, and has queues below": Row(
        a_queue(),
        ("queue x can not be deleted because it has", "below"),
        queues=(a_queue("below", parent="x"),),
        deleted=True,
    ),
    "the default queue is deleted": Row(
        a_queue("default"), ("`default` queue can not be deleted",), deleted=True
    ),
    "root is deleted": Row(a_queue("root"), ("`root` queue can not be deleted",), deleted=True),
    "one below another": Row(a_queue(parent="above"), queues=(a_queue("above", parent="root"),)),
    "one below another that is deleted, and the other one after it": Row(
        a_queue(parent="above"), queues=(a_queue("above", parent="root"),), deleted=True
    ),
    "one below another that names what it does not": Row(
        a_queue(parent="above", capability={"memory": "5Gi"}),
        queues=(a_queue("above", capability={"cpu": "6", "memory": "10Gi"}),),
    ),
    "one below itself": Row(a_queue(parent="x"), ("queue x cannot use itself as parent",)),
    "one that may have more than the one above": Row(
        a_queue(parent="above", capability={"cpu": "5"}),
        ("queue x capability[cpu]=5 exceeds its ancestor's capability=4",),
        queues=(a_queue("above", capability={"cpu": "4"}),),
    ),
    "one that is to have less than one below may": Row(
        a_queue(capability={"cpu": "4"}),
        ("queue x capability[cpu]=1 is smaller than its descendants' max capability=2",),
        queues=(a_queue("below", parent="x", capability={"cpu": "2"}),),
        change=a_queue(capability={"cpu": "1"}),
    ),
}
