"""Whatever happens to a Job: carrying the effects out settles it, and its counters are true."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.api.batch import Job, JobStatus, LifecyclePolicy
from pumice.core.api.core import Pod
from pumice.core.api.meta import ObjectMeta
from pumice.core.api.scheduling import PodGroup, PodGroupPhase
from pumice.core.jobs import events, policies
from pumice.core.jobs import types as t
from pumice.core.jobs.objects import fingerprint
from pumice.core.jobs.plugins.svc import hosts
from pumice.core.jobs.reconcile import SYNCHRONISE, reconcile
from tests.unit.jobs.builders import NOW, QUEUE, a_job, a_policy, a_task

PHASES = ("Pending", "Running", "Succeeded", "Failed")
ORDERS = (t.ABORT, t.RESUME, t.RESTART, t.COMPLETE, t.TERMINATE)


class World:
    """An API server, kubelets and an extender, in one object."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.pods: dict[str, Pod] = {}
        self.group: PodGroup | None = None
        self.objects: dict[t.ObjectKey, t.Owned] = {}
        self.serial = 0

    def observed(self) -> t.Observed:
        return t.Observed(
            job=self.job,
            pods=dict(self.pods),
            group=self.group,
            queue=QUEUE,
            objects=dict(self.objects),
        )

    def decide(self, decision: t.Decision) -> list[t.Effect]:
        """Reconcile and carry out, as the controller does."""
        effects = reconcile(self.observed(), decision, NOW)
        for effect in effects:
            self.carry_out(effect)
        return effects

    def carry_out(self, effect: t.Effect) -> None:
        match effect:
            case t.CreatePod(name, body):
                assert name not in self.pods, "its place was taken"
                self.serial += 1
                pod = msgspec.convert(body, Pod)
                pod.metadata.uid = f"pod-{self.serial}"
                self.pods[name] = pod
            case t.MarkOutOfSync(name, uid):
                assert self.pods[name].metadata.uid == uid
                self.pods[name] = marked(self.pods[name])
            case t.DeletePod(name, uid):
                assert self.pods[name].metadata.uid == uid
                self.pods[name] = deleted(self.pods[name])
            case t.CreatePodGroup(group):
                self.serial += 1
                self.group = msgspec.convert(msgspec.to_builtins(group), PodGroup)
                self.group.metadata.uid = f"group-{self.serial}"
            case t.DeletePodGroup(_, uid):
                assert self.group is not None
                assert self.group.metadata.uid == uid
                self.group = None
            case t.PatchPodGroup(_, _, spec):
                assert self.group is not None
                old = msgspec.to_builtins(self.group.spec)
                self.group.spec = msgspec.convert(merged(old, spec), type(self.group.spec))
            case t.CreateObject(kind, name, body):
                assert (kind, name) not in self.objects, "its place was taken"
                self.serial += 1
                data = fingerprint(body.get("data"))
                self.objects[kind, name] = t.Owned(f"object-{self.serial}", data)
            case t.ReplaceData(kind, name, uid, data):
                assert self.objects[kind, name].uid == uid
                assert fingerprint(data) != self.objects[kind, name].data, "it changes nothing"
                self.objects[kind, name] = t.Owned(uid, fingerprint(data))
            case t.DeleteObject(kind, name, uid):
                assert self.objects.pop((kind, name)).uid == uid
            case t.PatchStatus(_, _, status):
                assert status != self.job.status, "a write that changes nothing"
                self.job = msgspec.structs.replace(self.job, status=status)

    def happen(self, request: t.Request) -> None:
        """Let the policies answer what happened."""
        self.decide(policies.decide(request, self.job))

    def end_terminating(self) -> None:
        """Play the kubelets: pods that are going are gone."""
        gone = [n for n, p in self.pods.items() if p.metadata.deletion_timestamp]
        for pod in [self.pods.pop(name) for name in gone]:
            self.happen(events.pod_deleted(pod))

    def settle(self) -> None:
        """Let extender, kubelets and controller work until nothing is left to do."""
        for _ in range(60):
            self.end_terminating()
            if self.group is not None and self.group.status.phase in ("", "Pending"):
                self.group.status.phase = "Inqueue"
            effects = [e for e in self.decide(SYNCHRONISE) if not isinstance(e, t.RecordEvent)]
            if not effects and not any(p.metadata.deletion_timestamp for p in self.pods.values()):
                return
        raise AssertionError(f"does not settle: {effects}")


def merged(old: object, patch: object) -> object:
    if not isinstance(old, dict) or not isinstance(patch, dict):
        return patch
    result = {k: v for k, v in old.items() if k not in patch}
    return result | {k: merged(old.get(k), v) for k, v in patch.items() if v is not None}


def marked(pod: Pod) -> Pod:
    notes = {**(pod.metadata.annotations or {}), "volcano.sh/controller-out-of-sync": "true"}
    return msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, annotations=notes)
    )


def deleted(pod: Pod) -> Pod:
    meta = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    return msgspec.structs.replace(pod, metadata=meta)


def in_phase(pod: Pod, phase: str, reason: str = "") -> Pod:
    status = msgspec.structs.replace(pod.status, phase=phase, reason=reason)
    return msgspec.structs.replace(pod, status=status)


def happen(world: World, what: tuple[str, int, str]) -> None:
    """Do one thing to the world; a pod is named by its place among those there are."""
    kind, number, text = what
    names = sorted(world.pods)
    name = names[number % len(names)] if names else ""
    match kind:
        case "phase" if name:
            old = world.pods[name]
            new = world.pods[name] = in_phase(old, text)
            world.happen(events.pod_changed(old, new, world.job, world.pods.values()))
        case "refused" if name:
            world.pods[name] = in_phase(world.pods[name], "Failed", "OutOfcpu")
            world.happen(events.SYNCED)
        case "mark" if name:
            world.pods[name] = marked(world.pods[name])
            world.happen(events.SYNCED)
        case "delete" if name:
            world.happen(events.pod_deleted(world.pods.pop(name)))
        case "scale":
            task = a_task("w", number % 5)
            spec = msgspec.structs.replace(
                world.job.spec,
                tasks=[task, a_task("m", 1)],
                min_available=min(world.job.spec.min_available, task.replicas + 1),
            )
            world.job = msgspec.structs.replace(world.job, spec=spec)
            world.happen(events.SYNCED)
        case "order":
            world.happen(t.Request(action=ORDERS[number % len(ORDERS)]))
        case "group" if world.group is not None:
            phases: tuple[PodGroupPhase, ...] = ("Pending", "Inqueue", "Running", "Unknown")
            old_group = msgspec.structs.replace(
                world.group, status=msgspec.structs.replace(world.group.status)
            )
            world.group.status.phase = phases[number % 4]
            if request := events.group_changed(old_group, world.group):
                world.happen(request)
        case "object" if world.objects:
            del world.objects[sorted(world.objects)[number % len(world.objects)]]
            world.happen(events.SYNCED)
        case "kubelets":
            world.end_terminating()


KINDS = ("phase", "refused", "mark", "delete", "scale", "order", "group", "object", "kubelets")
HAPPENINGS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 9), st.sampled_from(PHASES)), max_size=12
)
POLICIES = st.sampled_from(
    [
        None,
        [a_policy("RestartJob", "PodEvicted", "PodFailed")],
        [a_policy("RestartPod", "PodFailed"), a_policy("AbortJob", "Unknown")],
        [a_policy("CompleteJob", "TaskCompleted"), a_policy("RestartTask", "PodEvicted")],
        [a_policy("AbortJob", "*")],
    ]
)


def truth(pods: dict[str, Pod]) -> Counter[str]:
    """Count pods by phase, without the code under test."""
    return Counter(
        "terminating" if p.metadata.deletion_timestamp else (p.status.phase or "Pending").lower()
        for p in pods.values()
    )


def told(status: JobStatus) -> Counter[str]:
    return +Counter(
        pending=status.pending,
        running=status.running,
        succeeded=status.succeeded,
        failed=status.failed,
        terminating=status.terminating,
    )


@given(policies_=POLICIES, minimum=st.integers(0, 3), happenings=HAPPENINGS)
def test_a_job_settles_and_its_counters_are_its_pods(
    policies_: list[LifecyclePolicy] | None,
    minimum: int,
    happenings: list[tuple[str, int, str]],
) -> None:
    world = World(a_job(a_task("w", 2), a_task("m", 1), phase="", policies=policies_,
                        min_available=minimum, plugins={"svc": []}))  # fmt: skip
    world.settle()
    assert sorted(world.pods) == ["j-m-0", "j-w-0", "j-w-1"]

    for what in happenings:
        happen(world, what)
    world.settle()

    assert told(world.job.status) == truth(world.pods)
    wanted = {f"j-{x.name}-{i}" for x in world.job.spec.tasks or () for i in range(x.replicas)}
    if world.job.status.state.phase in ("Pending", "Running"):
        assert set(world.pods) == wanted
        assert world.group is not None
        assert {kind for kind, _ in world.objects} == {"ConfigMap", "NetworkPolicy", "Service"}
        assert world.objects["ConfigMap", "j-svc"].data == fingerprint(hosts(world.job))
        assert world.job.status.controlled_resources == {"plugin-svc": "svc"}
    else:
        assert world.job.status.state.phase in ("Aborted", "Completed", "Terminated", "Failed")
        alive = [n for n, p in world.pods.items() if p.status.phase in ("", "Pending", "Running")]
        assert (alive, world.group, world.objects) == ([], None, {})
        assert world.job.status.controlled_resources is None


@given(happenings=HAPPENINGS)
def test_pods_out_of_sync_spend_nothing(happenings: list[tuple[str, int, str]]) -> None:
    world = World(a_job(a_task("w", 2), phase="", policies=[a_policy("RestartJob", "*")]))
    world.settle()
    quiet = [(kind, n, text) for kind, n, text in happenings if kind in ("mark", "refused")]

    for what in quiet:
        happen(world, what)
    world.settle()

    status = world.job.status
    assert (status.version, status.retry_count, status.state.phase) == (0, 0, "Pending")
    assert all(p.metadata.annotations for p in world.pods.values())


def test_a_decision_made_twice_does_the_same() -> None:
    world = World(a_job(a_task("w", 2), phase="Pending"))
    seen = world.observed()

    assert reconcile(seen, SYNCHRONISE, NOW) == reconcile(replace(seen), SYNCHRONISE, NOW)


def test_no_object_of_the_input_is_changed() -> None:
    world = World(a_job(a_task("w", 2), phase="", meta={"labels": {"a": "b"}}))
    world.settle()
    before = msgspec.json.encode([world.job, list(world.pods.values()), world.group])
    for order in (*ORDERS, t.SYNC):
        reconcile(world.observed(), t.Decision(order, t.Request()), NOW)

    assert msgspec.json.encode([world.job, list(world.pods.values()), world.group]) == before
    assert isinstance(world.job.metadata, ObjectMeta)
