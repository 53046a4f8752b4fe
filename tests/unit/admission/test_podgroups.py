"""PodGroups: the queue of their namespace, and what is refused."""

from __future__ import annotations

import pytest

from pumice.core import names
from pumice.core.admission import podgroups
from pumice.core.api.scheduling import NetworkTopology, PodGroup, PodGroupSpec, SubGroupPolicy
from tests.builders import a_group, a_queue
from tests.unit.admission.builders import told, view

TWO_TIERS = (
    "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously."
)
BOTH = NetworkTopology(highest_tier_allowed=0, highest_tier_name="rack")
THEIRS = {names.QUEUE_NAME: "theirs"}

DEFAULTS: dict[str, tuple[str, dict[str, str], str]] = {
    "the default queue becomes the namespace's": ("default", THEIRS, "theirs"),
    "a queue that was chosen stays": ("mine", THEIRS, "mine"),
    "a namespace without a queue changes nothing": ("default", {"a": "b"}, "default"),
    "an empty name changes nothing": ("default", {names.QUEUE_NAME: ""}, "default"),
}


@pytest.mark.parametrize(("given", "notes", "want"), DEFAULTS.values(), ids=DEFAULTS.keys())
def test_defaults(given: str, notes: dict[str, str], want: str) -> None:
    assert podgroups.defaults(a_group("g", queue=given), notes) == a_group("g", queue=want)


CREATED: dict[str, tuple[PodGroup, list[tuple[str, str]]]] = {
    "an open queue": (a_group("g"), []),
    "no queue": (a_group("g", queue=""), []),
    "root and inner queues pass": (a_group("g", queue="root"), []),
    "a queue that there is not": (
        a_group("g", queue="nowhere"),
        [
            (
                "spec.queue",
                'unable to find queue: queue.scheduling.volcano.sh "nowhere" not found',
            )
        ],
    ),
    "a closed queue": (
        a_group("g", queue="closed"),
        [
            (
                "spec.queue",
                "can only submit PodGroup to queue with state `Open`, queue `closed` status is"
                " `Closed`.",
            )
        ],
    ),
    "tiers by number and by name": (
        PodGroup(
            spec=PodGroupSpec(
                network_topology=BOTH,
                sub_group_policy=[
                    SubGroupPolicy(name="a"),
                    SubGroupPolicy(name="b", network_topology=BOTH),
                ],
            )
        ),
        [
            ("spec.networkTopology", TWO_TIERS),
            ("spec.subGroupPolicy[1].networkTopology", f"in subGroupPolicy 'b': {TWO_TIERS}"),
        ],
    ),
}


@pytest.mark.parametrize(("group", "want"), CREATED.values(), ids=CREATED.keys())
def test_create(group: PodGroup, want: list[tuple[str, str]]) -> None:
    queues = view(a_queue("closed", state="Closed"))
    assert told(podgroups.check_create(group, queues)) == want
