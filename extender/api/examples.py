"""An example of every answer, as it stands in OpenAPI."""

from __future__ import annotations

from typing import Any, Final

from pumice.core.explain.answers import (
    Barrier,
    Comparison,
    Decision,
    Explanation,
    Gang,
    Group,
    Groups,
    Holder,
    Member,
    Members,
    Nack,
    Queues,
    QueueShare,
    Refused,
)

AT: Final = "2026-03-01T12:00:00Z"
SENTENCE: Final = (
    "The gang needs 8 pods at the same time, but only 7 of them find a node"
    " (8 nodes: not enough cpu for a pod that asks for 4)."
)
VOLCANO: Final = (
    "1/8 tasks in gang unschedulable: pod group is not ready, 8 Pending, 8 minAvailable; Pending:"
    " 1 Unschedulable, 7 Schedulable. Origin reason is training-worker-7: 0/8 nodes are"
    " unavailable: 8 Insufficient cpu."
)
NACK: Final = Nack(
    "training-worker-3",
    "node-2",
    AT,
    "Unschedulable",
    "0/8 nodes are available: 1 node(s) had untolerated taint(s).",
)

EXPLANATION: Final = Explanation(
    kind="job",
    namespace="team-a",
    name="training",
    state="waiting",
    sentence=SENTENCE,
    obstacle="room",
    pod_group="training-5f0c",
    queue="research",
    phase="Inqueue",
    members=Members(minimum=8, total=8, waiting=8, found=7, ledger={"Held": 8}),
    compared=(
        Comparison("gang", "gang", "members", "8", "7"),
        Comparison("allocate", "cluster", "cpu", "32", "31"),
        Comparison("allocate", "node", "cpu", "4", "3"),
    ),
    nodes=8,
    refused=(Refused(8, "Insufficient cpu", "not enough cpu for a pod that asks for 4"),),
    holders=(
        Holder("queue", {"cpu": "1"}, name="serving"),
        Holder("job", {"cpu": "1"}, "team-b", "podgroup-1d2e", "serving"),
    ),
    nack=NACK,
    condition=f"{VOLCANO} {SENTENCE}",
    decision=Decision("s42", AT, "allocate", "gang", VOLCANO),
)

GANG: Final = Gang(
    namespace="team-a",
    name="training-5f0c",
    queue="research",
    phase="Inqueue",
    minimum=2,
    states={"Released": 1, "Arrived": 1},
    barrier=Barrier(needed=2, here=1, parked=1, posting=0, waiting_s=1.25),
    members=(
        Member("training-worker-1", "6a9e", "Released", "node-3", AT, NACK),
        Member("training-worker-0", "0b1c", "Arrived", "node-2", AT),
    ),
)

GROUPS: Final = Groups(
    (
        Group(
            namespace="team-a",
            name="training-5f0c",
            queue="research",
            phase="Inqueue",
            state="waiting",
            minimum=8,
            total=8,
            waiting=8,
            running=0,
            priority=0,
            obstacle="room",
            sentence=SENTENCE,
        ),
    ),
    next_page="team-a/training-5f0c",
)

QUEUES: Final = Queues(
    (
        QueueShare(
            name="research",
            parent="root",
            state="Open",
            weight=2,
            priority=0,
            deserved={"cpu": "20", "pods": "80"},
            allocated={"cpu": "10", "pods": "10"},
            requested={"cpu": "42", "pods": "18"},
            capability={"cpu": "64"},
            guarantee={},
            share=0.5,
            pod_groups={"pending": 0, "inqueue": 1, "running": 2, "unknown": 0, "completed": 0},
        ),
    ),
)

LEDGER: Final[dict[str, Any]] = {
    "entries": [
        {
            "uid": "0b1c",
            "namespace": "team-a",
            "name": "training-worker-0",
            "job": "team-a/training-5f0c",
            "node": "node-2",
            "state": "Arrived",
            "since": 1772366400.0,
        }
    ],
    "unanswered": 0,
    "parked": 1,
    "calls": 12,
    "errors": 0,
}

SESSIONS: Final[list[dict[str, Any]]] = [
    {
        "plan": {
            "session": "s41",
            "now": 1772366399.0,
            "allocations": [
                {
                    "job": "team-a/training-5f0c",
                    "group_uid": "5f0c",
                    "placements": [{"uid": "0b1c", "node": "node-2", "score": 0.0}],
                    "reason": {
                        "action": "allocate",
                        "plugin": "gang",
                        "message": "2 of 2 tasks placed; with them 2 are ready of the 2 that the"
                        " gang needs",
                        "numbers": {"placed": 2.0, "ready": 2.0, "minAvailable": 2.0},
                    },
                }
            ],
            "enqueued": [],
            "warnings": [],
        },
        "placed": 2,
        "dropped": 0,
        "why": {},
        "seconds": 0.012,
    }
]

CHECK: Final[dict[str, Any]] = {
    "faults": [],
    "objects": {"pod team-a/broken": "not a quantity: 'plenty'"},
}
