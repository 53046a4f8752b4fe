"""A session that is recorded, read and run again comes to the same decisions, byte for byte."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.cli import replay
from pumice.core.api.limits import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    ResourceQuota,
    ResourceQuotaStatus,
)
from pumice.core.api.meta import LabelSelector, ObjectMeta
from pumice.core.cluster import Cluster
from pumice.core.conf import Configuration, parse
from pumice.core.cycle import run_session
from pumice.core.devices.sharing import Sharing
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.inputs import Load
from pumice.core.model.snapshots import Snapshot
from pumice.core.outside import Ask, Json, Question, nobody
from pumice.core.replay.answers import Exchange, Listening, Memory
from pumice.core.replay.differences import differences
from pumice.core.replay.record import RecordError, read, record, snapshot_of
from pumice.core.replay.run import rerun
from tests.builders import (
    a_cluster,
    a_group,
    a_hypernode,
    a_job,
    a_node,
    a_pod,
    a_priority_class,
    a_queue,
    placements,
)
from tests.devices import a_card_pod, a_vgpu_node, vgpu
from tests.effort import examples
from tests.volumes import (
    a_capacity,
    a_claim,
    a_class,
    a_csi_node,
    a_driver,
    a_mounting_pod,
    a_volume,
    store,
)

TEXT = """\
actions: "enqueue, allocate, backfill, preempt, reclaim"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
    arguments:
      leastrequested.weight: 1
"""
WEIGHED = TEXT.replace("leastrequested.weight: 1", "mostrequested.weight: 10")
NOW = 1_800_000_000.0


def recorded(cluster: Cluster, conf: Configuration, ask: Ask = nobody) -> bytes:
    """Run a session and return its record."""
    snapshot, listening = cluster.snapshot(), Listening(ask)
    plan = run_session(snapshot, conf, NOW, "s1", ask=listening)
    return record(snapshot, conf, listening.heard, plan)


def again(text: bytes, conf: str | None = None) -> list[str]:
    """Return how a session that is run again differs."""
    found = read(text)
    used = conf or found.configuration
    return differences(found, rerun(found, parse(used)).decisions, used)


def a_world() -> Cluster:
    """Return a cluster in which a bit of everything is going on."""
    cluster = a_cluster(
        [a_node(f"n{i}", "4 16Gi vendor.com/gpu=2") for i in range(4)],
        a_queue("default"),
        a_queue("rich", weight=3, capability="9 90Gi"),
        a_priority_class("high", 1000),
        a_job("runs", 3, on=["n0", "n0", "n1"]),
        a_job("waits", 4, "3 1Gi", queue="rich"),
        a_job("wide", 9, "3 1Gi", phase="Pending", resources="27 9Gi"),
        a_job("urgent", 2, "2 1Gi vendor.com/gpu=1", priority="high"),
        a_job("lost", 1, queue="nowhere"),
        a_group("empty", least=0),
        a_pod("alone", node="n3"),
        a_pod("leaves", node="n2", deleting=True),
        a_pod("malformed", "one", job="runs"),
        a_hypernode("left", 1, "n0", "n1"),
        a_hypernode("nowhere", 0, "n2"),
        assumed={"urgent-0": "n3"},
    )
    cluster.dismiss(PodUid("runs-2"))
    cluster.promise(PodUid("urgent-1"), "n1")
    cluster.inputs.loads["n0"] = Load(12.5, 99.0, NOW - 1)
    cluster.inputs.set_quota(
        ResourceQuota(
            metadata=ObjectMeta(name="q", namespace="ns"),
            status=ResourceQuotaStatus(hard={"cpu": "1"}, used={"cpu": "0"}),
        )
    )
    cluster.inputs.set_budget(
        PodDisruptionBudget(
            metadata=ObjectMeta(name="b", namespace="ns"),
            spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"a": "b"})),
        )
    )
    return cluster


def test_a_snapshot_comes_back_as_it_was() -> None:
    cluster = a_world()
    avoided = {JobKey("ns/waits"): frozenset({"n1", "n0"})}
    snapshot = cluster.snapshot(avoided, frozenset({PodUid("runs-0")}))
    plan = run_session(snapshot, parse(TEXT), NOW, "s1")
    back = snapshot_of(read(record(snapshot, parse(TEXT), [], plan)).seen)

    assert back.names == snapshot.names
    assert (back.nodes.infos, back.nodes.names) == (snapshot.nodes.infos, snapshot.nodes.names)
    for table in ("alloc", "used", "releasing"):
        assert (getattr(back.nodes, table) == getattr(snapshot.nodes, table)).all()
    assert list(back.jobs) == list(snapshot.jobs)
    for key, job in snapshot.jobs.items():
        assert [*back.jobs[key].tasks] == [*job.tasks]
        assert back.jobs[key].counts == job.counts
        assert back.jobs[key].terms.remarks == job.terms.remarks
    assert [*back.queues] == [*snapshot.queues]
    assert [*back.usage] == [*snapshot.usage]
    for name in ("active", "avoided", "spared", "faults", "inputs", "default_queue", "label_keys"):
        assert getattr(back, name) == getattr(snapshot, name), name
    assert back.tree.faults == snapshot.tree.faults
    assert back.hypernodes == snapshot.hypernodes
    assert as_counted(back) == as_counted(snapshot)


def as_counted(snapshot: Snapshot) -> dict[str, list[tuple[object, ...]]]:
    """Return the tasks of each job and node, in order, as they were counted."""
    jobs = {str(key): [*job.tasks.values()] for key, job in snapshot.jobs.items()}
    nodes = {name: [*tasks.values()] for name, tasks in snapshot.nodes.residents.items()}
    return {
        name: [(t.uid, t.status, t.node, t.nominated) for t in tasks]
        for name, tasks in (jobs | nodes).items()
    }


def test_it_decides_the_same() -> None:
    assert again(recorded(a_world(), parse(TEXT))) == []


def test_what_decides_where_volumes_are_is_in_the_record() -> None:
    members = [a_mounting_pod(f"m{i}", f"c{i}", job="gang") for i in range(3)]
    cluster = store(
        a_cluster([a_node(f"n{i}") for i in range(4)], a_group("gang", least=3), members),
        a_class("local"),
        a_class("made", by="csi"),
        [a_claim("c0"), a_claim("c1"), a_claim("c2", of="made")],
        [a_volume("v1", on="n1"), a_volume("v3", on="n3")],
        [a_driver("csi"), a_capacity("left", "made", "1Gi", **{"kubernetes.io/hostname": "n2"})],
        a_csi_node("n2", csi=3),
    )
    snapshot, conf = cluster.snapshot(), parse(TEXT)
    plan = run_session(snapshot, conf, NOW, "s1")
    assert placements(plan) == {"m0": "n1", "m1": "n3", "m2": "n2"}

    text = record(snapshot, conf, [], plan)
    assert snapshot_of(read(text).seen).inputs == snapshot.inputs
    assert again(text) == []


def a_thousand_jobs() -> Cluster:
    jobs = [a_job(f"j{i}", 1 + i % 3, "1 1Gi", created=i % 50) for i in range(1000)]
    return a_cluster([a_node(f"n{i}", "32 128Gi") for i in range(40)], *jobs)


def test_a_thousand_jobs_decide_the_same_and_another_weight_shows() -> None:
    text = recorded(a_thousand_jobs(), parse(TEXT))
    assert again(text) == []

    lines = again(text, WEIGHED)
    assert lines[:4] == [
        "configuration:",
        "       arguments:",
        "  -      leastrequested.weight: 1",
        "  +      mostrequested.weight: 10",
    ]
    assert lines[4] == "pods placed:"
    assert lines[5].split() == ["ns/j100-0", "n1", "->", "n0"]
    assert lines[-1].strip().startswith("and ")
    assert len(lines) < 60


@given(st.randoms(use_true_random=False), st.data())
@settings(max_examples=examples(60))
def test_whatever_has_happened_it_decides_the_same(rng: Any, data: st.DataObject) -> None:
    """Pods come, are placed, move and go in any order; so do nodes."""
    cluster = Cluster()
    cluster.set_queue(a_queue("default"))
    cluster.set_queue(a_queue("other", capability="5 50Gi"))
    for number in range(data.draw(st.integers(1, 25))):
        name, node = f"j{rng.randrange(5)}", f"n{rng.randrange(4)}"
        match rng.randrange(7):
            case 0 | 1:
                cluster.set_node(a_node(node, f"{rng.randint(1, 8)} 16Gi"))
            case 2:
                cluster.remove_node(node)
            case 3:
                queue = rng.choice(["default", "other"])
                cluster.set_pod_group(a_group(name, least=rng.randint(1, 3), queue=queue))
            case 4:
                pod = a_pod(f"{name}-{rng.randrange(4)}", job=name, created=number)
                cluster.set_pod(pod)
            case 5:
                uid = f"{name}-{rng.randrange(4)}"
                cluster.set_pod(a_pod(uid, job=name, node=rng.choice(["", node])))
                rng.choice([cluster.dismiss, cluster.forget])(PodUid(uid))
            case 6:
                cluster.assume(PodUid(f"{name}-{rng.randrange(4)}"), node)
    conf = parse(data.draw(st.sampled_from([TEXT, WEIGHED])))
    assert again(recorded(cluster, conf)) == []


SHARED = """\
actions: "allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
      deviceshare.SchedulePolicy: binpack
"""


def test_what_pods_hold_of_cards_is_on_record() -> None:
    cluster = a_cluster(
        a_vgpu_node("n0", "a", "b"), a_vgpu_node("n1", "m type=A100-SXM4-40GB mode=mig")
    )
    conf = parse(SHARED)
    cluster.devices.sharing = Sharing.of(conf)
    for i, node in enumerate(["n0", "n0", "n1"]):
        uid = PodUid(f"p{i}")
        cluster.set_pod(a_card_pod(uid, vgpu(1, 4000), job="runs"))
        cluster.assume(uid, node, cluster.choose_cards(uid, node))
    cluster.set_pod_group(a_group("waits", least=2))
    for i in range(2):
        cluster.set_pod(a_card_pod(f"w{i}", vgpu(1, 16000), job="waits"))
    snapshot = cluster.snapshot()
    text = recorded(cluster, conf)

    assert snapshot_of(read(text).seen).devices == snapshot.devices
    assert again(text) == []
    [gang] = msgspec.json.decode(bytes(read(text).decisions))["allocations"]
    assert len(gang["placements"]) == 2


POLICED = """\
actions: "allocate"
tiers:
- plugins:
  - name: gang
  - name: extender
    arguments:
      extender.urlPrefix: http://policy
      extender.predicateVerb: predicate
"""


def a_policy(question: Question, /) -> Sequence[Json | None]:
    return [
        {"status": "" if body["node"]["name"] == "n1" else "no"}  # type: ignore[index]
        for body in question.bodies
    ]


def test_what_was_answered_then_is_answered_again() -> None:
    cluster = a_cluster(a_node("n0"), a_node("n1"), a_job("j"))
    text = recorded(cluster, parse(POLICED), a_policy)
    assert again(text) == []
    assert b'"node":"n1"' in bytes(read(text).decisions)


def test_what_was_not_asked_then_is_not_answered() -> None:
    text = recorded(a_cluster(a_node("n0"), a_job("j")), parse(TEXT))
    done = rerun(read(text), parse(POLICED))
    assert done.unknown == 2
    assert b"the policy server gave no answer" in done.decisions


def test_answers_come_in_the_order_of_then() -> None:
    memory = Memory([Exchange("u", {"a": 1}, {"n": 1}), Exchange("u", {"a": 1}, {"n": 2})])
    question = Question("u", [{"a": 1}], 1.0)
    assert [memory(question)[0] for _ in range(3)] == [{"n": 1}, {"n": 2}, {"n": 2}]


def test_passwords_of_a_source_of_figures_are_not_recorded() -> None:
    conf = parse(TEXT + "metrics: {type: elasticsearch, elasticsearch.password: secret}\n")
    text = recorded(a_cluster(a_node("n")), conf)
    assert b"secret" not in text
    assert parse(read(text).configuration) == replace(conf, metrics={})


NO_RECORDS = {
    "no JSON": b"{",
    "another object": b'{"format": "x"}',
    "another form": b'"format":"pumice.dev/session/v1"',
}


@pytest.mark.parametrize("text", NO_RECORDS.values(), ids=NO_RECORDS.keys())
def test_what_is_no_record(text: bytes) -> None:
    with pytest.raises(RecordError, match="record"):
        read(text)


def test_a_record_of_another_form_is_refused() -> None:
    text = recorded(a_cluster(a_node("n")), parse(TEXT))
    with pytest.raises(RecordError, match="session/v9"):
        read(text.replace(b"session/v1", b"session/v9"))


class Files:
    """A record in a file, and configurations beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record = folder / "s1.session.json.gz"
        self.record.write_bytes(gzip.compress(recorded(a_world(), parse(TEXT))))

    def conf(self, text: str) -> Path:
        path = self.folder / "other.conf"
        path.write_text(text)
        return path


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_the_command_line_finds_no_difference(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay.run(files.record, None) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("session s1: 6 groups and ")
    assert last == "the same decisions, byte for byte"


def test_the_command_line_shows_differences(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay.run(files.record, files.conf(TEXT.replace("enqueue, ", ""))) == 1
    out = capsys.readouterr().out
    assert '-actions: "enqueue, allocate' in out
    assert "groups let in:" not in out or "ns/" in out


@pytest.mark.parametrize("text", ["actions: [", "actions: fly"])
def test_the_command_line_refuses_a_bad_configuration(
    files: Files, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay.run(files.record, files.conf(text)) == 2
    assert capsys.readouterr().err.startswith("pumice replay: ")


def test_the_command_line_refuses_what_is_no_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x"
    assert replay.run(path, None) == 2
    path.write_bytes(b"\x1f\x8bnot gzip")
    assert replay.run(path, None) == 2
    assert capsys.readouterr().err.count("pumice replay: ") == 2


def test_a_record_is_plain_json() -> None:
    found = msgspec.json.decode(recorded(a_world(), parse(TEXT)))
    assert found["format"] == "pumice.dev/session/v1"
    assert {"session", "now", "configuration", "seen", "answers", "decisions"} < found.keys()
