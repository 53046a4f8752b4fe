"""
The cache: API objects in, tables out.

Every event changes the tables at once, so they are always sums over what is known. A pod whose
node is decided but not yet seen on it is *assumed*: it holds its room there whatever the watch
says of the unbound pod, until the pod is seen on a node, is finished or gone, or is forgotten.

`snapshot` is cheap: it copies the arrays and shares jobs and residents. Whatever is shared is not
changed any more; the next change to it works on a copy (copy on write).

An object that makes no sense never stops the others: it is left out and named in `faults`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from pumice.core import names
from pumice.core.api.core import Node, Pod, PriorityClass
from pumice.core.api.scheduling import PodGroup, Queue
from pumice.core.api.topology import HyperNode
from pumice.core.consistency import differing_cards, differing_jobs, differing_nodes
from pumice.core.decisions import Decisions
from pumice.core.devices.asks import Ask
from pumice.core.devices.cards import Offer
from pumice.core.devices.geometries import geometries_in
from pumice.core.devices.mig import Known
from pumice.core.devices.notes import Choice
from pumice.core.ids import JobKey, PodUid
from pumice.core.inventory import Inventory
from pumice.core.members import Members
from pumice.core.model.hypernodes import HyperTree
from pumice.core.model.inputs import Inputs
from pumice.core.model.jobs import JobInfo, Terms
from pumice.core.model.nodes import NodeInfo, NodeTable, allocatable
from pumice.core.model.population import Headcount
from pumice.core.model.queues import QueueInfo
from pumice.core.model.signatures import selector_keys
from pumice.core.model.snapshots import Snapshot
from pumice.core.model.tasks import (
    COMPLETED_STATUSES,
    Status,
    Task,
    TaskClasses,
    TaskSource,
)
from pumice.core.model.topology import Topology
from pumice.core.residents import Residents
from pumice.core.resources import Floats, ResourceSpace
from pumice.core.terms import Priorities, terms_of

VOLCANO: frozenset[str] = frozenset({names.DEFAULT_SCHEDULER})


class Cluster:
    """All that is known of the cluster. One thread changes it."""

    def __init__(
        self,
        scheduler_names: frozenset[str] = VOLCANO,
        default_queue: str = names.DEFAULT_QUEUE,
        resources: Iterable[str] = (),
        label_keys: Iterable[str] = (),
    ) -> None:
        self.space = ResourceSpace(resources)
        self.default_queue = default_queue
        #: object, as `pod namespace/name`, -> what is wrong with it
        self.faults: dict[str, str] = {}
        self.queues: dict[str, QueueInfo] = {}
        #: changed from outside, by whoever runs plugins that read them
        self.inputs = Inputs()
        self._pods: dict[PodUid, Pod] = {}
        self._tasks: dict[PodUid, Task] = {}
        self._members = Members()
        self._residents = Residents(self.space.size)
        self._decisions = Decisions()
        #: the pods that mount claims, and those of them that have no node
        self._mounting: dict[PodUid, Task] = {}
        self._claimants: set[PodUid] = set()
        self.devices = Inventory()
        self._priorities = Priorities()
        self._topology = Topology()
        self._label_keys = frozenset(label_keys)
        self._source = TaskSource(self.space, TaskClasses(), scheduler_names)

    # What is known.

    @property
    def jobs(self) -> Mapping[JobKey, JobInfo]:
        """Return the jobs by the key of their group."""
        return self._members.jobs

    @property
    def nodes(self) -> NodeTable:
        """Return the nodes and what is on them."""
        return self._residents.nodes

    @property
    def pods(self) -> Mapping[PodUid, Pod]:
        """Return the pods as they were last seen."""
        return self._pods

    @property
    def assumed(self) -> Mapping[PodUid, str]:
        """Return the nodes of the pods whose room is merely held."""
        return self._decisions.assumed

    @property
    def hypernodes(self) -> Mapping[str, HyperNode]:
        """Return the HyperNodes by name."""
        return self._topology.hypernodes

    @property
    def tree(self) -> HyperTree:
        """Return the HyperNodes over the nodes as they are now; shared, and never changed."""
        return self._topology.tree(self.nodes.columns)

    @property
    def task_classes(self) -> int:
        """How many kinds of tasks are in use."""
        return len(self._source.classes)

    @property
    def claimants(self) -> Collection[PodUid]:
        """Return the waiting pods that mount claims."""
        return self._claimants

    def task(self, uid: PodUid) -> Task | None:
        """Return the task of a pod, with its assumed node if it has one."""
        return self._tasks.get(uid)

    # Pods.

    def set_pod(self, pod: Pod) -> None:
        """Take over a pod as it is now."""
        uid = PodUid(pod.metadata.uid)
        self._pods[uid] = pod
        self._guard(f"pod {pod.metadata.key}", lambda: self._set_pod(uid, pod), uid)

    def recall_pod(
        self, pod: Pod, status: Status, node: str, nominated: str, cards: Choice | None = None
    ) -> None:
        """Take over a pod as it was counted, whatever it shows itself."""
        self.set_pod(pod)
        task = self._tasks[PodUid(pod.metadata.uid)]
        if cards is not None:
            self.devices.note(task.uid, cards)
        if cards or (task.status, task.node, task.nominated) != (status, node, nominated):
            self._replace(task.uid, replace(task.at(status, node), nominated=nominated))

    def remove_pod(self, uid: PodUid) -> None:
        """Forget a pod that is gone."""
        pod = self._pods.pop(uid, None)
        if pod is not None:
            self.faults.pop(f"pod {pod.metadata.key}", None)
        self._decisions.drop(uid)
        self.devices.note(uid, None)
        self._replace(uid, None)

    def assume(self, uid: PodUid, node: str, choice: Choice | None = None) -> None:
        """Hold room for a waiting pod on a node, and its choice of cards there, from now on."""
        task = self._tasks.get(uid)
        if task is None or not task.status & (Status.PENDING | Status.BINDING):
            return
        if self.assumed.get(uid) == node and self.devices.chosen(uid) == choice:
            return
        self._decisions.assumed[uid] = node
        self.devices.note(uid, choice)
        self._replace(uid, task.at(Status.BINDING, node))

    def forget(self, uid: PodUid) -> None:
        """Let a pod wait again, and give back the room that was held for it."""
        self.devices.note(uid, None)
        if self._decisions.assumed.pop(uid, None) is None:
            return
        task = self._tasks[uid]
        status = Status.PENDING if task.status is Status.BINDING else task.status
        self._replace(uid, task.at(status, ""))

    def dismiss(self, uid: PodUid) -> None:
        """Count a pod as on its way off its node, from now on, whether or not it shows that."""
        self._decisions.dismissed.add(uid)
        self._look_again(uid)

    def retain(self, uid: PodUid) -> None:
        """Let a pod that was dismissed be what it shows."""
        self._decisions.dismissed.discard(uid)
        self._look_again(uid)

    def promise(self, uid: PodUid, node: str) -> None:
        """Count a waiting pod as nominated to a node, until it shows that; "" takes it back."""
        self._decisions.promised[uid] = node
        self._look_again(uid)

    def _look_again(self, uid: PodUid) -> None:
        pod = self._pods.get(uid)
        if pod is not None:
            self.set_pod(pod)

    def _set_pod(self, uid: PodUid, pod: Pod) -> None:
        keys = selector_keys(pod)
        task = self._source.task(pod, self._label_keys | keys)
        if task.node or task.status & COMPLETED_STATUSES:
            self.devices.note(uid, None)
        self._replace(uid, self._decisions.applied(task))
        if not keys <= self._label_keys:
            self._learn_label_keys(keys)

    def _learn_label_keys(self, keys: frozenset[str]) -> None:
        """Class the pods anew that have a label which a selector mentions for the first time."""
        fresh = keys - self._label_keys
        self._label_keys |= keys
        for uid, task in list(self._tasks.items()):
            if not fresh.isdisjoint(task.labels):
                self.set_pod(self._pods[uid])

    def _replace(self, uid: PodUid, task: Task | None) -> None:
        """Let a task take the place of what is known of its pod, in every table."""
        old = self._tasks.get(uid)
        if old is not None and (task is None or task.job != old.job):
            del self._tasks[uid]
            self._residents.remove(old)
            self._members.leave(old)
            old = None
        if task is None:
            self.devices.release(uid)
            self._mounting.pop(uid, None)
            self._claimants.discard(uid)
            return
        task = self._tasks[uid] = self._members.join(task)
        if task.claims:
            self._mount(task)
        self.devices.settle(task)
        if old is not None and old.charges_like(task):
            self._residents.renew(task)
            return
        if old is not None:
            self._residents.remove(old)
        self._residents.add(task)

    def _mount(self, task: Task) -> None:
        """Take note of a pod that mounts claims; one that is finished mounts none any more."""
        if task.status & COMPLETED_STATUSES:
            self._mounting.pop(task.uid, None)
        else:
            self._mounting[task.uid] = task
        if task.status is Status.PENDING:
            self._claimants.add(task.uid)
        else:
            self._claimants.discard(task.uid)

    # Nodes, groups, queues, priority classes, HyperNodes.

    def set_node(self, node: Node) -> None:
        """Take over a node as it is now."""
        name = node.metadata.name
        self._guard(f"node {name}", lambda: self._set_node(node))

    def _set_node(self, node: Node) -> None:
        self.nodes.put(NodeInfo.of(node), allocatable(node, self.space))
        self._blame(f"cards of node {node.metadata.name}", self.devices.set_node(node))

    def set_device_config(self, key: str, data: Mapping[str, str] | None) -> None:
        """Take over how cards can be cut, as a ConfigMap has it; None where that is gone."""
        self._guard(f"configmap {key}", lambda: self._set_geometries(geometries_in(data)))

    def _set_geometries(self, known: Known) -> None:
        for name, faults in self.devices.recut(known, self.nodes.infos):
            self._blame(f"cards of node {name}", faults)

    def recall_node(
        self, info: NodeInfo, offers: Iterable[float], cards: tuple[Offer, ...] = ()
    ) -> None:
        """Take over a node as it stood in the tables."""
        self.nodes.put(info, np.array([*offers]))
        self.devices.recall_node(info.name, cards)

    def remove_node(self, name: str) -> None:
        """Forget a node. Pods on it stay known, and count again should it return."""
        self.faults.pop(f"node {name}", None)
        self.faults.pop(f"cards of node {name}", None)
        self.devices.remove_node(name)
        self.nodes.drop(name)

    def set_pod_group(self, group: PodGroup) -> None:
        """Take over a group as it is now."""
        self._guard(f"podgroup {group.metadata.key}", lambda: self._set_pod_group(group))

    def _set_pod_group(self, group: PodGroup) -> None:
        for task in self._members.describe(group, self._terms(group)):
            self._tasks[task.uid] = task
            self._residents.renew(task)

    def remove_pod_group(self, key: JobKey) -> None:
        """Forget a group. Its pods wait for one of that name."""
        self.faults.pop(f"podgroup {key}", None)
        self._members.remove(key)

    def set_queue(self, queue: Queue) -> None:
        """Take over a queue as it is now."""
        name = queue.metadata.name
        self._guard(f"queue {name}", lambda: self._set_queue(queue))

    def _set_queue(self, queue: Queue) -> None:
        self.queues[queue.metadata.name] = QueueInfo.of(queue, self.space)

    def remove_queue(self, name: str) -> None:
        """Forget a queue. Its jobs wait for one of that name."""
        self.faults.pop(f"queue {name}", None)
        self.queues.pop(name, None)

    def set_priority_class(self, priority_class: PriorityClass) -> None:
        """Take over a priority class; groups that name it, or none, get its value."""
        self._priorities.put(priority_class)
        self._reprioritise()

    def remove_priority_class(self, name: str) -> None:
        """Forget a priority class."""
        if self._priorities.drop(name):
            self._reprioritise()

    def set_hypernode(self, hypernode: HyperNode) -> None:
        """Take over a HyperNode as it is now."""
        self._topology.put(hypernode)

    def remove_hypernode(self, name: str) -> None:
        """Forget a HyperNode."""
        self._topology.drop(name)

    def _reprioritise(self) -> None:
        for key, job in list(self.jobs.items()):
            terms = self._terms(job.group)
            if (terms.priority, terms.remarks) != (job.priority, job.terms.remarks):
                self._members.set_terms(key, terms)

    def _terms(self, group: PodGroup) -> Terms:
        return terms_of(group, self.space, self._priorities, self.default_queue)

    # Between sessions.

    def headcount(self, counts: Callable[[Task], bool]) -> Headcount:
        """Return who is where; of the pods whose room is merely held, only those that count."""
        population = self._residents.population.clone()
        for uid in self.assumed:
            task = self._tasks.get(uid)
            if task is not None and task.occupies and not counts(task):
                population.add(task, -1)
        return population.share()

    def ask(self, uid: PodUid) -> Ask | None:
        """Return what a pod asks of the cards of its node, where cards are shared that way."""
        task = self._tasks.get(uid)
        return None if task is None else self.devices.ask(task)

    def choose_cards(self, uid: PodUid, node: str) -> Choice | None:
        """Return cards of a node for a pod that asks for some, None where they are not left."""
        task = self._tasks.get(uid)
        return None if task is None else self.devices.choose(task, node)

    def has_cards(self, uid: PodUid, node: str, choice: Choice) -> bool:
        """Return whether a pod may have the cards of a node that were chosen for it."""
        return self.devices.admits(self._tasks[uid], node, choice)

    def allocated(self, queue: str) -> Floats:
        """Return what the jobs of a queue hold now, what is merely held for them included."""
        return self._members.allocated(queue)

    # Snapshots.

    def snapshot(
        self,
        avoided: Mapping[JobKey, frozenset[str]] = MappingProxyType({}),
        spared: frozenset[PodUid] = frozenset(),
    ) -> Snapshot:
        """
        Return the state as it is now.

        `avoided` are nodes that a job's pods do not go to, `spared` pods that are not evicted.
        """
        self.nodes.grow(self.space.size)
        odd = {f"hypernode {name}": fault for name, fault in self.tree.faults.items()}
        return Snapshot(
            names=self.space.names,
            nodes=self._residents.share(),
            jobs=self._members.share(),
            queues=dict(self.queues),
            usage=self._members.usage(),
            active=self._members.active(),
            population=self._residents.population.share(),
            avoided=avoided,
            spared=spared,
            default_queue=self.default_queue,
            scheduler_names=self._source.schedulers,
            priority_classes=tuple(self._priorities),
            hypernodes=tuple(self.hypernodes.values()),
            label_keys=self._label_keys,
            inputs=self.inputs.copy(),
            faults={**self.faults, **odd},
            tree=self.tree,
            mounting=dict(self._mounting),
            devices=self.devices.share(),
        )

    def _blame(self, name: str, fault: str) -> None:
        """Write down what is wrong with an object, or that nothing is."""
        if fault:
            self.faults[name] = fault
        else:
            self.faults.pop(name, None)

    def _guard(self, name: str, change: Callable[[], None], uid: PodUid | None = None) -> None:
        """Carry out a change; where the object is malformed, leave it out and say so."""
        try:
            change()
        except (ValueError, ArithmeticError) as fault:
            self.faults[name] = str(fault)
            if uid is not None:
                self._replace(uid, None)
        else:
            self.faults.pop(name, None)

    def check(self) -> list[str]:
        """Return how the tables differ from sums made anew; empty when all is well."""
        return [
            *_differences(self.nodes, self.jobs, self._tasks.values()),
            *differing_cards(self.devices.nodes, self._tasks.values(), self.devices.holding),
        ]

    def checker(self) -> Callable[[], list[str]]:
        """Return `check` for the tables as they are now, to be called in whatever thread."""
        seen, tasks = self.snapshot(), list(self._tasks.values())
        holdings = {t.uid: self.devices.holding(t) for t in tasks if t.cls.signature.devices}
        return lambda: [
            *_differences(seen.nodes, seen.jobs, tasks),
            *differing_cards(seen.devices, tasks, lambda task: holdings.get(task.uid)),
        ]


def _differences(
    nodes: NodeTable, jobs: Mapping[JobKey, JobInfo], tasks: Collection[Task]
) -> list[str]:
    return [*differing_nodes(nodes, tasks), *differing_jobs(jobs, tasks)]
