"""tdm: nodes that are lent by the hour, and how they are cleared."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from pumice.core import names
from pumice.core.api.core import Pod
from pumice.core.api.scheduling import PodGroup
from pumice.core.extension import Code
from pumice.core.plugins.tdm import NOT_REVOCABLE, Window
from pumice.core.session import Session
from pumice.core.timestamps import moment
from tests.builders import Thing, a_cluster, a_conf, a_group, a_node, a_plugin, a_pod, a_session
from tests.unit.oracles.views import refused, scores, task

NOON = moment("2026-01-01T12:00:00Z")
ALWAYS, PAST = "0:00-0:00", "0:00-0:01"


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def zoned(name: str, zone: str = "") -> Thing:
    return a_node(name, "9", labels={names.REVOCABLE_ZONE: zone} if zone else None)


def a_world(*things: Thing, zones: Mapping[str, object], now: float = NOON) -> Session:
    raw = {f"tdm.revocable-zone.{zone}": text for zone, text in zones.items()}
    return a_session(a_conf("shuffle", [a_plugin("tdm", **raw)]), a_cluster(things), now=now)


def lent(pod: Pod) -> Session:
    nodes = [zoned("n1", "a"), zoned("n2", "a"), zoned("n3"), zoned("n4", "b"), zoned("n5", "c")]
    return a_world(*nodes, a_group("g"), pod, zones={"a": ALWAYS, "b": PAST})


def test_pods_that_may_be_sent_away_like_nodes_that_are_lent() -> None:
    ssn = lent(a_pod("p", job="g", annotations={names.REVOCABLE_ZONE: "*"}))
    assert refused(ssn) == {
        "n4": (Code.UNRESOLVABLE, "current time beyond revocable zone b:0:00-0:01"),
        "n5": (Code.UNRESOLVABLE, "revocable zone c not support"),
    }
    assert scores(ssn) == {"n1": 100, "n2": 100, "n3": 0, "n4": 0, "n5": 0}


@pytest.mark.parametrize(
    ("notes", "may"),
    [
        ({}, False),
        ({names.PREEMPTABLE: "true"}, True),
        ({names.PREEMPTABLE: "false"}, False),
        ({names.REVOCABLE_ZONE: "a", names.PREEMPTABLE: "true"}, False),
    ],
)
def test_other_pods_do_not_go_there(notes: dict[str, str], may: bool) -> None:
    got = refused(lent(a_pod("p", job="g", annotations=notes)))
    want = dict.fromkeys(("n1", "n2", "n4", "n5"), (Code.UNRESOLVABLE, NOT_REVOCABLE))
    assert (got == want) is not may
    assert "n3" not in got


WINDOWS = {
    "within the day": ("09:00-17:30", "09:00:00", "17:29:59", "17:30:00"),
    "into the next day": ("22:00-06:00", "22:00:00", "23:59:59", "00:00:00"),
}


@pytest.mark.parametrize(("text", "first", "last", "over"), WINDOWS.values(), ids=WINDOWS.keys())
def test_windows(text: str, first: str, last: str, over: str) -> None:
    window = Window.parse(text)
    assert window is not None
    moments = [moment(f"2026-01-01T{at}Z") for at in (first, last, over)]
    assert [window.is_open(at) for at in moments] == [True, True, False]


@pytest.mark.parametrize("text", ["9-17", "25:00-26:00", "09:61-10:00", 9, ""])
def test_what_is_no_window_is_told(text: object) -> None:
    ssn = a_world(zones={"a": text})
    assert ssn.findings.warnings == [
        f"argument tdm.revocable-zone.a: {text!r} is not HH:MM-HH:MM, ignored"
    ]


@dataclass(frozen=True)
class Budget:
    """A job of `running` tasks, some preemptable; how many go at once."""

    notes: Mapping[str, str]
    preemptable: int
    want: int
    running: int = 5
    waiting: int = 0
    zone: str = PAST


MOST, LEAST = names.JDB_MAX_UNAVAILABLE, names.JDB_MIN_AVAILABLE
BUDGETS = {
    "a part, rounded up": Budget({MOST: "30%"}, 3, 2),
    "nothing while the zone is open": Budget({MOST: "30%"}, 3, 0, zone=ALWAYS),
    "only those that may go": Budget({MOST: "99%"}, 3, 3),
    "half": Budget({MOST: "50%"}, 5, 3),
    "down to a minimum": Budget({LEAST: "3"}, 5, 2),
    "in percent": Budget({LEAST: "30%"}, 5, 3),
    "tasks that do not run yet are unavailable": Budget({MOST: "50%"}, 8, 3, 8, 2),
    "one where fewer run than there should": Budget({LEAST: "9"}, 8, 1, 8, 2),
    "one where nothing is said": Budget({}, 5, 1),
}


def a_gang(case: Budget) -> list[Thing]:
    group: PodGroup = a_group("g")
    group.metadata.annotations = dict(case.notes)
    pods = [
        a_pod(
            f"g-{i}",
            job="g",
            node="n" if i < case.running else "",
            labels={names.PREEMPTABLE: "true" if i < case.preemptable else "false"},
        )
        for i in range(case.running + case.waiting)
    ]
    return [zoned("n", "a"), zoned("m"), group, *pods]


@pytest.mark.parametrize("case", BUDGETS.values(), ids=BUDGETS.keys())
def test_budgets(case: Budget) -> None:
    ssn = a_world(*a_gang(case), zones={"a": case.zone})
    running = list(ssn.nodes.tasks_on("n").values())
    assert len(ssn.victim_tasks(running)) == case.want


def test_nodes_are_cleared_once_in_a_period() -> None:
    things = a_gang(Budget({}, 5, 1))
    cluster, counts = a_cluster(things), []
    arguments = {"tdm.revocable-zone.a": PAST, "tdm.evict.period": "1m"}
    for now in (NOON, NOON + 59, NOON + 60):
        ssn = a_session(a_conf("shuffle", [a_plugin("tdm", **arguments)]), cluster, now=now)
        counts.append(len(ssn.victim_tasks(list(ssn.nodes.tasks_on("n").values()))))
        cluster.inputs.acted.update(ssn.close().acted)
    assert counts == [1, 0, 1]


def test_ordinary_pods_take_room_from_those_that_may_go_on_ordinary_nodes() -> None:
    yes, no = {names.PREEMPTABLE: "true"}, {names.PREEMPTABLE: "false"}
    ssn = a_world(
        zoned("n", "a"),
        zoned("m"),
        a_group("g"),
        a_pod("lent", job="g", node="n", labels=yes),
        a_pod("first", job="g", node="m", labels=yes),
        a_pod("second", job="g", node="m", labels=yes),
        a_pod("fixed", job="g", node="m", labels=no),
        a_pod("asking", job="g", labels=no),
        a_pod("modest", job="g", labels=yes),
        zones={"a": ALWAYS},
    )
    running = [task(ssn, name) for name in ("lent", "first", "second", "fixed")]
    assert [t.name for t in ssn.preemptable(task(ssn, "asking"), running)] == ["first"]
    assert ssn.preemptable(task(ssn, "modest"), running) == []


def test_ordinary_jobs_go_first_and_alone_starve() -> None:
    loose = a_group("a-loose")
    loose.metadata.annotations = {names.PREEMPTABLE: "true"}
    ssn = a_world(
        loose,
        a_group("fixed"),
        a_pod("x", job="a-loose"),
        a_pod("y", job="fixed"),
        zones={},
    )
    ordered = sorted(ssn.active, key=ssn.job_key)
    assert [job.name for job in ordered] == ["fixed", "a-loose"]
    assert [ssn.is_starving(job) for job in ordered] == [True, False]
