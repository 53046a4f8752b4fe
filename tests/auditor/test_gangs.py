"""Rule A: which histories of a gang it objects to, and which it lets pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.auditor.builders import (
    ADMIN,
    CONTROLLERS,
    EXTENDER,
    Case,
    binding,
    deletion,
    gang,
    pod,
    seen,
    verdict,
)
from tests.auditor.facts import Mark, Requirement, SubGroups

A, B, C = "a", "b", "c"
PARTITIONS = SubGroups("parts", size=2, least=2, split_by=("part",))

GANGS = {
    "a gang bound whole within the limit is well": Case(
        [seen(1, gang(2), pod(A), pod(B)), seen(2, pod(A, "n")), seen(6, pod(B, "n"))]
    ),
    "a gang of which nothing is bound may wait for ever": Case([seen(1, gang(2), pod(A), pod(B))]),
    "half a gang bound for longer than the limit is not": Case(
        [seen(1, gang(2), pod(A), pod(B)), seen(2, pod(A, "n")), seen(8, pod(B, "n"))],
        ["gang ns/g showed 1 of its minimum of 2 for 6.0 s, longer than the 5 s allowed"],
    ),
    "half a gang still bound at the end counts until then": Case(
        [seen(1, gang(2), pod(A), pod(B)), seen(2, pod(A, "n"))],
        ["gang ns/g showed 1 of its minimum of 2 for 98.0 s, longer than the 5 s allowed"],
    ),
    "half a gang seen just before the end is given time": Case(
        [seen(1, gang(2), pod(A), pod(B)), seen(2, pod(A, "n"))], ended=6.0
    ),
    "bindings are dated by the audit log, so a late watch is no violation": Case(
        [
            seen(1, gang(2), pod(A), pod(B)),
            seen(2, pod(A, "n")),
            binding(2.1, B),
            seen(9, pod(B, "n")),
        ]
    ),
    "succeeded members count as started": Case(
        [
            seen(1, gang(2), pod(A), pod(B)),
            seen(2, pod(A, "n"), pod(B, "n")),
            seen(3, pod(A, "n", phase="Succeeded")),
        ]
    ),
    "one succeeded member alone is half a gang": Case(
        [seen(1, gang(2), pod(A, "n", phase="Succeeded"), pod(B))],
        ["gang ns/g showed 1 of its minimum of 2 for 99.0 s, longer than the 5 s allowed"],
    ),
    "pending members that ask for nothing count towards the minimum": Case(
        [seen(1, gang(2), pod(A), pod(B, requests={})), seen(2, pod(A, "n"))]
    ),
    "surplus members of an elastic gang may wait": Case(
        [seen(1, gang(1), pod(A), pod(B)), seen(2, pod(A, "n"))]
    ),
    "a bound member deleted by a user excuses the gang": Case(
        [
            seen(1, gang(2), pod(A, "n"), pod(B, "n")),
            deletion(10, B, ADMIN),
            seen(10, pod(B, "n", deleting=True)),
            seen(11, pod(B, "n", deleting=True), gone=True),
            seen(12, pod(C)),
        ]
    ),
    "the excuse ends when the gang is whole again": Case(
        [
            seen(1, gang(2), pod(A, "n"), pod(B, "n")),
            deletion(10, B, ADMIN),
            seen(10, pod(B, "n", deleting=True)),
            seen(12, pod(C)),
            seen(20, pod(C, "n")),
            deletion(30, C, EXTENDER),
            seen(30, pod(C, "n", deleting=True)),
        ],
        ["gang ns/g showed 1 of its minimum of 2 for 70.0 s, longer than the 5 s allowed"],
    ),
    "members ended by our controllers once they had started excuse the gang": Case(
        [
            seen(1, gang(2), pod(A, "n"), pod(B, "n")),
            deletion(10, B, CONTROLLERS),
            seen(10, pod(B, "n", deleting=True)),
        ]
    ),
    "a waiting member replaced by our controllers does not": Case(
        [
            seen(1, gang(2), pod(A), pod(B)),
            seen(2, pod(A, "n")),
            deletion(3, B, CONTROLLERS),
            seen(3, pod(B), gone=True),
            seen(4, pod(C)),
        ],
        ["gang ns/g showed 1 of its minimum of 2 for 98.0 s, longer than the 5 s allowed"],
    ),
    "a waiting member deleted by a user just before the others are bound excuses them": Case(
        [
            seen(1, gang(2), pod(A), pod(B)),
            deletion(2, B, ADMIN),
            seen(2, pod(B), gone=True),
            seen(2.5, pod(A, "n")),
        ]
    ),
    "one deleted long before does not": Case(
        [
            seen(1, gang(2), pod(A), pod(B)),
            deletion(2, B, ADMIN),
            seen(2, pod(B), gone=True),
            seen(50, pod(A, "n")),
        ],
        ["gang ns/g showed 1 of its minimum of 2 for 50.0 s, longer than the 5 s allowed"],
    ),
    "a gang restarted by our controllers must start whole again": Case(
        [
            seen(1, gang(2), pod(A, "n"), pod(B, "n")),
            deletion(10, A, CONTROLLERS),
            deletion(10, B, CONTROLLERS),
            seen(10, pod(A, "n", deleting=True), pod(B, "n", deleting=True)),
            seen(11, pod("a2"), pod("b2")),
            seen(11.5, pod("a2", "n")),
        ],
        ["gang ns/g showed 1 of its minimum of 2 for 88.5 s, longer than the 5 s allowed"],
    ),
    "a failed member excuses the gang": Case(
        [
            seen(1, gang(2), pod(A, "n"), pod(B, "n")),
            seen(9, pod(B, "n", phase="Failed")),
        ]
    ),
    "a member failed after the gang had been partial too long does not": Case(
        [
            seen(1, gang(3), pod(A), pod(B), pod(C)),
            seen(2, pod(A, "n"), pod(B, "n")),
            seen(9, pod(B, "n", phase="Failed")),
        ],
        ["gang ns/g showed 2 of its minimum of 3 for 7.0 s, longer than the 5 s allowed"],
    ),
    "a raised minimum excuses the gang": Case(
        [seen(1, gang(1), pod(A, "n"), pod(B)), seen(9, gang(2))]
    ),
    "a gang whose PodGroup is gone is none": Case(
        [seen(1, gang(2), pod(A), pod(B)), seen(2, pod(A, "n")), seen(3, gang(2), gone=True)]
    ),
    "time between pause and resume counts for nobody": Case(
        [
            seen(1, gang(2), pod(A), pod(B)),
            seen(2, pod(A, "n")),
            Mark(3, "pause"),
            Mark(23, "resume"),
            seen(26, pod(B, "n")),
        ]
    ),
    "time before and after the pause does": Case(
        [
            seen(1, gang(2), pod(A), pod(B)),
            seen(2, pod(A, "n")),
            Mark(3, "pause"),
            Mark(23, "resume"),
            seen(29, pod(B, "n")),
        ],
        ["gang ns/g showed 1 of its minimum of 2 for 7.0 s, longer than the 5 s allowed"],
    ),
    "a kill starts the clock again": Case(
        [
            Mark(0.5, "limit", 30.0),
            seen(1, gang(2), pod(A), pod(B)),
            seen(2, pod(A, "n")),
            Mark(25, "killed"),
            seen(50, pod(B, "n")),
        ]
    ),
    "after the last kill the limit holds": Case(
        [
            Mark(0.5, "limit", 30.0),
            seen(1, gang(2), pod(A), pod(B)),
            seen(2, pod(A, "n")),
            Mark(25, "killed"),
            seen(56, pod(B, "n")),
        ],
        ["gang ns/g showed 1 of its minimum of 2 for 31.0 s, longer than the 30 s allowed"],
    ),
    "a role below its minimum is half a gang": Case(
        [
            seen(1, gang(2, roles={"ps": 1}), pod(A), pod(B), pod(C, role="ps")),
            seen(2, pod(A, "n"), pod(B, "n")),
        ],
        ["gang ns/g showed 0 of the 1 that role ps needs for 98.0 s, longer than the 5 s allowed"],
    ),
    "role minima that exceed the gang's minimum don't count": Case(
        [
            seen(1, gang(1, roles={"ps": 2}), pod(A), pod(C, role="ps")),
            seen(2, pod(A, "n")),
        ]
    ),
    "two whole sub-groups are enough": Case(
        [
            seen(1, gang(2, sub_groups=(PARTITIONS,))),
            seen(2, *(pod(f"{p}{i}", "n", labels={"part": p}) for p in "xy" for i in (0, 1))),
        ]
    ),
    "two halves of sub-groups are not": Case(
        [
            seen(1, gang(2, sub_groups=(PARTITIONS,))),
            seen(2, *(pod(f"{p}0", "n", labels={"part": p}) for p in "xyz")),
        ],
        [
            "gang ns/g showed 0 of the 2 sub-groups that parts needs for 98.0 s, "
            "longer than the 5 s allowed"
        ],
    ),
    "pods outside a sub-group's selector don't fill it": Case(
        [
            seen(
                1,
                gang(
                    1,
                    sub_groups=(
                        replace(
                            PARTITIONS,
                            least=1,
                            selector=(Requirement("kind", "In", frozenset({"w"})),),
                        ),
                    ),
                ),
            ),
            seen(2, *(pod(f"x{i}", "n", labels={"part": "x", "kind": "ps"}) for i in (0, 1))),
        ],
        [
            "gang ns/g showed 0 of the 1 sub-groups that parts needs for 98.0 s, "
            "longer than the 5 s allowed"
        ],
    ),
    "pods of other schedulers make no gang of ours": Case(
        [seen(1, gang(2), pod(A, "n", scheduler="default-scheduler"))]
    ),
}


@pytest.mark.parametrize("case", GANGS.values(), ids=GANGS.keys())
def test_a_gang_starts_whole_or_not_at_all(case: Case) -> None:
    assert verdict("A", case) == case.want
