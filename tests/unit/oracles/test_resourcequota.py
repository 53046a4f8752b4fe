"""resourcequota: what a namespace may still ask for."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pumice.core.api.limits import ResourceQuota, ResourceQuotaStatus
from pumice.core.api.meta import ObjectMeta
from pumice.core.session import Session
from tests.builders import a_cluster, a_conf, a_group, a_session, amounts


def a_quota(hard: str, used: str = "", *, name: str = "q", namespace: str = "ns") -> ResourceQuota:
    status = ResourceQuotaStatus(hard=amounts(hard), used=amounts(used))
    return ResourceQuota(metadata=ObjectMeta(name=name, namespace=namespace), status=status)


def a_world(quotas: list[ResourceQuota], *minima: str | None) -> Session:
    groups = [
        a_group(f"g{i}", phase="Pending", resources=minimum) for i, minimum in enumerate(minima)
    ]
    cluster = a_cluster(groups)
    for quota in quotas:
        cluster.inputs.set_quota(quota)
    return a_session(a_conf("enqueue", ["resourcequota"]), cluster)


@dataclass(frozen=True)
class Case:
    quotas: list[ResourceQuota]
    minimum: str | None
    want: bool


CASES = {
    "exactly what is left": Case([a_quota("4 4Gi", "1 1Gi")], "3 3Gi", True),
    "more than is left": Case([a_quota("4 4Gi", "1 1Gi")], "3001m 1Gi", False),
    "no quota": Case([], "99 99Gi", True),
    "one of another namespace": Case([a_quota("1", namespace="other")], "99", True),
    "no minimum": Case([a_quota("1", "1")], None, True),
    "names that the quota does not limit": Case([a_quota("1")], "1 99Gi", True),
    "by the names of quotas": Case(
        [a_quota("requests.cpu=2 pods=3")], "requests.cpu=1 pods=4", False
    ),
    "every quota counts": Case([a_quota("9"), a_quota("1", name="z")], "2", False),
    "what is used in names that are not asked for does not": Case(
        [a_quota("4 4Gi", "1 5Gi")], "1", True
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_group_enters_within_the_quota(case: Case) -> None:
    ssn = a_world(case.quotas, case.minimum)
    assert ssn.is_enqueueable(ssn.active[0]) is case.want


def test_groups_that_were_let_in_before_count() -> None:
    ssn = a_world([a_quota("4 4Gi", "1 1Gi")], "2 1Gi", "2 1Gi")
    first, second = ssn.active
    for told in ssn.points.job_enqueued:
        told(first)
    assert not ssn.is_enqueueable(second)
    assert ssn.trouble(second).message == (
        "resource quota insufficient, requested: map[cpu:2 memory:1Gi],"
        " used: map[cpu:3 memory:2Gi], limited: map[cpu:4 memory:4Gi]"
    )


def test_a_malformed_quota_is_told_of_and_left_out() -> None:
    ssn = a_world([a_quota("x")], "2")
    assert ssn.is_enqueueable(ssn.active[0])
    assert [w.partition(":")[0] for w in ssn.findings.warnings] == ["resourcequota ns/q"]


def test_quotas_come_and_go() -> None:
    cluster = a_cluster(a_group("g", phase="Pending", resources="2"))
    cluster.inputs.set_quota(a_quota("1"))
    before = cluster.snapshot()
    cluster.inputs.remove_quota("ns/q")
    assert (list(before.inputs.quotas["ns"]), cluster.inputs.quotas["ns"]) == (["q"], {})
