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
from pumice.core.bounds import Standings, bounds_of, refusal
from pumice.core.consistency import differing_cards, differing_jobs, differing_nodes
from pumice.core.devices.asks import Ask
from pumice.core.devices.cards import Offer, offers_of, pool_of, registered
from pumice.core.devices.geometries import geometries_in
from pumice.core.devices.mig import KNOWN, Known
from pumice.core.devices.notes import Choice, choice_of
from pumice.core.devices.sharing import NO_SHARING, Sharing
from pumice.core.devices.table import Devices, Holding
from pumice.core.ids import JobKey, PodUid
from pumice.core.model.columns import Columns
from pumice.core.model.hypernodes import HyperTree, hyper_tree, selecting_labels
from pumice.core.model.inputs import Inputs
from pumice.core.model.jobs import JobInfo, Terms
from pumice.core.model.nodes import NodeInfo, NodeTable, allocatable
from pumice.core.model.population import Headcount, Population
from pumice.core.model.queues import QueueInfo
from pumice.core.model.signatures import selector_keys
from pumice.core.model.snapshots import Snapshot
from pumice.core.model.tasks import (
    COMPLETED_STATUSES,
    PREEMPTABLE_STATUSES,
    Status,
    Task,
    TaskClasses,
    TaskSource,
)
from pumice.core.quantity import QuantityError
from pumice.core.resources import EPSILON, Floats, ResourceSpace, minus, shortages
from pumice.core.usage import QueueUsage

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
        self.nodes = NodeTable(self.space.size)
        self.queues: dict[str, QueueInfo] = {}
        #: changed from outside, by whoever runs plugins that read them
        self.inputs = Inputs()
        self._jobs: dict[JobKey, JobInfo] = {}
        self._pods: dict[PodUid, Pod] = {}
        self._tasks: dict[PodUid, Task] = {}
        #: members of groups that do not exist (yet)
        self._orphans: dict[JobKey, dict[PodUid, Task]] = {}
        self._assumed: dict[PodUid, str] = {}
        #: the pods that mount claims, and those of them that have no node
        self._mounting: dict[PodUid, Task] = {}
        self._claimants: set[PodUid] = set()
        #: the cards of nodes, and what was chosen of them for pods that are not seen bound yet
        self.devices = Devices()
        self._geometries: Known = KNOWN
        self._chosen: dict[PodUid, Choice] = {}
        #: how cards are shared; changed from outside, as the configuration says
        self.sharing: Sharing = NO_SHARING
        #: pods that were told to leave and do not show it yet, and nominations not shown yet
        self._dismissed: set[PodUid] = set()
        self._promised: dict[PodUid, str] = {}
        self._classes: dict[str, PriorityClass] = {}
        self.hypernodes: dict[str, HyperNode] = {}
        #: the tree of the HyperNodes, the columns that it is over, the labels that it depends on
        self._tree: tuple[HyperTree, Columns, frozenset[str]] | None = None
        self._label_keys = frozenset(label_keys)
        self._population = Population()
        self._usage = QueueUsage()
        self._source = TaskSource(self.space, TaskClasses(), scheduler_names)
        # What is not shared with a snapshot, and may be changed in place.
        self._own_jobs: set[JobKey] = set()
        self._own_nodes: set[str] = set()

    # What is known.

    @property
    def jobs(self) -> Mapping[JobKey, JobInfo]:
        """Return the jobs by the key of their group."""
        return self._jobs

    @property
    def pods(self) -> Mapping[PodUid, Pod]:
        """Return the pods as they were last seen."""
        return self._pods

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
            self._chosen[task.uid] = cards
        if cards or (task.status, task.node, task.nominated) != (status, node, nominated):
            self._replace(task.uid, replace(task.at(status, node), nominated=nominated))

    def remove_pod(self, uid: PodUid) -> None:
        """Forget a pod that is gone."""
        pod = self._pods.pop(uid, None)
        if pod is not None:
            self.faults.pop(f"pod {pod.metadata.key}", None)
        self._assumed.pop(uid, None)
        self._chosen.pop(uid, None)
        self._dismissed.discard(uid)
        self._promised.pop(uid, None)
        self._replace(uid, None)

    def assume(self, uid: PodUid, node: str, choice: Choice | None = None) -> None:
        """Hold room for a waiting pod on a node, and its choice of cards there, from now on."""
        task = self._tasks.get(uid)
        if task is None or not task.status & (Status.PENDING | Status.BINDING):
            return
        if self._assumed.get(uid) == node and self._chosen.get(uid) == choice:
            return
        self._assumed[uid] = node
        if choice is None:
            self._chosen.pop(uid, None)
        else:
            self._chosen[uid] = choice
        self._replace(uid, task.at(Status.BINDING, node))

    def forget(self, uid: PodUid) -> None:
        """Let a pod wait again, and give back the room that was held for it."""
        self._chosen.pop(uid, None)
        if self._assumed.pop(uid, None) is None:
            return
        task = self._tasks[uid]
        status = Status.PENDING if task.status is Status.BINDING else task.status
        self._replace(uid, task.at(status, ""))

    def dismiss(self, uid: PodUid) -> None:
        """Count a pod as on its way off its node, from now on, whether or not it shows that."""
        self._dismissed.add(uid)
        self._look_again(uid)

    def retain(self, uid: PodUid) -> None:
        """Let a pod that was dismissed be what it shows."""
        self._dismissed.discard(uid)
        self._look_again(uid)

    def promise(self, uid: PodUid, node: str) -> None:
        """Count a waiting pod as nominated to a node, until it shows that; "" takes it back."""
        self._promised[uid] = node
        self._look_again(uid)

    def _look_again(self, uid: PodUid) -> None:
        pod = self._pods.get(uid)
        if pod is not None:
            self.set_pod(pod)

    def _as_decided(self, uid: PodUid, task: Task) -> Task:
        """Return the task with what was decided of the pod and is not seen on it yet."""
        if uid in self._dismissed and task.status & PREEMPTABLE_STATUSES:
            return task.at(Status.RELEASING, task.node)
        node = self._promised.get(uid, task.nominated)
        if task.nominated == node or task.status is not Status.PENDING:
            self._promised.pop(uid, None)
            return task
        return replace(task, nominated=node)

    def _set_pod(self, uid: PodUid, pod: Pod) -> None:
        keys = selector_keys(pod)
        task = self._source.task(pod, self._label_keys | keys)
        if task.node or task.status & COMPLETED_STATUSES:
            self._assumed.pop(uid, None)
            self._chosen.pop(uid, None)
        node = self._assumed.get(uid)
        if node is not None:
            status = Status.BINDING if task.status is Status.PENDING else task.status
            task = task.at(status, node)
        self._replace(uid, self._as_decided(uid, task))
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
            self._uncharge(old)
            self._leave(old)
            old = None
        if task is None:
            self.devices.release(uid)
            self._mounting.pop(uid, None)
            self._claimants.discard(uid)
            return
        task = self._tasks[uid] = self._join(task)
        if task.claims:
            self._mount(task)
        self._hold_cards(task)
        if old is not None and old.charges_like(task):
            self._own_residents(task.node)[uid] = task
            return
        if old is not None:
            self._uncharge(old)
        self._charge(task)

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

    def _hold_cards(self, task: Task) -> None:
        """Let a task hold the cards that were chosen for it, as long as it occupies its node."""
        if not task.cls.signature.devices and task.uid not in self.devices:
            return
        holding = self.holding(task)
        if holding is None:
            self.devices.release(task.uid)
        else:
            self.devices.hold(task.uid, task.node, holding)

    def holding(self, task: Task) -> Holding | None:
        """Return what a task holds by what stands on its pod, or was chosen for it, if anything."""
        if not task.occupies:
            return None
        choice = self._chosen.get(task.uid)
        if choice is None:
            notes = task.pod.metadata.annotations or {}
            if task.pod.spec.node_name:
                choice = choice_of(notes, task.uid, task.node, task.cls.signature.devices)
        if choice is None:
            return None
        leaving = task.status is Status.RELEASING
        return Holding.of(choice, task.job, task.labels, leaving)

    def _join(self, task: Task) -> Task:
        """Enter a task in its job, if it names one; return it as a member."""
        key = task.job
        if key is None:
            return task
        if key not in self._jobs:
            self._orphans.setdefault(key, {})[task.uid] = task
            return task
        job = self._own_job(key)
        task = job.assign(task)
        job.put(task)
        return task

    def _leave(self, task: Task) -> None:
        key = task.job
        if key is None:
            return
        if key in self._jobs:
            self._own_job(key).drop(task.uid)
            return
        members = self._orphans[key]
        del members[task.uid]
        if not members:
            del self._orphans[key]

    def _charge(self, task: Task) -> None:
        if task.occupies:
            self._own_residents(task.node)[task.uid] = task
            self.nodes.charge(task)
            self._population.add(task, 1)

    def _uncharge(self, task: Task) -> None:
        if task.occupies:
            residents = self._own_residents(task.node)
            del residents[task.uid]
            if not residents:
                del self.nodes.residents[task.node]
            self.nodes.charge(task, -1.0)
            self._population.add(task, -1)

    # Nodes, groups, queues, priority classes, HyperNodes.

    def set_node(self, node: Node) -> None:
        """Take over a node as it is now."""
        name = node.metadata.name
        self._guard(f"node {name}", lambda: self._set_node(node))

    def _set_node(self, node: Node) -> None:
        offers, faults = offers_of(node, self._geometries)
        self.nodes.put(NodeInfo.of(node), allocatable(node, self.space))
        self.devices.register(node.metadata.name, offers)
        self._blame(f"cards of node {node.metadata.name}", "; ".join(faults))

    def set_device_config(self, key: str, data: Mapping[str, str] | None) -> None:
        """Take over how cards can be cut, as a ConfigMap has it; None where that is gone."""
        self._guard(f"configmap {key}", lambda: self._set_geometries(geometries_in(data)))

    def _set_geometries(self, known: Known) -> None:
        if known == self._geometries:
            return
        self._geometries = known
        for info in self.nodes.infos:
            entry, text = (
                self.devices.nodes.get(info.name),
                info.annotations.get(names.VGPU_REGISTER),
            )
            if text and entry is not None and entry.offer("vgpu") is not None:
                faults: list[str] = []
                others = (offer for offer in entry.offers if offer.pool != "vgpu")
                self.devices.register(info.name, (registered(text, faults, known), *others))
                self._blame(f"cards of node {info.name}", "; ".join(faults))

    def recall_node(
        self, info: NodeInfo, offers: Iterable[float], cards: tuple[Offer, ...] = ()
    ) -> None:
        """Take over a node as it stood in the tables."""
        self.nodes.put(info, np.array([*offers]))
        self.devices.register(info.name, cards)

    def remove_node(self, name: str) -> None:
        """Forget a node. Pods on it stay known, and count again should it return."""
        self.faults.pop(f"node {name}", None)
        self.faults.pop(f"cards of node {name}", None)
        self.devices.register(name, ())
        self.nodes.drop(name)

    def set_pod_group(self, group: PodGroup) -> None:
        """Take over a group as it is now."""
        self._guard(f"podgroup {group.metadata.key}", lambda: self._set_pod_group(group))

    def _set_pod_group(self, group: PodGroup) -> None:
        key = JobKey(group.metadata.key)
        terms = self._terms(group)
        if key in self._jobs:
            job = self._own_job(key)
            regroup = job.group.spec.sub_group_policy != group.spec.sub_group_policy
            members = dict(job.tasks) if regroup else {}
            job.describe(group, terms)
        else:
            job = self._jobs[key] = JobInfo(group, terms)
            self._own_jobs.add(key)
            self._usage.touch(key)
            members = self._orphans.pop(key, {})
        for task in members.values():
            joined = job.assign(task)
            job.put(joined)
            if joined is not task:
                self._tasks[task.uid] = joined
                if joined.occupies:
                    self._own_residents(joined.node)[joined.uid] = joined

    def remove_pod_group(self, key: JobKey) -> None:
        """Forget a group. Its pods wait for one of that name."""
        self.faults.pop(f"podgroup {key}", None)
        job = self._jobs.pop(key, None)
        if job is None:
            return
        self._own_jobs.discard(key)
        self._usage.touch(key)
        if job.tasks:
            self._orphans[key] = dict(job.tasks)

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
        self._classes[priority_class.metadata.name] = priority_class
        self._reprioritise()

    def remove_priority_class(self, name: str) -> None:
        """Forget a priority class."""
        if self._classes.pop(name, None) is not None:
            self._reprioritise()

    def set_hypernode(self, hypernode: HyperNode) -> None:
        """Take over a HyperNode as it is now."""
        known = self.hypernodes.get(hypernode.metadata.name)
        self.hypernodes[hypernode.metadata.name] = hypernode
        if known is None or known.spec != hypernode.spec:
            self._tree = None

    def remove_hypernode(self, name: str) -> None:
        """Forget a HyperNode."""
        if self.hypernodes.pop(name, None) is not None:
            self._tree = None

    @property
    def tree(self) -> HyperTree:
        """Return the HyperNodes over the nodes as they are now; shared, and never changed."""
        columns = self.nodes.columns
        if self._tree is not None:
            tree, over, labels = self._tree
            if over is columns:
                return tree
            if columns.agrees(over, labels):
                self._tree = tree, columns, labels
                return tree
        labels = selecting_labels(self.hypernodes.values())
        self._tree = hyper_tree(self.hypernodes, columns), columns, labels
        return self._tree[0]

    def _reprioritise(self) -> None:
        for key, job in list(self._jobs.items()):
            terms = self._terms(job.group)
            if (terms.priority, terms.remarks) != (job.priority, job.terms.remarks):
                self._own_job(key).terms = terms

    def _terms(self, group: PodGroup) -> Terms:
        """Return what a group's specification comes to."""
        spec, remarks, fault = group.spec, [], ""
        least: Floats | None = None
        if spec.min_member < 0:
            remarks.append(f"minMember {spec.min_member} counts as 0")
        try:
            if spec.min_resources is not None:
                least = self.space.vector(spec.min_resources)
        except QuantityError as error:
            fault = f"minResources: {error}"
        name = spec.priority_class_name
        found = self._classes.get(name) or self._default_class()
        priority = found.value if found else 0
        if name and name not in self._classes:
            remarks.append(f"priority class {name} does not exist, priority is {priority}")
        queue = spec.queue or self.default_queue
        return Terms(queue, priority, least, fault, tuple(remarks))

    def _default_class(self) -> PriorityClass | None:
        defaults = (c for c in self._classes.values() if c.global_default)
        return min(defaults, key=lambda c: (-c.value, c.metadata.name), default=None)

    # Checks for single pods, between sessions.

    def headcount(self, counts: Callable[[Task], bool]) -> Headcount:
        """Return who is where; of the pods whose room is merely held, only those that count."""
        population = self._population.clone()
        for uid in self._assumed:
            task = self._tasks.get(uid)
            if task is not None and task.occupies and not counts(task):
                population.add(task, -1)
        return population.share()

    def fits(self, uid: PodUid, node: str, without: Iterable[PodUid] = ()) -> list[str]:
        """
        Return what is short if this pod were put there now: resources, and `cards`.

        What the pods in `without` hold of the node's resources does not count.
        """
        task, i = self._tasks.get(uid), self.nodes.index.get(node)
        if task is None or i is None:
            return ["node"] if i is None else []
        used = self.nodes.used[:, i]
        for other in (uid, *without):
            resident = self._tasks.get(other)
            if resident is not None and resident.node == node and resident.occupies:
                used = minus(used, resident.cls.req)
        short = self._names(shortages(task.cls.req, self.nodes.alloc[:, i] - used), task)
        if self.ask(uid) is not None and self.choose_cards(uid, node) is None:
            short.append("cards")
        return short

    def standings(self, key: JobKey) -> Standings | None:
        """Return where a job's tasks are in HyperNodes; None where they may be anywhere."""
        job = self._jobs.get(key)
        if job is None or not bounds_of(job, self.tree).hard:
            return None
        return Standings(job, self.tree, self.nodes.index)

    def strays(self, uid: PodUid, node: str) -> str:
        """Return why this pod would be too far from its gang there; empty where it is not."""
        task, i = self._tasks.get(uid), self.nodes.index.get(node)
        standings = self.standings(task.job) if task is not None and task.job is not None else None
        if task is None or standings is None or i is None:
            return ""
        if task.occupies and task.node in self.nodes.index:
            standings.move(task.sub_job, (self.nodes.index[task.node],), -1)
        return refusal(standings, task, i)

    def ask(self, uid: PodUid) -> Ask | None:
        """Return what a pod asks of the cards of its node, where cards are shared that way."""
        task = self._tasks.get(uid)
        return None if task is None else self.sharing.ask(task.cls.signature.devices)

    def choose_cards(self, uid: PodUid, node: str) -> Choice | None:
        """Return cards of a node for a pod that asks for some, None where they are not left."""
        ask = self.ask(uid)
        if ask is None:
            return None
        policy, hidden = self.sharing.policy, self._hidden(uid, node, ask)
        return self.devices.choose(uid, node, ask, policy, hidden)

    def has_cards(self, uid: PodUid, node: str, choice: Choice) -> bool:
        """Return whether a pod may have the cards of a node that were chosen for it."""
        return self.devices.admits(uid, node, choice, self._hidden(uid, node, choice.ask))

    def _hidden(self, uid: PodUid, node: str, ask: Ask) -> int:
        task, entry = self._tasks[uid], self.devices.without(uid, node)
        offer = entry.offer(pool_of(ask.kind)) if entry else None
        if entry is None or offer is None:
            return 0
        return self.sharing.hidden(ask, offer, entry, task.job, self.sharing.matching(task.labels))

    def fits_bound(self, uid: PodUid, node: str, committed: Iterable[PodUid]) -> list[str]:
        """
        Return the resources that are short if this pod were bound there now.

        What counts is what is bound on the node, by anyone, and what of `committed` was given to
        it and is not yet seen there; room that is merely held for other pods does not count.
        """
        task, i = self._tasks.get(uid), self.nodes.index.get(node)
        if task is None or i is None:
            return ["node"] if i is None else []
        used, alloc = self.nodes.used[:, i], self.nodes.alloc[:, i]
        if task.occupies and task.node == node and not shortages(used, alloc):
            return []  # There is room even with all that is merely held.
        counted = set(committed) - {uid}
        for other in self.nodes.tasks_on(node).values():
            if other.uid == uid or (other.uid in self._assumed and other.uid not in counted):
                used = minus(used, other.cls.req)
        return self._names(shortages(task.cls.req, alloc - used), task)

    def allocated(self, queue: str) -> Floats:
        """Return what the jobs of a queue hold now, what is merely held for them included."""
        self._usage.settle(self._jobs)
        return self._usage.of(queue).allocated

    def overcommitted(self) -> list[str]:
        """Return the nodes on which more is bound, by anyone, than is allocatable."""
        suspects = (self.nodes.used > self.nodes.alloc + EPSILON).any(axis=0)
        found = []
        for i in np.flatnonzero(suspects):
            name = self.nodes.names[int(i)]
            bound = self.nodes.used[:, i]
            for task in self.nodes.tasks_on(name).values():
                if task.uid in self._assumed:
                    bound = minus(bound, task.cls.req)
            if (bound > self.nodes.alloc[:, i] + EPSILON).any():
                found.append(name)
        return found

    def _names(self, rows: Iterable[int], task: Task) -> list[str]:
        """Return the names of short rows that the task asks for; others are not its fault."""
        return [self.space.names[row] for row in rows if row in task.cls.rows]

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
        self._usage.settle(self._jobs)
        self._own_jobs.clear()
        self._own_nodes.clear()
        odd = {f"hypernode {name}": fault for name, fault in self.tree.faults.items()}
        return Snapshot(
            names=self.space.names,
            nodes=self.nodes.copy(),
            jobs=dict(self._jobs),
            queues=dict(self.queues),
            usage=self._usage.by_queue(),
            active=self._usage.active(),
            population=self._population.share(),
            avoided=avoided,
            spared=spared,
            default_queue=self.default_queue,
            scheduler_names=self._source.schedulers,
            priority_classes=tuple(self._classes.values()),
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

    def _own_job(self, key: JobKey) -> JobInfo:
        """Return a job that may be changed in place."""
        self._usage.touch(key)
        if key not in self._own_jobs:
            self._jobs[key] = self._jobs[key].clone()
            self._own_jobs.add(key)
        return self._jobs[key]

    def _own_residents(self, node: str) -> dict[PodUid, Task]:
        residents = self.nodes.residents
        if node not in self._own_nodes or node not in residents:
            residents[node] = dict(residents.get(node, {}))
            self._own_nodes.add(node)
        return residents[node]

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
            *_differences(self.nodes, self._jobs, self._tasks.values()),
            *differing_cards(self.devices.nodes, self._tasks.values(), self.holding),
        ]

    def checker(self) -> Callable[[], list[str]]:
        """Return `check` for the tables as they are now, to be called in whatever thread."""
        seen, tasks = self.snapshot(), list(self._tasks.values())
        holdings = {t.uid: self.holding(t) for t in tasks if t.cls.signature.devices}
        return lambda: [
            *_differences(seen.nodes, seen.jobs, tasks),
            *differing_cards(seen.devices, tasks, lambda task: holdings.get(task.uid)),
        ]


def _differences(
    nodes: NodeTable, jobs: Mapping[JobKey, JobInfo], tasks: Collection[Task]
) -> list[str]:
    return [*differing_nodes(nodes, tasks), *differing_jobs(jobs, tasks)]
