"""
What must be seen of a case: one type for each check, read from the file.

A check looks at a `Record` and a `Moment` and says what is wrong, or nothing; it is pure.
"""

from __future__ import annotations

from tests.cases.checks.changes import (
    CreatedDuring,
    EvictedCount,
    EvictedDuring,
    MaxBindDelaySeconds,
    NeverAbove,
    RestartCount,
)
from tests.cases.checks.check import Check
from tests.cases.checks.identity import NewUid, OwnedBy, SameUid
from tests.cases.checks.objects import Absent, Admission, Exists, Field
from tests.cases.checks.phases import (
    JobPhase,
    JobPhaseOf,
    JobsInPhase,
    PodGroupCondition,
    PodGroupPhase,
    QueueState,
)
from tests.cases.checks.pods import (
    AliveCount,
    BoundAliveCount,
    BoundCount,
    BoundCountOf,
    BoundTotal,
    DistinctNodes,
    ExactlyOneFullyBound,
    NodeRequestedAtMost,
    OnNodes,
)

AnyCheck = (
    Absent
    | Admission
    | AliveCount
    | BoundAliveCount
    | BoundCount
    | BoundCountOf
    | BoundTotal
    | CreatedDuring
    | DistinctNodes
    | EvictedCount
    | EvictedDuring
    | ExactlyOneFullyBound
    | Exists
    | Field
    | JobPhase
    | JobPhaseOf
    | JobsInPhase
    | MaxBindDelaySeconds
    | NeverAbove
    | NewUid
    | NodeRequestedAtMost
    | OnNodes
    | OwnedBy
    | PodGroupCondition
    | PodGroupPhase
    | QueueState
    | RestartCount
    | SameUid
)

__all__ = ["AnyCheck", "Check"]
