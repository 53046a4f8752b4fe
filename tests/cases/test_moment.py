"""References: which object is meant."""

from __future__ import annotations

import pytest

from tests.cases.builders import a_group, a_moment, a_pod, an_object
from tests.cases.moment import parse, reference

JOB = an_object("j", uid="1")
OLD = an_object("j-old", metadata={"name": "g-1", "namespace": "a", "uid": "o",
                                   "creationTimestamp": "2030-01-01T00:00:00Z"})  # fmt: skip
NEW = an_object("j-new", metadata={"name": "g-0", "namespace": "a", "uid": "n",
                                   "creationTimestamp": "2030-01-01T00:00:01Z"})  # fmt: skip
MOMENT = a_moment(
    a_pod("p"),
    jobs=(JOB,),
    groups=(a_group("j-1", owner="1"), a_group("other", owner="2"), OLD, NEW),
    queues=(an_object("q", namespace=""),),
    others={"service/a/s": an_object("s"), "service/a/gone": None},
)

MEANT = {
    "pod/a/p": "p",
    "job/a/j": "j",
    "queue/q": "q",
    "podgroup/a/other": "other",
    "podgroup:a/other": "other",
    "podgroup:podgroup/a/other": "other",
    "podgroup:ownedBy:job/a/j": "j-1",
    "ownedBy:job/a/j": "j-1",
    "podgroup:namePrefix:a/g-": "g-0",
    "namePrefix:a/oth": "other",
    "service/a/s": "s",
    "service/a/gone": None,
    "job/a/absent": None,
    "ownedBy:job/a/absent": None,
    "namePrefix:b/": None,
}


@pytest.mark.parametrize("text", MEANT)
def test_a_reference_leads_to_its_object(text: str) -> None:
    found = MOMENT.find(text)
    assert (found and found["metadata"]["name"]) == MEANT[text]


@pytest.mark.parametrize("text", ["a/j", "podgroup/a/j", "podgroup:a/j"])
def test_a_group_that_is_not_there_still_has_a_key(text: str) -> None:
    assert a_moment().group_key(text) == "a/j"


def test_a_reference_has_two_or_three_parts() -> None:
    assert parse("queue/q") == ("queue", "", "q")
    assert parse("pod/a/p") == ("pod", "a", "p")
    for text in ("p", "pod//p", "pod/a/b/c", ""):
        with pytest.raises(ValueError, match="is not kind/namespace/name"):
            parse(text)


def test_objects_are_listed_under_kind_and_name() -> None:
    pod = {"kind": "Pod", "metadata": {"namespace": "a", "name": "p"}}
    queue = {"kind": "Queue", "metadata": {"name": "q"}}
    assert [reference(body) for body in (pod, queue)] == ["pod/a/p", "queue/q"]
