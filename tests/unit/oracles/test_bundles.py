"""Bundles: which tasks of a job go without harm, which break it, and what is taken first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np
import pytest

from pumice.core.actions.bundles import Bundle, bundles_of
from pumice.core.api.scheduling import SubGroupPolicy
from pumice.core.ids import JobKey
from pumice.core.model.jobs import JobInfo
from tests.builders import a_cluster, a_group, a_node, a_pod

PARTS = SubGroupPolicy(name="g", match_label_keys=["part"], sub_group_size=2, min_sub_groups=2)


@dataclass(frozen=True)
class Case:
    """A job of running pods `a`, `b`...; what of it is safe, and what is left, by name."""

    pods: str
    safe: str
    whole: str = ""
    least: int = 0
    roles: Mapping[str, int] | None = None
    role: Mapping[str, str] = field(default_factory=dict)
    part: Mapping[str, str] = field(default_factory=dict)
    policies: Sequence[SubGroupPolicy] = ()
    #: pods that the action may send off; all of them where none are named
    here: str = ""
    priority: Mapping[str, int] = field(default_factory=dict)


def split(case: Case) -> dict[bool, str]:
    """Return the names in each bundle, by whether it breaks the job."""
    pods = [
        a_pod(
            name,
            job="j",
            node="n",
            role=case.role.get(name, ""),
            labels={"part": case.part[name]} if name in case.part else None,
            priority=case.priority.get(name),
        )
        for name in case.pods
    ]
    group = a_group(
        "j", least=case.least, roles=case.roles, policies=case.policies, phase="Running"
    )
    job = a_cluster(a_node("n", "99 99Gi"), group, pods).jobs[JobKey("ns/j")]
    tasks = [task for task in job.tasks.values() if task.name in (case.here or case.pods)]
    return {b.whole: "".join(task.name for task in b.tasks) for b in bundles_of(job, tasks)}


PAIRS = {name: str(i // 2) for i, name in enumerate("abcdef")}
CASES = {
    "a job keeps the minimum of a role": Case(
        "abcde", "ab", "cde", least=3, roles={"w": 3}, role=dict.fromkeys("abcde", "w")
    ),
    "sub-jobs beyond their minimum are broken one at a time": Case(
        "abcdef", "a", "ce", least=4, policies=[PARTS], part=PAIRS, here="ace"
    ),
    "of a broken sub-job the rest may go as well": Case(
        "abcdef", "ab", "cdef", least=4, policies=[PARTS], part=PAIRS
    ),
    "as may all of a sub-job that is not whole": Case(
        "abcde", "e", "abcd", least=4, policies=[PARTS], part=PAIRS
    ),
    "a job at its minimum can spare none": Case("ab", "", "ab", least=2),
    "one without a minimum all": Case("ab", "ab"),
    "of one that is below its minimum nothing can be spoilt": Case("ab", "ab", least=3),
    "the least important ones go first": Case("abc", "b", "ca", least=2, priority={"a": 9, "c": 5}),
    "minima of roles that exceed the job's do not count": Case(
        "abc", "ab", "c", least=1, roles={"w": 3}, role=dict.fromkeys("abc", "w")
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_a_job_can_spare(case: Case) -> None:
    assert split(case) == {
        whole: names for whole, names in ((False, case.safe), (True, case.whole)) if names
    }


def a_job(asks: str, *pods: str) -> JobInfo:
    running = [a_pod(name, asks, job="j", node="n") for name in pods]
    group = a_group("j", least=len(pods), phase="Running")
    return a_cluster(a_node("n", "99 999Gi"), group, running).jobs[JobKey("ns/j")]


GI = 2**30


def worth(job: JobInfo, n: int, need: Sequence[float], *, whole: bool = True) -> float:
    return Bundle(job, tuple(job.tasks.values())[:n], whole).worth(np.array([*need, 1]))


def test_worth_is_what_is_freed_for_what_is_lost() -> None:
    four = a_job("1 1Gi", "a", "b", "c", "d")
    # Half of the cpu and of the memory that are needed, for a job that holds as much as needed.
    assert worth(four, 2, [4000, 4 * GI]) == 0.5
    # All of the cpu and half of the memory, for twice the cpu and the same memory.
    assert worth(a_job("2 1Gi", "a", "b", "c", "d"), 2, [4000, 4 * GI]) == (1 + 0.5) / (2 + 1)
    # More than is needed counts no more.
    assert worth(four, 4, [1000, 0]) == 1 / 4
    assert worth(four, 1, [4000, 0], whole=False) == inf
    assert worth(four, 1, [0, 0]) == inf


def test_a_whole_bundle_goes_or_stays_as_one() -> None:
    job = a_job("1 1Gi", "a", "b", "c")
    tasks = tuple(job.tasks.values())
    safe, whole = Bundle(job, tasks[:2], whole=False), Bundle(job, tasks[1:], whole=True)
    allowed = {tasks[0].uid, tasks[1].uid}
    shrunk = safe.among({tasks[0].uid})
    assert shrunk is not None
    assert shrunk.tasks == tasks[:1]
    assert whole.among(allowed) is None
    assert safe.among(set()) is None
    both = whole.among({task.uid for task in tasks})
    assert both is not None
    assert both.tasks == whole.tasks
