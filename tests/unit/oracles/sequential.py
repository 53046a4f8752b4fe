"""
The default configuration as its rules are written: one queue, one job, one task after the other.

A plain model to compare the engine with. It knows cpu, memory and pod slots; nodes score by
binpack, and a task may be tied to one node.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pumice.core.api.scheduling import PodGroupPhase

Amount = tuple[float, float, float]
"""Thousandths of a cpu, bytes, pods."""

ALL, ASKED = (0, 1, 2), (0, 1)
ZERO: Amount = (0.0, 0.0, 0.0)
EPSILON = 0.1
HELD = ("run", "allocated", "bound")
READY = (*HELD, "succeeded")
VALID = (*READY, "promised", "pending")


def plus(a: Amount, b: Amount, sign: int = 1) -> Amount:
    return (a[0] + sign * b[0], a[1] + sign * b[1], a[2] + sign * b[2])


def total(amounts: Iterable[Amount]) -> Amount:
    found = ZERO
    for amount in amounts:
        found = plus(found, amount)
    return found


def beyond(a: Amount, b: Amount) -> Amount:
    return (max(a[0] - b[0], 0.0), max(a[1] - b[1], 0.0), max(a[2] - b[2], 0.0))


def fits(need: Amount, room: Amount) -> bool:
    return all(need[d] - room[d] < EPSILON for d in ALL)


def dominant(held: Amount, whole: Amount) -> float:
    return max((held[d] / whole[d] for d in ALL if whole[d] >= EPSILON), default=0.0)


@dataclass
class Task:
    name: str
    asks: Amount
    role: str = ""
    priority: int = 1
    status: str = "pending"
    node: str = ""
    gated: bool = False
    #: the one node that it may go to, where it may not go anywhere
    tied: str = ""

    @property
    def asks_for_nothing(self) -> bool:
        return max(self.asks[0], self.asks[1]) < EPSILON

    @property
    def order(self) -> tuple[int, int]:
        return (-self.priority, int(self.name.rsplit("-", 1)[1]))


@dataclass
class Job:
    name: str
    queue: str
    least: int
    tasks: list[Task]
    phase: PodGroupPhase = "Inqueue"
    roles: dict[str, int] = field(default_factory=dict)
    priority: int = 0
    minimum: Amount | None = None

    def number(self, statuses: Iterable[str], role: str | None = None) -> int:
        """Return how many tasks are in these statuses; `nothing` are those that ask for nothing."""
        wanted = set(statuses)
        found = 0
        for task in self.tasks:
            waits_for_nothing = task.status == "pending" and task.asks_for_nothing
            counts = task.status in wanted or ("nothing" in wanted and waits_for_nothing)
            found += counts and role in (None, task.role)
        return found

    def held(self, *statuses: str) -> Amount:
        return total(t.asks for t in self.tasks if t.status in statuses)

    def has(self, *statuses: str) -> bool:
        """Return whether the job, and each of its roles, has its minimum in these statuses."""
        return self.number(statuses) >= self.least and self.roles_have(*statuses)

    def roles_have(self, *statuses: str) -> bool:
        if self.least < sum(self.roles.values()):
            return True
        return all(self.number(statuses, role) >= n for role, n in self.roles.items())

    def without_gated(self, amount: Amount) -> Amount:
        return beyond(amount, total(t.asks for t in self.tasks if t.gated))

    def reserved(self, whole: bool) -> Amount:
        """Return what is kept for a job that is let in and has not started."""
        if self.minimum is None or self.phase == "Pending":
            return ZERO
        if self.phase == "Running" and self.number(HELD) < self.least:
            return ZERO
        rest = beyond(self.minimum, self.held(*HELD))
        kept = self.minimum if whole and self.phase == "Inqueue" else rest
        return self.without_gated(kept)

    def worth_continuing(self, failed: set[str]) -> bool:
        if self.least >= len(self.tasks):
            return False
        if self.least < sum(self.roles.values()):
            others = sum(t.status == "pending" and t.role not in failed for t in self.tasks)
            return self.number(READY) + others >= self.least
        return all(
            self.number((*READY, "nothing"), role) >= self.roles.get(role, 0) for role in failed
        )


@dataclass
class Queue:
    weight: int = 1
    priority: int = 0
    #: unlimited where it is None, and in cpu and memory where it is 0
    capability: tuple[float | None, float | None] = (None, None)
    guarantee: Amount = ZERO
    is_open: bool = True
    jobs: list[Job] = field(default_factory=list)
    held: Amount = ZERO
    due: Amount = ZERO
    bound: Amount = ZERO
    reserved: Amount = ZERO
    elastic: Amount = ZERO

    def begin(self, free: Amount) -> None:
        cpu, memory, pods = plus(free, self.guarantee)
        limits = [limit or float("inf") for limit in self.capability]
        self.bound = (min(cpu, limits[0]), min(memory, limits[1]), pods)
        self.held = total(j.held(*HELD) for j in self.jobs)
        self.reserved = total(j.reserved(whole=False) for j in self.jobs)
        self.elastic = total(beyond(j.held(*HELD), j.minimum or ZERO) for j in self.jobs)

    @property
    def request(self) -> Amount:
        return total(j.held(*HELD, "pending") for j in self.jobs)


@dataclass
class Node:
    offers: Amount
    used: Amount = ZERO
    leaving: Amount = ZERO
    promised: Amount = ZERO

    @property
    def idle(self) -> Amount:
        return plus(self.offers, self.used, -1)

    @property
    def future(self) -> Amount:
        return plus(plus(self.idle, self.leaving), self.promised, -1)

    def score(self, task: Task) -> float:
        after = plus(self.used, task.asks)
        rows = [d for d in ASKED if task.asks[d]]
        if any(after[d] > self.offers[d] > 0 for d in rows):
            return 0.0
        return sum(after[d] / self.offers[d] for d in rows if self.offers[d]) / max(len(rows), 1)


@dataclass
class Model:
    """A cluster; `run` goes through one session and returns who was placed where."""

    nodes: dict[str, Node]
    queues: dict[str, Queue]
    jobs: list[Job]
    placed: dict[str, str] = field(default_factory=dict)
    idle: Amount = ZERO
    let_in: Amount = ZERO

    def run(self) -> dict[str, str]:
        self._begin()
        self._enqueue()
        self._allocate()
        self._backfill()
        return self.placed

    def _begin(self) -> None:
        for job in self.jobs:
            self.queues[job.queue].jobs.append(job)
            for task in job.tasks:
                if task.node:
                    node = self.nodes[task.node]
                    node.used = plus(node.used, task.asks)
                    if task.status == "leaving":
                        node.leaving = plus(node.leaving, task.asks)
        self.offered = total(node.offers for node in self.nodes.values())
        cpu, memory, pods = self.offered
        used = total(node.used for node in self.nodes.values())
        self.idle = plus((cpu * 1.2, memory * 1.2, pods * 1.2), used, -1)
        self.let_in = total(job.reserved(whole=True) for job in self.jobs)
        guaranteed = total(queue.guarantee for queue in self.queues.values())
        self.queues = {name: queue for name, queue in self.queues.items() if queue.jobs}
        for queue in self.queues.values():
            queue.begin(beyond(self.offered, guaranteed))
        self._share_out()

    def _share_out(self) -> None:
        rest, unmet = self.offered, [*self.queues.values()]
        while weights := sum(queue.weight for queue in unmet):
            more = less = ZERO
            still = []
            for queue in unmet:
                before, part, request = queue.due, queue.weight / weights, queue.request
                due = [
                    max(min(before[d] + rest[d] * part, queue.bound[d], request[d]), kept)
                    for d, kept in enumerate(queue.guarantee)
                ]
                queue.due = (due[0], due[1], due[2])
                if fits(request, queue.due):
                    queue.due = plus(request, beyond(queue.due, request))
                elif queue.due != before:
                    still.append(queue)
                more = plus(more, beyond(queue.due, before))
                less = plus(less, beyond(before, queue.due))
            left = beyond(plus(rest, less), more)
            if left == rest or max(left[:2]) < EPSILON:
                break
            rest, unmet = left, still
        for queue in self.queues.values():
            cpu, memory, pods = (round(d) if abs(d - round(d)) < 1e-3 else d for d in queue.due)
            queue.due = (cpu, memory, pods)

    # Orders.

    def _queue_order(self, name: str) -> tuple[int, float, str]:
        queue = self.queues[name]
        return (-queue.priority, dominant(queue.held, queue.due), name)

    def _job_order(self, job: Job) -> tuple[int, bool, float, str]:
        ready = job.number((*READY, "nothing")) >= job.least
        share = dominant(job.held(*HELD, "promised"), self.offered)
        return (-job.priority, ready, share, job.name)

    # Actions.

    def _enqueue(self) -> None:
        waiting = {n: [j for j in q.jobs if j.phase == "Pending"] for n, q in self.queues.items()}
        while open_queues := [name for name, jobs in waiting.items() if jobs]:
            queue = min(open_queues, key=self._queue_order)
            job = min(waiting[queue], key=self._job_order)
            waiting[queue].remove(job)
            if job.minimum is None or self._admits(self.queues[queue], job.minimum):
                job.phase = "Inqueue"
                kept = job.without_gated(job.minimum or ZERO)
                self.let_in = plus(self.let_in, kept)
                self.queues[queue].reserved = plus(self.queues[queue].reserved, kept)

    def _admits(self, queue: Queue, minimum: Amount) -> bool:
        taken = plus(plus(queue.held, queue.reserved), queue.elastic, -1)
        rows = [d for d in ASKED if minimum[d]]
        within_cluster = all(self.let_in[d] + minimum[d] <= self.idle[d] for d in rows)
        within_queue = all(taken[d] + minimum[d] <= queue.bound[d] for d in rows)
        return queue.is_open and within_cluster and within_queue

    def _allocate(self) -> None:
        sheets: dict[str, list[Task]] = {}
        for job in self.jobs:
            waiting = [t for t in job.tasks if t.status == "pending" and not t.gated]
            asking = [t for t in waiting if not t.asks_for_nothing]
            if asking and job.phase != "Pending" and job.has(*VALID):
                sheets[job.name] = sorted(asking, key=lambda t: t.order)
        failed: dict[str, set[str]] = {name: set() for name in sheets}
        turns = {n: [j for j in q.jobs if j.name in sheets] for n, q in self.queues.items()}
        while open_queues := [name for name, jobs in turns.items() if jobs]:
            name = min(open_queues, key=self._queue_order)
            queue = self.queues[name]
            if fits(queue.due, queue.held):
                del turns[name]
                continue
            job = min(turns[name], key=self._job_order)
            turns[name].remove(job)
            if self._try(queue, job, sheets[job.name], failed[job.name]) and sheets[job.name]:
                turns[name].append(job)

    def _try(self, queue: Queue, job: Job, tasks: list[Task], failed: set[str]) -> bool:
        done: list[Task] = []
        while tasks:
            task = tasks.pop(0)
            if not self._allows(queue, task) or (task.role and task.role in failed):
                continue
            if not self._place(queue, task):
                failed.add(task.role)
                if not job.worth_continuing(failed):
                    break
                continue
            done.append(task)
            if job.has(*READY, "nothing"):
                break
        if job.has(*READY, "nothing"):
            self._send_out(task for task in done if task.status == "allocated")
            return True
        if not job.has(*READY, "nothing", "promised"):
            for task in done:
                self._take_back(queue, task)
        return False

    def _allows(self, queue: Queue, task: Task) -> bool:
        within = (queue.held[d] + task.asks[d] <= queue.due[d] for d in ASKED if task.asks[d])
        return queue.is_open and all(within)

    def _place(self, queue: Queue, task: Task) -> bool:
        may = {name: node for name, node in self.nodes.items() if task.tied in ("", name)}
        candidates = {
            name: node
            for name, node in may.items()
            if fits(task.asks, node.future) and self._has_slot(node)
        }
        idle = {name: node for name, node in candidates.items() if fits(task.asks, node.idle)}
        if not candidates:
            return False
        task.node = self._best(task, idle or candidates)
        task.status = "allocated" if idle else "promised"
        self._charge(queue, task, 1)
        return True

    def _has_slot(self, node: Node) -> bool:
        return node.used[2] + node.promised[2] < node.offers[2]

    def _best(self, task: Task, nodes: dict[str, Node]) -> str:
        return max(nodes, key=lambda name: nodes[name].score(task))

    def _charge(self, queue: Queue, task: Task, sign: int) -> None:
        node = self.nodes[task.node]
        queue.held = plus(queue.held, task.asks, sign)
        if task.status == "allocated":
            node.used = plus(node.used, task.asks, sign)
        else:
            node.promised = plus(node.promised, task.asks, sign)

    def _take_back(self, queue: Queue, task: Task) -> None:
        self._charge(queue, task, -1)
        task.status, task.node = "pending", ""

    def _send_out(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            task.status = "bound"
            self.placed[task.name] = task.node

    def _backfill(self) -> None:
        rows: list[tuple[Job, Task]] = []
        for name in sorted(self.queues, key=self._queue_order):
            for job in sorted(self.queues[name].jobs, key=self._job_order):
                if job.phase != "Pending" and job.has(*VALID):
                    rows += [(job, t) for t in sorted(job.tasks, key=lambda t: t.order)]
        for job, task in rows:
            if task.status != "pending" or task.gated or not task.asks_for_nothing:
                continue
            may = {n: x for n, x in self.nodes.items() if task.tied in ("", n)}
            free = {n: x for n, x in may.items() if self._has_slot(x)}
            if not free:
                continue
            task.node, task.status = self._best(task, free), "allocated"
            self._charge(self.queues[job.queue], task, 1)
            if job.has(*READY, "nothing"):
                self._send_out(t for t in job.tasks if t.status == "allocated")
