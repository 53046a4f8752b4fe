"""The debug API: what it says of queues, gangs, pods, the ledger and the sessions."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from pydantic import TypeAdapter

from extender import nacks
from extender.api import internals
from extender.api.desk import MAX_WAITING
from extender.main import arguments
from extender.service import Service
from pumice.core.explain.picture import Picture
from pumice.kube.resources import NODES, POD_GROUPS, PODS, QUEUES
from tests.adapters.extender.bed import Bed, Json
from tests.adapters.extender.pages import PAGES, Pages
from tests.adapters.extender.world import merged
from tests.fakeapi import eventually

SHORT = (
    "The gang needs 3 pods at the same time, but only 2 of them find a node (3 nodes: not enough"
    " cpu for a pod that asks for 4)."
)


def a_bed(nodes: int = 2, cpu: int = 4) -> Bed:
    bed = Bed()
    bed.nodes(nodes, cpu)
    return bed


def one_short() -> Bed:
    """Return a bed with room for two of three pods; a pod of others takes what they lack."""
    bed = a_bed(3)
    bed.pod("filler", scheduler="other", gates=None, node="n2", owner=None, group="")
    return bed


def of_a_job(bed: Bed, group: str, job: str) -> None:
    """Make a group one that the Job controller has made."""
    stored = bed.api.get(POD_GROUPS, "ns", group)
    queue = bed.api.get(QUEUES, "", "default")
    assert stored is not None
    assert queue is not None
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": job,
        "uid": queue["metadata"]["uid"],
        "controller": True,
    }
    bed.api.put(POD_GROUPS, merged(stored, {"metadata": {"ownerReferences": [owner]}}))


async def test_a_gang_that_is_one_node_short_is_explained_in_numbers() -> None:
    bed = one_short()
    bed.gang("train-1", 3, cpu="4")
    of_a_job(bed, "train-1", "train")
    async with bed.extender() as extender:
        pages = Pages(extender)
        found = await pages.until_explained("job", "train", "waiting")
        await bed.until(lambda: conditions(bed, "train-1"))

    assert found["sentence"] == SHORT
    assert (found["pod_group"], found["queue"], found["phase"]) == ("train-1", "default", "Inqueue")
    assert found["members"]["ledger"] == {"Held": 3}
    assert [(c["scope"], c["resource"], c["wanted"], c["had"]) for c in found["compared"]] == [
        ("gang", "members", "3", "2"),
        ("cluster", "cpu", "12", "11"),
        ("node", "cpu", "4", "3"),
    ]
    assert [(r["nodes"], r["reason"]) for r in found["refused"]] == [(3, "Insufficient cpu")]
    assert found["holders"] == [
        {"kind": "outside", "holds": {"cpu": "1"}, "namespace": "", "name": "", "queue": ""}
        | {"jobs": 0}
    ]
    assert conditions(bed, "train-1") == [found["condition"]]
    assert found["condition"].endswith(f"3 Insufficient cpu. {found['sentence']}")


def conditions(bed: Bed, group: str) -> list[str]:
    """Return what the conditions of a group say."""
    stored = bed.api.get(POD_GROUPS, "ns", group) or {}
    return [c["message"] for c in stored.get("status", {}).get("conditions", ())]


async def test_a_condition_of_before_is_not_explained_again() -> None:
    """The gang runs and more of it waits: that is no news for the condition of another time."""
    bed = a_bed(1, cpu=2)
    bed.gang("g", 4, minimum=2)
    group = bed.api.get(POD_GROUPS, "ns", "g")
    assert group is not None
    old = {"type": "Unschedulable", "status": "True", "transitionID": "s1", "message": "old"}
    bed.api.put(POD_GROUPS, {**group, "status": {"phase": "Inqueue", "conditions": [old]}})
    async with bed.extender() as extender, bed.scheduler():
        await Pages(extender).until_explained("podgroup", "g", "running")
        await bed.until(lambda: len(conditions(bed, "g")) == 2)
    assert conditions(bed, "g")[0] == "old"


async def test_a_job_is_found_by_the_owner_of_its_group() -> None:
    bed = a_bed()
    bed.gang("train-x-1", 1)
    bed.gang("train-1", 1)
    of_a_job(bed, "train-x-1", "train-x")
    of_a_job(bed, "train-1", "train")
    async with bed.extender() as extender:
        pages = Pages(extender)
        found = await pages.until_explained("job", "train", "starting")
        assert found["pod_group"] == "train-1"
        assert await pages.refused("/debug/explain/job/ns/tra") == (
            404,
            "there is no PodGroup of a Job ns/tra: there is no such Job, or the controllers have"
            " still to make its PodGroup",
        )


async def test_what_is_not_there_is_not_explained() -> None:
    async with a_bed().extender() as extender:
        pages = Pages(extender)
        await pages_are_there(pages)
        for path, what in {
            "explain/pod/ns/x": "Pod ns/x",
            "explain/podgroup/ns/x": "PodGroup ns/x",
            "podgroups/ns/x": "PodGroup ns/x",
            "queues/x": "Queue x",
        }.items():
            assert await pages.refused(f"/debug/{path}") == (404, f"there is no {what}")
        assert (await pages.refused("/debug/explain/cake/ns/x"))[0] == 422


async def pages_are_there(pages: Pages) -> None:
    """Wait until a session has run."""

    async def are_there() -> bool:
        return (await pages.answer("/debug/queues")).status_code == 200

    await eventually(are_there)


async def test_a_pod_that_runs_is_explained_by_the_session_and_by_the_nodes() -> None:
    bed = a_bed(2, cpu=4)
    bed.gang("g", 2, cpu="3")
    async with bed.extender() as extender, bed.scheduler():
        await bed.until(lambda: len(bed.bound()) == 2)
        pages = Pages(extender)
        await pages.until_explained("podgroup", "g", "running")
        found = await pages.explain("pod", "g-0")
        here, there = (bed.bound()[name] for name in ("g-0", "g-1"))
        other = await pages.explain("pod", "g-0", node=there)

    assert found["sentence"] == (
        f"The pod has node {here}: Pumice chose the node and pinned the pod to it; 1 of the 2 nodes"
        f" would take it as things stand, and none scores higher than {here}."
    )
    where = found["placement"]
    assert (where["node"], where["together"]) == (here, 2)
    assert where["decision"]["session"] == extender.engine.past[0].plan.session
    assert found["choice"]["verdict"]["has"] == {"cpu": "4"}
    assert other["sentence"].endswith(f"but not {there}: not enough cpu for a pod that asks for 3.")


async def test_a_pod_whose_node_is_gone_is_explained_all_the_same() -> None:
    bed = a_bed(1)
    bed.gang("g", 1)
    async with bed.extender() as extender, bed.scheduler():
        pages = Pages(extender)
        await pages.until_explained("podgroup", "g", "running")
        node = bed.api.get(NODES, "", "n0")
        assert node is not None
        bed.api.objects.delete(NODES, node, {})
        await bed.until(lambda: not len(seen(extender).snapshot.nodes))
        found = await pages.explain("pod", "g-0")
    assert found["sentence"] == (
        "The pod has node n0: Pumice chose the node and pinned the pod to it; 0 of the 0 nodes"
        " would take it as things stand."
    )


def seen(extender: Service) -> Picture:
    assert extender.engine.latest is not None
    return extender.engine.latest


async def test_a_node_that_is_not_there_is_no_answer() -> None:
    bed = a_bed()
    bed.gang("g", 1)
    async with bed.extender() as extender:
        pages = Pages(extender)
        await pages.until_explained("pod", "g-0", "starting")
        refusal = await pages.refused("/debug/explain/pod/ns/g-0", node="n9")
    assert refusal == (404, "there is no node n9")


async def test_the_members_of_a_gang_at_the_barrier() -> None:
    bed = a_bed()
    bed.gang("g", 4)
    async with bed.extender() as extender, bed.scheduler() as scheduler:
        scheduler.blind_to = lambda name: name == "g-3"
        await bed.until(lambda: len(extender.barrier.parked) == 3)
        pages = Pages(extender)
        gang = await pages.get("/debug/podgroups/ns/g")
        short = await pages.get("/debug/podgroups/ns/g", limit=1)
        found = await pages.explain("podgroup", "g")

    assert gang["states"] == {"Released": 1, "Arrived": 3}
    assert [(m["name"], m["state"]) for m in gang["members"]] == [
        ("g-3", "Released"),
        ("g-0", "Arrived"),
        ("g-1", "Arrived"),
        ("g-2", "Arrived"),
    ]
    barrier = gang["barrier"]
    assert (barrier["needed"], barrier["here"], barrier["parked"]) == (4, 3, 3)
    assert ([m["name"] for m in short["members"]], short["more"]) == (["g-3"], 3)
    assert found["sentence"] == (
        "The pods were given nodes: kube-scheduler has confirmed 3 of the 4 that the gang needs,"
        " and has still to look at 1."
    )


async def test_the_last_refusal_of_a_member(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nacks, "REFUSED_S", 0.0)
    bed = a_bed()
    bed.gang("g", 2)
    taint = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    async with bed.extender() as extender:
        await bed.until(lambda: len(bed.released()) == 2)
        (node,) = (e.node for e in extender.model.ledger if e.name == "g-1")
        bed.change("g-1", {"status": {"conditions": [{**taint, "message": "a taint"}]}}, "status")
        await bed.until(lambda: extender.nacks.last)
        pages = Pages(extender)
        gang = await pages.get("/debug/podgroups/ns/g")
        found = await pages.explain("podgroup", "g")

    told = {m["name"]: m["nack"] for m in gang["members"]}
    assert told["g-0"] is None
    assert found["nack"] == told["g-1"]
    assert {k: v for k, v in told["g-1"].items() if k != "at"} == {
        "pod": "g-1",
        "node": node,
        "reason": "Unschedulable",
        "message": "a taint",
    }


# Lists.


async def test_queues_and_groups_in_pages() -> None:
    bed = a_bed()
    bed.api.add(QUEUES, {"metadata": {"name": "other"}})
    for name in "abc":
        bed.gang(name, 1)
    async with bed.extender() as extender:
        pages = Pages(extender)
        await pages.until_explained("podgroup", "c", "starting")
        queues = await pages.get("/debug/queues", limit=1)
        rest = await pages.get("/debug/queues", after=queues["next_page"])
        groups = await pages.get("/debug/podgroups", namespace="ns", queue="default", limit=2)
        last = await pages.get("/debug/podgroups", after=groups["next_page"])
        none = await pages.get("/debug/podgroups", namespace="n")
        one = await pages.get("/debug/queues/other")

    assert [q["name"] for q in (*queues["items"], *rest["items"])] == ["default", "other"]
    assert [g["name"] for g in (*groups["items"], *last["items"])] == ["a", "b", "c"]
    assert (rest["next_page"], last["next_page"], none["items"]) == ("", "", [])
    assert (one["name"], one["state"], one["requested"]) == ("other", "Open", {})


# The ledger, the sessions, the check.


@pytest.mark.parametrize("piece", [1, 2, 3, 500])
async def test_the_ledger_whole_or_of_a_namespace(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(internals, "PIECE", piece)
    bed = a_bed()
    bed.gang("g", 3)
    async with bed.extender() as extender:
        await bed.until(lambda: len(bed.released()) == 3)
        pages = Pages(extender)
        whole = await pages.get("/debug/ledger")
        mine = await pages.get("/debug/ledger", namespace="ns")
        other = await pages.get("/debug/ledger", namespace="other")

    for ledger in (whole, mine):
        assert {(e["name"], e["state"], e["job"]) for e in ledger["entries"]} == {
            (f"g-{i}", "Released", "ns/g") for i in range(3)
        }
    assert (other["entries"], other["calls"], other["parked"]) == ([], 0, 0)


async def test_the_sessions_whole_or_of_a_namespace() -> None:
    bed = a_bed()
    bed.gang("g", 2)
    async with bed.extender() as extender:
        await bed.until(lambda: len(bed.released()) == 2)
        pages = Pages(extender)
        (whole,) = await pages.get("/debug/sessions")
        (mine,) = await pages.get("/debug/sessions", namespace="ns")
        assert await pages.get("/debug/sessions", namespace="n") == []

    assert [a["job"] for a in whole["plan"]["allocations"]] == ["ns/g"]
    assert mine["plan"]["allocations"] == whole["plan"]["allocations"]
    others = {
        "groups",
        "queues",
        "deserved",
        "warnings",
        "evictions",
        "acted",
        "failures",
        "reservation",
        "steady",
    }
    assert set(whole["plan"]) - set(mine["plan"]) == others
    assert (whole["placed"], mine["placed"], mine["dropped"]) == (2, 2, 0)


async def test_the_check_finds_nothing_and_names_what_cannot_be_used() -> None:
    bed = a_bed()
    bad = bed.pod("bad", cpu="1")
    bad["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "plenty"
    bed.api.put(PODS, bad)
    async with bed.extender() as extender:
        pages = Pages(extender)
        await pages_are_there(pages)
        check = await pages.get("/debug/check")
    assert check == {"faults": [], "objects": {"pod ns/bad": "not a quantity: 'plenty'"}}


# When there is no answer yet, or too much is asked.


async def test_before_the_first_session_there_is_nothing_to_tell() -> None:
    bed = a_bed()
    async with bed.api.client() as client:
        extender = Service.assemble(client, arguments([]), bed.clock)
        pages = Pages(extender)
        refusal = await pages.refused("/debug/explain/podgroup/ns/g")
        whole = await pages.get("/debug/ledger")
    assert refusal[0] == 503
    assert refusal[1].startswith("no session yet: nodes, queues")
    assert whole["entries"] == []


async def test_questions_wait_for_each_other_in_a_thread_of_their_own() -> None:
    bed = a_bed()
    async with bed.extender() as extender:
        pages = Pages(extender)
        await pages_are_there(pages)
        desk = extender.app.rest.state.desk  # type: ignore[attr-defined]
        thread = await desk.think(threading.current_thread)
        go_on = threading.Event()
        asked: list[asyncio.Task[Any]] = [
            asyncio.create_task(desk.think(go_on.wait), name=f"question {i}")
            for i in range(MAX_WAITING)
        ]
        await asyncio.sleep(0)
        refusal = await pages.answer("/debug/queues")
        alive = await pages.answer("/healthz")
        go_on.set()
        await asyncio.gather(*asked)
        assert (await pages.answer("/debug/queues")).status_code == 200

    assert thread is not threading.current_thread()
    assert (refusal.status_code, refusal.headers["retry-after"]) == (429, "1")
    assert refusal.json() == {"detail": "too many questions at once"}
    assert alive.text == "ok"


# OpenAPI.


@pytest.mark.parametrize("page", PAGES, ids=[page.path for page in PAGES])
def test_every_page_is_documented_with_an_example_of_each_answer(page: Any) -> None:
    example = page.responses[200]["content"]["application/json"]["example"]
    assert page.summary
    assert TypeAdapter(page.response_model).validate_python(example) is not None
    for code, answer in page.responses.items():
        if code != 200:
            assert answer["description"]
            assert answer["content"]["application/json"]["example"]["detail"]


async def test_the_description_of_a_field_is_in_openapi() -> None:
    async with a_bed().extender() as extender:
        openapi: Json = (await Pages(extender).answer("/openapi.json")).json()
    shape = openapi["components"]["schemas"]["Explanation"]["properties"]["sentence"]
    assert shape["description"].startswith("The answer in short.")
    page = openapi["paths"]["/debug/explain/{kind}/{namespace}/{name}"]["get"]
    assert sorted(page["responses"]) == ["200", "401", "403", "404", "422", "429", "503"]
