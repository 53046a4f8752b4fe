"""
One kube-scheduler for all pods: nothing is given away twice, and nobody else depends on us.

What holds in both layouts is in the other modules; here is what this one alone promises.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
import pytest

from pumice.local.install import MARKER, apply, documents, is_marked
from pumice.local.paths import manifests
from pumice.local.scheduler import shared_config
from tests.acceptance.bed import Bed
from tests.acceptance.figures import extender_metric, ledger
from tests.acceptance.foreign import Churn
from tests.acceptance.length import Length
from tests.acceptance.objects import Object, a_job, a_pod
from tests.acceptance.parked import NAME, NODE_CPU, behind_proxy, park
from tests.fakeapi.clock import eventually

pytestmark = pytest.mark.cluster
LAYOUTS = ("shared",)

BATCH, FREE = "pumice.dev/batch-pod", "pumice.dev/free-pod"
NODES = 20
SIZE, CPU = 8, 2
STARTS_S = 60.0
PATIENCE_S = 20.0
STAYS_S = 3.0
SOON_S = 10.0
"""An extender that hangs holds up kube-scheduler for twice its timeout, once for each free pod."""
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


# No double booking.


async def test_gangs_and_ordinary_pods_never_get_the_same_room(bed: Bed, length: Length) -> None:
    bed.nodes(NODES, cpu=NODE_CPU)
    starts: list[float] = []
    wanted = length.foreign_per_s * length.foreign_scheduler_s
    async with (
        behind_proxy(bed) as proxy,
        bed.auditor() as auditor,
        Churn(bed, per_s=length.foreign_per_s, cpu="1", life_s=2) as churn,
    ):
        await bed.until(churn.bound, 10, "ordinary pods are placed")
        with park(bed, proxy, size=SIZE, cpu=CPU) as gang:
            await gang.is_parked()
            await gang.let_go()
        starts.append(await started(bed, NAME))
        kept = {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in bed.bound(NAME)}
        parked = [gang.before[member] for member in gang.members if member != gang.last]
        assert {entry.uid: entry.node for entry in parked}.items() <= kept.items()
        gang.no_policy_fired()
        await completed(bed, NAME)
        while churn.seconds < length.foreign_scheduler_s or churn.bound() < wanted:
            name = f"gang-{len(starts)}"
            bed.create(a_job(name, replicas=SIZE, min_available=SIZE, cpu=CPU))
            starts.append(await started(bed, name))
            await completed(bed, name)
        seconds, pods = churn.seconds, churn.created
        report = await auditor.finish()

    figures = report.statistics
    replaced = figures.pods_created - SIZE * len(starts)
    print(f"{len(starts)} gangs in {seconds:.0f} s, the slowest bound in {max(starts):.1f} s")
    print(f"{replaced} members replaced; {pods} ordinary pods created")
    assert pods >= 0.95 * length.foreign_per_s * seconds / length.slack
    assert figures.over_commitments == 0


async def started(bed: Bed, name: str) -> float:
    """Wait until all of a gang runs; return the seconds until it was bound."""
    seconds = await bed.until(lambda: len(bed.bound(name)) == SIZE, STARTS_S, f"{name} is bound")
    # Jobs and pods are watched apart: what the Job says of its pods may be ahead of them.
    await bed.until(lambda: len(bed.running(name)) == SIZE, 10, f"the pods of {name} run")
    await bed.until(lambda: bed.job_phase(name) == "Running", 10, f"{name} runs")
    return seconds


async def completed(bed: Bed, name: str) -> None:
    """Let a gang succeed."""
    await bed.aside(bed.end, *bed.running(name))
    await bed.until(lambda: bed.job_phase(name) == "Completed", PATIENCE_S, f"{name} is through")


# The marker.


async def test_pods_of_ours_are_marked_and_nobody_counts_the_marker(bed: Bed) -> None:
    bed.nodes(2)
    two = [a_container("first", limits={"cpu": "1"}), a_container("second")]
    names = ("free", "limited", "ordinary")
    async with bed.auditor() as auditor:
        bed.create(
            a_job("gang", replicas=2, min_available=2, cpu=1),
            a_pod("free"),
            a_pod("limited", containers=two),
            a_pod("ordinary", scheduler="default-scheduler"),
        )
        await bed.until(lambda: len(bed.running("gang")) == 2, PATIENCE_S, "the gang runs")
        await bed.until(lambda: all(runs(bed, name) for name in names), PATIENCE_S, "pods run")
        await auditor.finish()

    free, limited, ordinary = (marks(bed.pod(name) or {}) for name in names)
    assert (free, limited, ordinary) == ([{BATCH, FREE}], [{BATCH, FREE}, set()], [set()])
    assert [marks(pod) for pod in bed.pods_of("gang")] == [[{BATCH}]] * 2
    assert len(bed.pod_groups) == 3
    counted = msgspec.json.encode([list(bed.pod_groups.values()), list(bed.queues.values())])
    assert b"pumice.dev/" not in counted


def a_container(name: str, **resources: dict[str, str]) -> Object:
    return {"name": name, "image": "busybox", "resources": resources}


def marks(pod: Object) -> list[set[str]]:
    """Return the markers that each container asks for: one of each, and no more than that."""
    return [
        {
            name
            for name, amount in container["resources"].get("requests", {}).items()
            if name in (BATCH, FREE) and amount == container["resources"]["limits"][name] == "1"
        }
        for container in pod["spec"]["containers"]
    ]


async def test_pods_without_the_marker_run_as_well_and_are_counted(bed: Bed) -> None:
    bed.nodes(2, cpu=4)
    calls = ledger(bed).calls
    with without_marker(bed):
        await eventually(lambda: bed.aside(lambda: not is_marked(bed.api)))
        bed.create(a_job("gang", replicas=4, min_available=4, cpu=1))
        await bed.until(lambda: len(bed.running("gang")) == 4, PATIENCE_S, "the gang runs")
    assert [marks(pod) for pod in bed.pods_of("gang")] == [[set()]] * 4
    assert ledger(bed).calls == calls, "kube-scheduler binds them itself"
    await eventually(lambda: bed.aside(is_marked, bed.api))

    bed.create(a_job("too-much", replicas=5, min_available=5, cpu=1))
    await bed.until(lambda: waits(bed, "too-much"), PATIENCE_S, "there is no room for more")


def waits(bed: Bed, job: str) -> bool:
    """Tell whether the PodGroup of a Job says that it has to wait."""
    conditions = (bed.pod_group(job) or {}).get("status", {}).get("conditions", [])
    return any((c["type"], c["status"]) == ("Unschedulable", "True") for c in conditions)


@contextmanager
def without_marker(bed: Bed) -> Iterator[None]:
    """Take the binding of the marker's policy away for a while."""
    kind = "MutatingAdmissionPolicyBinding"
    (binding,) = [body for body in documents(manifests() / MARKER) if body["kind"] == kind]
    bed.delete(binding)
    try:
        yield
    finally:
        apply(bed.api, binding)


# The verbs.


async def test_a_free_pod_goes_where_the_engine_planned_it(bed: Bed) -> None:
    # More nodes than kube-scheduler looks at for a pod, where nothing else is said.
    bed.nodes(300, cpu=NODE_CPU)
    names = [f"free-{index}" for index in range(30)]
    replaced = extender_metric(bed, "pumice_pods_replaced")
    async with bed.auditor() as auditor:
        await bed.aside(bed.create_many, [a_pod(name) for name in names])
        await bed.until(lambda: all(runs(bed, name) for name in names), PATIENCE_S, "they run")
        await auditor.finish()

    # Of many sessions the extender keeps the last ones.
    last = planned(bed, names)
    assert last == {name: node_of(bed, name) for name in last}
    assert last
    assert extender_metric(bed, "pumice_pods_replaced") == replaced


def planned(bed: Bed, names: Sequence[str]) -> dict[str, str]:
    """Return where sessions put pods."""
    uids = {(bed.pod(name) or {})["metadata"]["uid"]: name for name in names}
    sessions = msgspec.json.decode(bed.cluster.extender.get("/debug/sessions")[1])
    placements = (p for s in sessions for a in s["plan"]["allocations"] for p in a["placements"])
    return {uids[p["uid"]]: p["node"] for p in placements if p["uid"] in uids}


async def test_a_pod_that_nobody_planned_is_not_given_what_is_promised_to_others(bed: Bed) -> None:
    bed.nodes(2, cpu=NODE_CPU)
    async with behind_proxy(bed) as proxy, bed.auditor() as auditor:
        with park(bed, proxy, size=2, cpu=3) as gang:
            await gang.is_parked()
            # Only the node of the member that kube-scheduler does not know of has room for it.
            ungated(bed, a_pod("taken", cpu=2))
            await bed.until(lambda: refused(bed, "taken"), PATIENCE_S, "kube-scheduler refuses it")
            await gang.let_go()
        await bed.until(lambda: len(bed.running(NAME)) == 2, PATIENCE_S, "the gang runs")
        await auditor.finish()
    assert node_of(bed, "taken") == ""


def refused(bed: Bed, name: str) -> bool:
    """Tell whether kube-scheduler found that the extender leaves no node to a pod."""
    conditions = (bed.pod(name) or {}).get("status", {}).get("conditions", [])
    return any("not among the nodes that may be used" in c.get("message", "") for c in conditions)


async def test_kube_scheduler_preempts_no_gang_below_its_minimum(bed: Bed) -> None:
    bed.nodes(1, cpu=NODE_CPU)
    with preempting(bed), priority_class(bed, "urgent"):
        bed.create(a_job("gang", replicas=4, min_available=4, cpu=1))
        await bed.until(lambda: len(bed.running("gang")) == 4, PATIENCE_S, "the gang runs")
        attempts = preemptions(bed)
        first = a_pod("first", cpu=1, priorityClassName="urgent")
        ungated(bed, first)
        await eventually(lambda: bed.aside(lambda: preemptions(bed) > attempts), PATIENCE_S)
        await bed.never(lambda: len(bed.bound("gang")) < 4, STAYS_S, "a member is gone")
        bed.delete(first, grace_s=0)

        bed.patch(a_job("gang"), {"spec": {"minAvailable": 3}})
        # kube-scheduler asks once: the extender must know of it by then.
        await eventually(lambda: bed.aside(lambda: least(bed, "gang") == 3), PATIENCE_S)
        ungated(bed, a_pod("second", cpu=1, priorityClassName="urgent"))
        await bed.until(lambda: len(bed.bound("gang")) == 3, PATIENCE_S, "one member makes room")
        await bed.until(lambda: runs(bed, "second"), 2 * PATIENCE_S, "the urgent pod runs")
        assert len(bed.bound("gang")) == 3


def least(bed: Bed, job: str) -> int:
    """Return how many pods of a gang the extender takes for the fewest."""
    group = (bed.pod_group(job) or {})["metadata"]["name"]
    answer = bed.cluster.extender.get(f"/debug/podgroups/{bed.namespace}/{group}")[1]
    number: int = msgspec.json.decode(answer)["minimum"]
    return number


@contextmanager
def preempting(bed: Bed) -> Iterator[None]:
    """Let our profile preempt, as kube-scheduler's profiles do where nothing else is said."""
    cluster = bed.cluster
    scheduler, extender = cluster.scheduler, cluster.extender
    assert scheduler is not None
    config = shared_config(
        bed.plane.kubeconfig(cluster.scheduler_user), extender.url, extender.client_tls
    )
    usual = msgspec.json.decode(msgspec.json.encode(config))
    for profile in config["profiles"]:
        profile.pop("plugins", None)
    try:
        bed.plane.processes.stop(scheduler.name)
        scheduler.start(config)
        yield
    finally:
        bed.plane.processes.stop(scheduler.name)
        scheduler.start(usual)


@contextmanager
def priority_class(bed: Bed, name: str) -> Iterator[None]:
    """Have a priority class above all others of the test."""
    body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
    bed.create({**body, "metadata": {"name": name}})
    try:
        yield
    finally:
        bed.api.delete(f"{PRIORITY_CLASSES}/{name}")


def preemptions(bed: Bed) -> float:
    """Return how often kube-scheduler has tried to preempt."""
    assert bed.cluster.scheduler is not None
    return bed.cluster.scheduler.metric("scheduler_preemption_attempts_total")


# Outages.


OUTAGES: dict[str, tuple[int, Callable[[Bed], None]]] = {
    "gone": (signal.SIGKILL, lambda bed: bed.restart("extender")),
    "hung": (signal.SIGSTOP, lambda bed: bed.kill("extender", signal.SIGCONT)),
}


@pytest.mark.parametrize(("number", "heal"), OUTAGES.values(), ids=OUTAGES.keys())
async def test_while_the_extender_is_away_ordinary_pods_go_on_and_ours_wait(
    bed: Bed, number: int, heal: Callable[[Bed], None]
) -> None:
    bed.nodes(4, cpu=NODE_CPU)
    names = [f"ordinary-{index}" for index in range(20)]
    async with bed.auditor() as auditor:
        bed.kill("extender", number)
        ungated(bed, a_pod("free"))
        bed.create(a_job("gang", replicas=4, min_available=4, cpu=2))
        bed.create(*(a_pod(name, scheduler="default-scheduler", cpu="100m") for name in names))
        await bed.until(lambda: all(runs(bed, name) for name in names), SOON_S, "they run")
        await bed.never(lambda: node_of(bed, "free"), STAYS_S, "a pod of ours was bound")

        await bed.aside(heal, bed)
        await bed.until(lambda: len(bed.running("gang")) == 4, PATIENCE_S, "the gang runs")
        await bed.until(lambda: runs(bed, "free"), 2 * PATIENCE_S, "so does the pod")
        await auditor.finish()


def ungated(bed: Bed, pod: Object) -> None:
    """Create a pod and take its gate off: kube-scheduler sees it before it is planned."""
    bed.create(pod)
    bed.patch(pod, {"spec": {"schedulingGates": None}})


def runs(bed: Bed, name: str) -> bool:
    """Tell whether a pod runs."""
    return bool(bed.pod(name)) and (bed.pod(name) or {})["status"].get("phase") == "Running"


def node_of(bed: Bed, name: str) -> str:
    """Return the node that a pod is bound to; empty while there is none."""
    node: str = (bed.pod(name) or {}).get("spec", {}).get("nodeName", "")
    return node
