"""
The extender's picture of the world: the cluster cache and the ledger, kept in step.

Everything here is called on the event loop and nowhere else: one writer, no locks. A session
runs in a thread of its own, on a snapshot; its decisions come back and are applied here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum

from pumice.core import names
from pumice.core.api.core import Node, Pod
from pumice.core.api.scheduling import PodGroup, Queue
from pumice.core.api.topology import HyperNode
from pumice.core.bounds import bounds_of
from pumice.core.cluster import Cluster
from pumice.core.conf import Configuration
from pumice.core.devices.notes import Choice, order_of
from pumice.core.devices.sharing import Sharing
from pumice.core.ids import JobKey, PodUid
from pumice.core.ledger import Arm, Entry, Ledger, PodView, State
from pumice.core.model.tasks import Status, Task
from pumice.core.prebinding import reaches, unsettled
from pumice.core.steering import arm_of, group_of, view_of
from pumice.core.surroundings import Surroundings

AVOID_S = 30.0
"""How long a job avoids a node that refused a pod of it, unless the node changes before."""
AVOID_AT_MOST_S = 600.0
LAG_S = 10.0
"""How long kube-scheduler may take to see a change of a node that is seen here."""

_STAYING = Status.BINDING | Status.BOUND | Status.RUNNING


class Urgency(Enum):
    """When a session is to look at a change."""

    #: there is nothing that it would see
    NEVER = "never"
    #: nothing can start or must stop for it, but more is to be reported
    LATER = "later"
    NOW = "now"


@dataclass(slots=True)
class Model:
    """Cluster and ledger; `pending` keeps the unbound pods of ours whole, for their patches."""

    now: Callable[[], float]
    cluster: Cluster = field(default_factory=Cluster)
    ledger: Ledger = field(default_factory=Ledger)
    scheduler_names: frozenset[str] = frozenset({names.DEFAULT_SCHEDULER})
    pending: dict[PodUid, Pod] = field(default_factory=dict)
    #: pods first seen with a plan that this process did not make: still to be checked
    adopted: set[PodUid] = field(default_factory=set)
    #: job -> node -> when pods of the job may be planned there again
    avoided: dict[JobKey, dict[str, float]] = field(default_factory=dict)
    #: node -> when it changed last, if that was a moment ago
    changes: dict[str, float] = field(default_factory=dict)
    #: job -> how often in a row it was refused since a pod of it was bound last, and when
    refusals: dict[JobKey, tuple[int, float]] = field(default_factory=dict)
    #: pod that could not be evicted -> when it may be tried again
    spared: dict[PodUid, float] = field(default_factory=dict)
    #: node -> bindings that the API server accepted and the watch has not shown yet
    committed: dict[str, set[PodUid]] = field(default_factory=dict)
    #: called with a pod of ours that changed or went, before the listeners
    watchers: list[Callable[[PodUid], None]] = field(default_factory=list)
    #: called with the job, if any, of a pod that changed or went
    listeners: list[Callable[[JobKey | None], None]] = field(default_factory=list)

    # --- the world shows something ----------------------------------------------------------

    def set_pod(self, pod: Pod) -> Urgency:
        """Take note of a pod, of whatever scheduler."""
        uid = PodUid(pod.metadata.uid)
        before = self.cluster.task(uid)
        if pod.spec.scheduler_name in self.scheduler_names:
            self._set_own_pod(uid, pod)
        else:
            self.cluster.set_pod(pod)
        return self._urgency(before, self.cluster.task(uid))

    def _urgency(self, before: Task | None, after: Task | None) -> Urgency:
        if before == after:
            return Urgency.NEVER
        if after is None:
            return Urgency.NOW
        if before is None:
            return Urgency.LATER if self._waits_for_others(after) else Urgency.NOW
        stays = before.status & _STAYING and after.status & _STAYING
        if stays and before.job == after.job and before.charges_like(after):
            return Urgency.LATER
        return Urgency.NOW

    def _waits_for_others(self, task: Task) -> bool:
        """Tell whether a pod cannot start since too few of its gang are there."""
        job = self.cluster.jobs.get(task.job) if task.job is not None else None
        pending = task.status is Status.PENDING
        return pending and job is not None and job.counts.total.valid < job.min_available

    def _set_own_pod(self, uid: PodUid, pod: Pod) -> None:
        known = self.ledger.get(uid)
        was = known.state if known else None
        view = self._view(uid, pod)
        entry = self.ledger.observe(view, self.now())
        self.cluster.set_pod(pod)
        if view.node:
            self._shown_bound(uid, view.node)
        else:
            self._shown_unbound(uid, pod, view.gone, entry)
        if entry is not None and entry.state is State.RELEASED and was in (None, State.HELD):
            self.adopted.add(uid)
        self._tell(uid, view.job)

    def _view(self, uid: PodUid, pod: Pod) -> PodView:
        view = view_of(pod)
        if uid in self.pending and uid not in self.ledger:
            # It was known and had no plan, or lost it: what is still written on it is none.
            return replace(view, pin="", nominated="")
        return view

    def remove_pod(self, uid: PodUid) -> None:
        """Forget a pod that is gone."""
        task = self.cluster.task(uid)
        entry = self.ledger.drop(uid)
        self._shown_bound(uid, entry.node if entry else "")
        self.cluster.remove_pod(uid)
        self._tell(uid, task.job if task else None)

    def set_group(self, group: PodGroup) -> Urgency:
        """Take note of a group."""
        key = JobKey(group.metadata.key)
        job = self.cluster.jobs.get(key)
        known = job.group if job is not None else None
        self.cluster.set_pod_group(group)
        self.changed(key)
        if known is None or known.status.phase != group.status.phase:
            return Urgency.NOW
        return Urgency.LATER if _asks_the_same(known, group) else Urgency.NOW

    def remove_group(self, key: JobKey) -> None:
        """Forget a group that is gone."""
        self.cluster.remove_pod_group(key)
        self.changed(key)

    def set_queue(self, queue: Queue) -> Urgency:
        """Take note of a queue."""
        info = self.cluster.queues.get(queue.metadata.name)
        known = info.queue if info is not None else None
        self.cluster.set_queue(queue)
        if known is None or known.status.state != queue.status.state:
            return Urgency.NOW
        return Urgency.LATER if _asks_the_same(known, queue) else Urgency.NOW

    def set_node(self, node: Node) -> Urgency:
        """Take note of a node."""
        name = node.metadata.name
        before = self._node_facts(name)
        self.cluster.set_node(node)
        if before is not None and before == self._node_facts(name):
            return Urgency.NEVER
        self.changes[name] = self.now()
        # Whatever it refused before, it may take now.
        for nodes in self.avoided.values():
            nodes.pop(name, None)
        return Urgency.NOW

    def set_hypernode(self, hypernode: HyperNode) -> Urgency:
        """Take note of a HyperNode; how many nodes it counts is somebody else's to write."""
        known = self.cluster.hypernodes.get(hypernode.metadata.name)
        if known is not None and known.spec == hypernode.spec:
            return Urgency.NEVER
        self.cluster.set_hypernode(hypernode)
        return Urgency.NOW

    def _node_facts(self, name: str) -> tuple[object, bytes] | None:
        table = self.cluster.nodes
        i = table.index.get(name)
        return None if i is None else (table.infos[i], table.alloc[:, i].tobytes())

    def domain_of(self, node: str, key: str) -> str | None:
        """Return the topology domain of a node, None where it lacks the label."""
        i = self.cluster.nodes.index.get(node)
        return None if i is None else self.cluster.nodes.infos[i].labels.get(key)

    def changed(self, job: JobKey | None) -> None:
        """Tell the listeners that something about a job, or about a pod of none, changed."""
        for listener in self.listeners:
            listener(job)

    def _tell(self, uid: PodUid, job: JobKey | None) -> None:
        for watcher in self.watchers:
            watcher(uid)
        self.changed(job)

    # --- we do something --------------------------------------------------------------------

    def configure(self, conf: Configuration) -> None:
        """Share devices as a configuration says."""
        self.cluster.devices.sharing = Sharing.of(conf)

    def plan(self, uid: PodUid, node: str, cards: Choice | None = None) -> None:
        """Give a Held pod a node, and cards there, and take the room."""
        self.ledger.plan(uid, node, cards)
        self.cluster.assume(uid, node, cards)

    def unplan(self, uid: PodUid) -> None:
        """Return the room of a Held pod that had a plan."""
        self.ledger.unplan(uid)
        self.cluster.forget(uid)

    def adopt(self, pod: Pod, node: str, cards: Choice | None = None) -> Entry:
        """Give a node to a pod that nothing holds any more: it is to be nominated there."""
        entry = self.ledger.adopt(view_of(pod), node, Arm.NOMINATE, self.now(), cards)
        self.cluster.assume(entry.uid, node, cards)
        return entry

    def equip(self, uid: PodUid, node: str) -> bool:
        """
        See that a pod on its way to a node has the cards there that it asks for, if any.

        Those that were chosen are kept where they may still be had; return whether it has some.
        """
        entry = self.ledger.get(uid)
        if entry is None or self.cluster.ask(uid) is None:
            return True
        if entry.cards is not None and self.cluster.has_cards(uid, node, entry.cards):
            return True
        cards = self.cluster.choose_cards(uid, node)
        if cards is None:
            return False
        self.ledger.equip(uid, cards)
        self.cluster.assume(uid, node, cards)
        return True

    def last_order(self, node: str) -> int:
        """Return the latest order of a choice that stands on a pod of a node, 0 without any."""
        entry = self.cluster.devices.nodes.get(node)
        pods = (self.cluster.pods.get(uid) for uid in (entry.holders if entry else ()))
        return max((order_of(p.metadata.annotations or {}) for p in pods if p), default=0)

    def version(self, uid: PodUid) -> str:
        """Return the resourceVersion of a pod as it was last seen, "" for one that is gone."""
        pod = self.cluster.pods.get(uid)
        return pod.metadata.resource_version if pod else ""

    def withdraw(self, uid: PodUid) -> None:
        """Take the plan from a pod that is not pinned; the next session makes another one."""
        self.ledger.drop(uid)
        self.cluster.forget(uid)

    def hold_again(self, uid: PodUid) -> None:
        """Take the plan from a pod whose release was refused; see what the pod says itself."""
        self.ledger.hold_again(uid, self.now())
        self.cluster.forget(uid)
        pod = self.pending.get(uid)
        if pod is not None:
            # Somebody else may have taken its gate off, which is why the release was refused.
            self.set_pod(pod)

    def move(self, uid: PodUid, node: str) -> bool:
        """
        Move the charge of a pod to the node that kube-scheduler took instead.

        Return whether it may go there: not where it lacks cards.
        """
        if not self.equip(uid, node):
            return False
        self.ledger.move(uid, node)
        entry = self.ledger.get(uid)
        self.cluster.assume(uid, node, entry.cards if entry else None)
        return True

    def commit(self, uid: PodUid, node: str) -> None:
        """Note a binding that the API server accepted."""
        self.ledger.bound(uid, self.now())
        entry = self.ledger.get(uid)
        if entry is not None and entry.job is not None:
            self.refusals.pop(entry.job, None)
        if uid in self.pending:
            self.committed.setdefault(node, set()).add(uid)

    def avoid(self, job: JobKey | None, *nodes: str) -> None:
        """
        Plan nothing of a job on some nodes, on each until it changes, or for a while.

        Each refusal in a row doubles the while: a job that kube-scheduler wants nowhere comes to
        rest; what is refused together counts once. Other jobs go on using the nodes. The first
        refusal is no reason to avoid a node that changed a moment ago: kube-scheduler may have
        judged it as it was before.
        """
        if job is None:
            return
        row, at = self.refusals.get(job, (0, -math.inf))
        if self.now() - at >= LAG_S:
            row, at = row + 1, self.now()
        self.refusals[job] = row, at
        if row == 1:
            nodes = tuple(node for node in nodes if not self._changed_lately(node))
        until = self.now() + min(AVOID_S * 2 ** (row - 1), AVOID_AT_MOST_S)
        self.avoided.setdefault(job, {}).update(dict.fromkeys(nodes, until))

    def _changed_lately(self, node: str) -> bool:
        return self.changes.get(node, -math.inf) > self.now() - LAG_S

    def avoided_nodes(self) -> dict[JobKey, frozenset[str]]:
        """Return the nodes to be avoided at the moment, by job."""
        now, left = self.now(), {}
        self.changes = {node: at for node, at in self.changes.items() if self._changed_lately(node)}
        for job, nodes in self.avoided.items():
            still = {node: until for node, until in nodes.items() if until > now}
            if still and job in self.cluster.jobs:
                left[job] = still
        self.avoided = left
        self.refusals = {j: n for j, n in self.refusals.items() if j in self.cluster.jobs}
        return {job: frozenset(nodes) for job, nodes in left.items()}

    def spare(self, uid: PodUid, seconds: float) -> None:
        """Have nobody try to evict a pod for a while."""
        self.spared[uid] = self.now() + seconds

    def spared_pods(self) -> frozenset[PodUid]:
        """Return the pods that are not to be evicted at the moment."""
        now = self.now()
        self.spared = {uid: until for uid, until in self.spared.items() if until > now}
        return frozenset(self.spared)

    def arm_of(self, pod: Pod) -> Arm:
        """Return the way in which a pod is to be released."""
        key = group_of(pod)
        job = self.cluster.jobs.get(key) if key else None
        # kube-scheduler knows nothing of cards either: it is to try the node that has some first.
        bound = self.cluster.ask(PodUid(pod.metadata.uid)) is not None
        claims = bool(self.claims(pod))
        if job is None:
            return arm_of(pod, 1, bound=bound, claims=claims)
        bound = bound or bounds_of(job, self.cluster.tree).hard
        return arm_of(pod, job.min_available, bound=bound, claims=claims)

    def claims(self, pod: Pod) -> frozenset[str]:
        """Return the claims that kube-scheduler is to settle for a pod."""
        return unsettled(pod, self.cluster.inputs.storage)

    def reaches(self, node: str, pod: Pod) -> bool:
        """Tell whether all volumes that a pod has by now can be reached from a node."""
        table = self.cluster.nodes
        labels = table.infos[table.index[node]].labels
        return reaches(node, labels, pod, self.cluster.inputs.storage)

    def settling(self, job: JobKey) -> dict[PodUid, frozenset[str]]:
        """Return the pods of a job that were let go and have claims to be settled, and those."""
        gone = [entry.uid for entry in self.ledger.of_job(job) if entry.state is not State.HELD]
        pods = {uid: pod for uid in gone if (pod := self.cluster.pods.get(uid)) is not None}
        return {uid: claims for uid, pod in pods.items() if (claims := self.claims(pod))}

    def surroundings(self) -> Surroundings:
        """Return what is on nodes as kube-scheduler sees it: not what we alone have put there."""
        return Surroundings(self.cluster.nodes.columns, self.cluster.headcount(self._is_seen))

    def _is_seen(self, task: Task) -> bool:
        entry = self.ledger.get(task.uid)
        return entry is None or entry.state not in (State.HELD, State.RELEASED)

    # --- inside -----------------------------------------------------------------------------

    def _shown_bound(self, uid: PodUid, node: str) -> None:
        self.pending.pop(uid, None)
        self.adopted.discard(uid)
        waiting = self.committed.get(node)
        if waiting is not None:
            waiting.discard(uid)
            if not waiting:
                del self.committed[node]

    def _shown_unbound(self, uid: PodUid, pod: Pod, gone: bool, entry: Entry | None) -> None:
        """Let the cache hold the room that the ledger says is taken, and no other."""
        if gone:
            self.pending.pop(uid, None)
        else:
            self.pending[uid] = pod
        if entry is not None and entry.node:
            self.cluster.assume(uid, entry.node, entry.cards)
        else:
            self.cluster.forget(uid)


def _asks_the_same(known: PodGroup | Queue, now: PodGroup | Queue) -> bool:
    """Tell whether nothing changed but the status, which is ours to write."""
    one, other = known.metadata, now.metadata
    return (
        known.spec == now.spec
        and (one.uid, one.deletion_timestamp) == (other.uid, other.deletion_timestamp)
        and (one.labels, one.annotations) == (other.labels, other.annotations)
    )
