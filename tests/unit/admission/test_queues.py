"""Queues: their defaults, their amounts, their paths, and who may go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from pumice.core import names
from pumice.core.admission import queues
from pumice.core.admission.drafts import QueueDraft
from pumice.core.admission.queues import Rules
from pumice.core.admission.views import Queues
from pumice.core.api.scheduling import Queue, QueueSpec, QueueStatus
from tests.builders import a_queue
from tests.unit.admission.builders import messages, told, view

AT = "requestBody.spec"
NOTES = "requestBody.metadata.annotations"


def noted(queue: Queue, path: str | None = None, weights: str | None = None) -> Queue:
    """Return the queue with a path and weights in its annotations."""
    given = {names.HIERARCHY: path, names.HIERARCHY_WEIGHTS: weights}
    queue.metadata.annotations = {key: value for key, value in given.items() if value is not None}
    return queue


def holding(queue: Queue, pods: Any) -> Queue:
    """Return the queue with pods that hold something of it."""
    queue.status.allocated = {"pods": pods}
    return queue


@dataclass(frozen=True)
class Draft:
    spec: dict[str, Any]
    want: dict[str, Any]


DRAFTS = {
    "nothing given": Draft({}, {"weight": 1, "reclaimable": True}),
    "a weight of zero": Draft({"weight": 0}, {"weight": 1, "reclaimable": True}),
    "everything given": Draft(
        {"weight": 5, "reclaimable": False}, {"weight": 5, "reclaimable": False}
    ),
}


@pytest.mark.parametrize("case", DRAFTS.values(), ids=DRAFTS.keys())
def test_defaults(case: Draft) -> None:
    got = queues.defaults(msgspec.convert({"spec": case.spec}, QueueDraft))
    assert {"weight": got.spec.weight, "reclaimable": got.spec.reclaimable} == case.want
    assert queues.defaults(got) == got


PATHS = {
    "a path and weights start at root": (("sci/dev", "2/8"), ("root/sci/dev", "1/2/8")),
    "a path that starts at root stays": (("root/sci", "1/2"), ("root/sci", "1/2")),
    "a path without weights stays": (("sci", ""), ("sci", "")),
    "weights without a path stay": (("", "1"), ("", "1")),
}


@pytest.mark.parametrize(("before", "after"), PATHS.values(), ids=PATHS.keys())
def test_default_path(before: tuple[str, str], after: tuple[str, str]) -> None:
    got = queues.defaults(noted(a_queue("q"), *before))
    assert got.metadata.annotations == noted(a_queue("q"), *after).metadata.annotations


@dataclass(frozen=True)
class New:
    queue: Queue
    want: list[tuple[str, str]] = field(default_factory=list)
    queues: Queues = field(default_factory=view)


CREATED = {
    "a queue with everything in order": New(
        a_queue("q", guarantee="1 1Gi", deserved="2 2Gi", capability="4 4Gi")
    ),
    "the state may be given": New(a_queue("q", state="Closed")),
    "only deserved": New(a_queue("q", deserved="2")),
    "deserved that no capability limits": New(a_queue("q", deserved="2 4Gi", capability="4")),
    "a guarantee that no capability limits": New(
        a_queue("q", guarantee="1 1Gi", deserved="1 1Gi", capability="4")
    ),
    "a state that nobody may give": New(
        a_queue("q", state="Closing"),
        [
            (
                "spec.state",
                f'{AT}.state: Invalid value: "Closing": queue state must be in [Open Closed]',
            )
        ],
    ),
    "less than nothing": New(
        a_queue("q", capability="-1"),
        [
            (
                "spec.capability.cpu",
                f'{AT}.capability.cpu: Invalid value: "-1": must be greater than or equal to 0',
            )
        ],
    ),
    "half a device": New(
        a_queue("q", deserved="1 example.com/gpu=500m"),
        [
            (
                "spec.deserved.example.com/gpu",
                f'{AT}.deserved.example.com/gpu: Invalid value: "500m": must be an integer',
            )
        ],
    ),
    "only a guarantee": New(
        a_queue("q", guarantee="1"),
        [
            (
                "spec.deserved.cpu",
                f'{AT}.deserved.cpu: Invalid value: "<nil>": deserved[cpu] must be >='
                " guarantee[cpu]=1",
            )
        ],
    ),
    "a guarantee above what is deserved": New(
        a_queue("q", guarantee="1500m", deserved="1"),
        [
            (
                "spec.deserved.cpu",
                f'{AT}.deserved.cpu: Invalid value: "1": deserved[cpu]=1 must be >='
                " guarantee[cpu]=1500m",
            )
        ],
    ),
    "more deserved than the capability": New(
        a_queue("q", deserved="8 1Gi", capability="4 1Gi"),
        [
            (
                "spec.deserved.cpu",
                f'{AT}.deserved.cpu: Invalid value: "8": deserved[cpu]=8 must be <='
                " capability[cpu]=4",
            )
        ],
    ),
    "a path without weights": New(
        noted(a_queue("q"), "root"),
        [
            (
                "metadata.annotations",
                f'{NOTES}: Invalid value: "":  in the  is invalid number: strconv.ParseFloat:'
                ' parsing "": invalid syntax',
            )
        ],
    ),
    "a path and weights of different lengths": New(
        noted(a_queue("q"), "root/a/b", "1/2"),
        [
            (
                "metadata.annotations",
                f'{NOTES}: Invalid value: "root/a/b": volcano.sh/hierarchy must have the same'
                " length with volcano.sh/hierarchy-weights",
            )
        ],
    ),
    "weights that are none": New(
        noted(a_queue("q"), "root/a/b/c", "1/-1/a/1_0"),
        [
            (
                "metadata.annotations",
                f'{NOTES}: Invalid value: "1/-1/a/1_0": -1 in the 1/-1/a/1_0 must be larger than 0',
            ),
            (
                "metadata.annotations",
                f'{NOTES}: Invalid value: "1/-1/a/1_0": a in the 1/-1/a/1_0 is invalid number:'
                ' strconv.ParseFloat: parsing "a": invalid syntax',
            ),
            (
                "metadata.annotations",
                f'{NOTES}: Invalid value: "1/-1/a/1_0": 1_0 in the 1/-1/a/1_0 is invalid number:'
                ' strconv.ParseFloat: parsing "1_0": invalid syntax',
            ),
        ],
    ),
    "a path that another leads through": New(
        noted(a_queue("q"), "root/a", "1/2"),
        [
            (
                "metadata.annotations",
                f'{NOTES}: Invalid value: "root/a": root/a is not allowed to be in the sub path of'
                " root/a/b of queue other",
            )
        ],
        view(noted(a_queue("other"), "root/a/b", "1/2/3")),
    ),
    "a path beside another": New(
        noted(a_queue("q"), "root/a", "1/2"),
        queues=view(noted(a_queue("other"), "root/ab", "1/2")),
    ),
}


@pytest.mark.parametrize("case", CREATED.values(), ids=CREATED.keys())
def test_create(case: New) -> None:
    assert told(queues.check_create(case.queue, case.queues, Rules())) == case.want


@dataclass(frozen=True)
class Changed:
    old: Queue
    new: Queue
    want: list[str] = field(default_factory=list)
    rules: Rules = field(default_factory=Rules)
    queues: Queues = field(default_factory=view)


ROOT = "root queue's resource attributes (capability, deserved, guarantee) cannot be modified"

UPDATED = {
    "a weight": Changed(a_queue("q"), a_queue("q", weight=3)),
    "a queue that is being closed": Changed(
        a_queue("q", state="Closing"), a_queue("q", state="Closing", weight=3)
    ),
    "an amount out of order": Changed(
        a_queue("q"),
        a_queue("q", guarantee="1"),
        [f'{AT}.deserved.cpu: Invalid value: "<nil>": deserved[cpu] must be >= guarantee[cpu]=1'],
    ),
    "the weight of root": Changed(a_queue("root"), a_queue("root", weight=2)),
    "the resources of root": Changed(a_queue("root"), a_queue("root", capability="4"), [ROOT]),
    "the resources of root where they are not protected": Changed(
        a_queue("root"), a_queue("root", capability="4"), [], Rules(protects_root=False)
    ),
    "a queue below itself": Changed(
        a_queue("q"), a_queue("q", parent="q"), ["queue q cannot use itself as parent"]
    ),
    "what stands already is not judged again": Changed(
        a_queue("q", parent="gone"), a_queue("q", parent="gone", weight=3)
    ),
}


@pytest.mark.parametrize("case", UPDATED.values(), ids=UPDATED.keys())
def test_update(case: Changed) -> None:
    got = queues.check_update(case.old, case.new, case.queues, case.rules)
    assert messages(got) == case.want


DELETED: dict[str, tuple[str, list[str], Rules]] = {
    "an open queue may go": ("leaf", [], Rules()),
    "a closed one too": ("closed", [], Rules()),
    "default stays": ("default", ["`default` queue can not be deleted"], Rules()),
    "root stays": ("root", ["`root` queue can not be deleted"], Rules()),
    "one that there is not": (
        "nowhere",
        ['queue.scheduling.volcano.sh "nowhere" not found'],
        Rules(),
    ),
    "a parent stays": (
        "tree",
        ["queue tree can not be deleted because it has 2 child queues: leaf, leaf2"],
        Rules(),
    ),
    "one that holds pods may go": ("busy", [], Rules()),
    "one that holds pods stays where that is the rule": (
        "busy",
        ["queue busy cannot be deleted because it has allocated Pods: 3"],
        Rules(keeps_allocated=True),
    ),
    "one that holds none may go": ("leaf", [], Rules(keeps_allocated=True)),
}


@pytest.mark.parametrize(("name", "want", "rules"), DELETED.values(), ids=DELETED.keys())
def test_delete(name: str, want: list[str], rules: Rules) -> None:
    standing = view(
        a_queue("tree"),
        a_queue("leaf2", parent="tree"),
        holding(a_queue("leaf", parent="tree"), "0"),
        holding(a_queue("busy"), "3"),
        a_queue("closed", state="Closed"),
    )
    assert messages(queues.check_delete(name, standing, rules)) == want


def test_a_quantity_that_is_none_is_told() -> None:
    queue = Queue(spec=QueueSpec(capability={"cpu": "many"}), status=QueueStatus(state="Open"))
    assert messages(queues.check_create(queue, view(), Rules())) == [
        f'{AT}.capability.cpu: Invalid value: "many": must be a quantity'
    ]
