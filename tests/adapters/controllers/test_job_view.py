"""What the controller takes for true while the caches lag behind its own writes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from controllers.caches import Caches
from controllers.job_secrets import JobSecrets
from controllers.job_view import JobView
from pumice.core.api.batch import Job
from pumice.core.api.core import Pod, PodSpec
from pumice.core.api.scheduling import PodGroup
from pumice.core.jobs import membership
from tests.fakeapi.app import FakeApi
from tests.fakeapi.clock import ManualClock
from tests.unit.jobs.builders import a_group, a_job, a_pod, a_task

versions: Iterator[int] = iter(range(1, 10_000))


@pytest.fixture
def caches() -> Caches:
    clock = ManualClock()
    return Caches(FakeApi(clock).client(), ["volcano"], clock=clock)


def put(caches: Caches, *objects: Job | Pod | PodGroup) -> JobView:
    """Fill the caches and return the view of them."""
    clock = ManualClock()
    view = JobView(caches, JobSecrets(FakeApi(clock).client(), clock))
    for obj in objects:
        meta = msgspec.structs.replace(obj.metadata, resource_version=str(next(versions)))
        if isinstance(obj, Pod):
            spec = msgspec.structs.replace(obj.spec, scheduler_name="volcano")
            view.changed(msgspec.structs.replace(obj, metadata=meta, spec=spec))
        else:
            view.changed(msgspec.structs.replace(obj, metadata=meta))
    return view


def test_what_was_deleted_is_gone_before_the_caches_notice(caches: Caches) -> None:
    job = a_job(a_task("w", 2))
    view = put(caches, job, a_pod("j-w-0"), a_pod("j-w-1"), a_group(job))
    view.deleted("ns/j-w-0", "uid-j-w-0", None)
    view.deleted("ns/j-u1", "group-uid", None)

    seen = view.observed(job)

    assert [n for n, p in seen.pods.items() if membership.is_terminating(p)] == ["j-w-0"]
    assert seen.group is None


def test_what_was_deleted_while_another_wrote_to_it_is_gone_as_well(caches: Caches) -> None:
    job = a_job(a_task("w", 1))
    view = put(caches, job, a_pod("j-w-0"))
    last = a_pod("j-w-0")
    last.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    last.metadata.resource_version = ""
    view.deleted("ns/j-w-0", "uid-j-w-0", last)

    seen = view.observed(job)

    assert [membership.is_terminating(pod) for pod in seen.pods.values()] == [True]


def test_what_the_caches_have_noticed_is_not_remembered(caches: Caches) -> None:
    job = a_job()
    view = put(caches, job, a_pod("j-w-0"))
    view.deleted("ns/j-w-0", "uid-of-an-older-one", None)
    assert view.gone == set()

    view.deleted("ns/j-w-0", "uid-j-w-0", None)
    view.noticed("uid-j-w-0")
    assert view.gone == set()


def test_pods_and_groups_of_a_namesake_are_not_the_jobs(caches: Caches) -> None:
    old, new = a_job(a_task("w", 2), uid="u0"), a_job(a_task("w", 2))
    group = a_group(old)
    group.metadata.name = "j"
    view = put(caches, new, a_pod("j-w-0", job="u0"), a_pod("j-w-1"), group)

    seen = view.observed(new)

    assert list(seen.pods) == ["j-w-1"]
    assert seen.taken == {"j-w-0"}
    assert seen.group is None


def test_an_older_group_with_the_jobs_name_alone_is_the_jobs(caches: Caches) -> None:
    job = a_job()
    group = a_group(job)
    group.metadata.name = "j"

    seen = put(caches, job, group).observed(job)

    assert seen.group is not None
    assert seen.group.metadata.name == "j"


def test_an_index_of_two_caches_keeps_the_new_object_when_it_loses_the_old(caches: Caches) -> None:
    view = put(caches, a_pod("j-w-0"))
    new = a_pod("j-w-0")
    new.metadata.uid, new.metadata.resource_version = "new", str(next(versions))
    new.spec = PodSpec(scheduler_name="other")
    view.changed(new)
    assert [p.metadata.uid for p in caches.pods_by_owner.get("u1").values()] == ["new"]

    # The first cache shows another Job's pod under the name: the old one is lost only now.
    third = a_pod("j-w-0", job="u2")
    third.metadata.uid = "third"
    put(caches, third)

    assert [p.metadata.uid for p in caches.pods_by_owner.get("u1").values()] == ["new"]
    assert [p.metadata.uid for p in caches.pods_by_owner.get("u2").values()] == ["third"]
