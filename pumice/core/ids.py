"""The ids that get mixed up, as types of their own."""

from __future__ import annotations

from typing import NewType

PodUid = NewType("PodUid", str)
"""metadata.uid of a pod: the identity of a plan."""

JobKey = NewType("JobKey", str)
"""`namespace/name` of a PodGroup: the id of a job in the scheduler, as in Volcano."""
