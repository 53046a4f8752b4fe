"""
The session: the state of one scheduling cycle, and all that plugins and actions see of it.

Plugins register when it opens, actions change it one after the other, and what it comes to is
its plan. The types of the functions that plugins register, batch by batch, stand in
`pumice.core.extension`; how they are put to the vote, in `pumice.core.voting`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import Self

from pumice.core.catalog import (
    Hierarchical,
    Plugin,
    PluginBuilder,
    action_named,
    is_added,
    plugin_named,
)
from pumice.core.closing import Closing
from pumice.core.conf import Arguments, Configuration, PluginOption
from pumice.core.domains import Domains
from pumice.core.extension import Event, EventHandler, Gradients, Points, Purpose
from pumice.core.findings import Findings
from pumice.core.fitness import Trouble
from pumice.core.guarding import Guard, describe
from pumice.core.ids import JobKey
from pumice.core.model.hypernodes import NOWHERE
from pumice.core.model.jobs import JobInfo, SubJob
from pumice.core.model.nodes import NodeTable
from pumice.core.model.peers import Peers
from pumice.core.model.queues import QueueInfo
from pumice.core.model.snapshots import Snapshot
from pumice.core.model.tasks import Status, Task, TaskClass, task_order
from pumice.core.orders import OrderKey, Reversed
from pumice.core.outside import Ask, nobody
from pumice.core.plan import Enqueue, GroupStatus, Plan, Reason
from pumice.core.recall import is_steady
from pumice.core.resources import Floats, Ints
from pumice.core.statement import Statement
from pumice.core.views import Views
from pumice.core.voting import Voting
from pumice.core.workspace import workspace

_UNDECIDED = Status.ALLOCATED | Status.PIPELINED


class Session(Voting):
    """The state of one cycle. Everything that it changes is its own copy."""

    def __init__(
        self,
        snapshot: Snapshot,
        conf: Configuration,
        now: float,
        session_id: str,
        *,
        ask: Ask = nobody,
        recalled: Mapping[JobKey, GroupStatus] = MappingProxyType({}),
    ) -> None:
        super().__init__(Points(), Findings())
        self.snapshot = snapshot
        self.conf = conf
        self.now = now
        self.id = session_id
        #: how to reach a policy server, for the plugin that has one
        self.ask = ask
        #: resource names by row
        self.names: tuple[str, ...] = snapshot.names
        self.queues: Mapping[str, QueueInfo] = snapshot.queues
        #: whether what is done for a job of one queue may change the places of other queues
        self.queues_move = False
        self.recalled = recalled
        self.space = workspace(snapshot.nodes, snapshot.jobs, snapshot.active.difference(recalled))
        #: what all nodes offer together
        self.total: Floats = snapshot.nodes.alloc.sum(axis=1)
        ordered = sorted(
            (self.space.jobs[key] for key in snapshot.active), key=lambda job: job.order
        )
        #: jobs of which something waits or is to be told, by age; the rest are settled
        self.unsettled: list[JobInfo] = []
        #: those of them whose queue does not exist, and malformed ones, which are no part of it
        self.stranded: list[JobInfo] = []
        for job in ordered:
            (self.unsettled if self._has_place(job) else self.stranded).append(job)
        #: the unsettled ones to decide on
        self.active = [job for job in self.unsettled if job.key not in recalled]
        #: by name as configured, in the order in which they were opened
        self.plugins: list[tuple[str, Plugin]] = []
        #: how the plugin that was opened last listens
        self._listening: list[EventHandler] = []
        self.views = Views(self.space, self.points, self.names, snapshot.avoided)
        self.findings.warnings += [*conf.warnings, *_faults(snapshot, ordered)]

    def __enter__(self) -> Self:
        """Open the session."""
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        """End the session."""
        self.end()

    def open(self) -> None:
        """Let the configured plugins register, then put their functions in order."""
        for tier in self.conf.tiers:
            for option in tier:
                build = plugin_named(option.name)
                if build is None:
                    self._warn(f"plugin {option.name} is not available, it is left out")
                elif is_added(option.name):
                    self._open_guarded(option, build)
                else:
                    self._open(option, build)
        self.points.arrange(self.conf.tiers)

    def _open(self, option: PluginOption, build: PluginBuilder) -> None:
        self._listening = []
        plugin = build(option.arguments)
        if option.has("enableHierarchy"):
            if isinstance(plugin, Hierarchical):
                plugin.hierarchy = True
            else:
                self._warn(f"plugin {option.name} has no hierarchy, the flag is left out")
        plugin.on_session_open(self)
        self.plugins.append((option.name, plugin))
        self.findings.warnings += option.arguments.faults.values()

    def _open_guarded(self, option: PluginOption, build: PluginBuilder) -> None:
        """Open a third-party plugin; one that does not open takes no part in this session."""
        try:
            self._open(option, build)
        except Exception as error:
            self._failed(option.name, "on_session_open", error)
            self.points.withdraw(option.name)
            for handler in self._listening:
                self.space.handlers.remove(handler)
            return
        guard = Guard(option.name, len(self.nodes), partial(self._failed, option.name))
        guard.points(self.points)
        self.space.handlers[:] = [
            guard.handler(handler) if handler in self._listening else handler
            for handler in self.space.handlers
        ]

    def _failed(self, plugin: str, where: str, error: Exception) -> None:
        """Take note of what a plugin raised; tell of it once for each extension point."""
        counts = self.findings.failures.setdefault(plugin, Counter())
        counts[where] += 1
        if counts[where] == 1:
            self._warn(f"plugin {plugin} failed in {where}: {describe(error)}")

    def _warn(self, text: str) -> None:
        self.findings.warnings.append(text)

    # What is there.

    @property
    def nodes(self) -> NodeTable:
        """Return the session's node table."""
        return self.space.nodes

    def job(self, key: JobKey | None) -> JobInfo | None:
        """Return a job of the session; none where it, or its queue, does not exist."""
        job = self.space.jobs.get(key) if key is not None else None
        return job if job is not None and self._has_place(job) else None

    def _has_place(self, job: JobInfo) -> bool:
        return job.queue in self.queues and not job.terms.fault

    def trouble(self, job: JobInfo) -> Trouble:
        """Return the record of what keeps the job's tasks from being placed."""
        return self.findings.trouble(job)

    def statement(self) -> Statement:
        """Start a transaction."""
        return Statement(self.space)

    @cached_property
    def peers(self) -> Peers:
        """Return which pods are where, kept up to date from the first time that it is asked for."""
        peers = Peers(self.nodes.columns, self.snapshot.population)

        def place(event: Event, times: int) -> None:
            peers.place(event.cls.signature.presence, event.nodes, times)

        handler = EventHandler(lambda event: place(event, 1), lambda event: place(event, -1))
        self.space.handlers.append(handler)
        return peers

    def listen(self, handler: EventHandler) -> None:
        """Tell a plugin of placements and of what is taken away again."""
        self._listening.append(handler)
        self.space.handlers.append(handler)

    def is_due(self, plugin: str, period_s: float, *, at_once: bool = True) -> bool:
        """
        Return whether a plugin that acts once in a period is to act now, and take note of it.

        The first time is now, or one period from now where it is not to be `at_once`.
        """
        last = self.snapshot.inputs.acted.get(plugin)
        if last is not None and self.now - last < period_s:
            return False
        self.findings.acted[plugin] = self.now
        return at_once or last is not None

    def arguments(self, action: str) -> Arguments:
        """Return the arguments of an action."""
        return self.conf.action(action)

    # Orders, as sort keys.

    def job_key(self, job: JobInfo) -> OrderKey:
        """Return the job's place among jobs."""
        return (*[key(job) for key in self.points.job_order.all], *job.order)

    def queue_key(self, queue: QueueInfo) -> OrderKey:
        """Return the queue's place among queues."""
        return (*[key(queue) for key in self.points.queue_order.all], *queue.order)

    def task_key(self, task: Task) -> OrderKey:
        """Return the task's place among tasks of its job."""
        return (*[key(task) for key in self.points.task_order.all], *task_order(task))

    def sub_job_key(self, job: JobInfo, sub_job: SubJob) -> OrderKey:
        """Return the sub-job's place among those of its job."""
        keys = (key(job, sub_job) for key in self.points.sub_job_order.all)
        return (*keys, sub_job.match_index, sub_job.id)

    def cluster_key(self, cluster: str) -> OrderKey:
        """Return the place of another cluster."""
        return (*(key(cluster) for key in self.points.cluster_order), cluster)

    def victim_key(self, task: Task, preemptor: Task) -> OrderKey:
        """Return the victim's place: smaller keys are evicted first."""
        job, own = self.job(task.job), self.job(preemptor.job)
        if job is None:
            return (0, Reversed(self.task_key(task)))
        queues: OrderKey = ()
        if own is not None:
            queues = self.victim_queue_key(self.queues[job.queue], self.queues[own.queue])
        jobs = tuple(key(job) for key in self.points.job_order)
        return (1, *queues, Reversed(jobs), Reversed(self.task_key(task)))

    def victim_queue_key(self, queue: QueueInfo, own: QueueInfo) -> OrderKey:
        """Return the place of a queue among those that lose to `own`: the last comes first."""
        keys = (key(queue, own) for key in self.points.victim_queue_order)
        return (*keys, Reversed(self.queue_key(queue)))

    # What plugins are told.

    def enqueue(self, job: JobInfo, reason: Reason) -> None:
        """Let a group into its queue."""
        for told in self.points.job_enqueued.all:
            told(job)
        job.phase = "Inqueue"
        self.findings.enqueued.append(Enqueue(job.key, job.uid, reason))

    def admit(self, queue: QueueInfo, cls: TaskClass, n: int) -> None:
        """Tell that so many tasks were let out of the gate of their queue; back, if negative."""
        for told in self.points.admitted:
            told(queue, cls, n)

    def unplaced(self, job: JobInfo) -> None:
        """Tell that a job found no room in its turn."""
        for told in self.points.unplaced:
            told(job)

    def reserve_nodes(self) -> None:
        """Let plugins lock nodes for the target job."""
        for reserve in self.points.reserved_nodes:
            reserve()

    # HyperNodes.

    @cached_property
    def domains(self) -> Domains:
        """Return the HyperNodes, kept up to date from the first time that they are asked for."""
        return Domains(self.snapshot.tree, self.space)

    def within(self, task: Task) -> Ints | None:
        """Return the nodes where a waiting task breaks no hard bound; None where it has none."""
        job = self.space.jobs.get(task.job) if task.job is not None else None
        if job is None or (job.group.spec.network_topology is None and not job.policies):
            return None
        return self.domains.within(job, task.sub_job)

    def gradients(self, job: JobInfo, within: str, purpose: Purpose) -> Gradients:
        """
        Return the hypernodes to try for a job, by the first plugin that has a say.

        Where none has, they are those that keep a hard bound.
        """
        functions = self.points.hyper_node_gradient_for_job.all
        if functions:
            return functions[0](job, within, purpose)
        return self.domains.gradients(job, None, within)

    def sub_job_gradients(
        self, job: JobInfo, sub_job: SubJob | None, within: str, purpose: Purpose
    ) -> Gradients:
        """Return the hypernodes to try for a sub-job, or for a job that is its own."""
        functions = self.points.hyper_node_gradient_for_sub_job.all
        if functions:
            return functions[0](job, sub_job, within, purpose)
        return self.domains.gradients(job, sub_job, within)

    def hyper_node_scores(
        self, job: JobInfo, sub_job: SubJob | None, hypernodes: Sequence[str]
    ) -> list[float]:
        """Return the summed scores of hypernodes for a sub-job, or a job that is its own."""
        rows = [order(job, sub_job, hypernodes) for order in self.points.hyper_node_order]
        return [sum(column) for column in zip(*rows, strict=True)] or [0.0] * len(hypernodes)

    # The end.

    def close(self) -> Plan:
        """Let the plugins have their last word and return what was decided."""
        for name, plugin in self.plugins:
            try:
                plugin.on_session_close(self)
            except Exception as error:
                if not is_added(name):
                    raise
                self._failed(name, "on_session_close", error)
        self._locate()
        closing = Closing(
            self.id, self.now, self.snapshot, self.space, self.findings, self.recalled
        )
        steady = self._is_steady()
        return closing.plan(self.unsettled, self.stranded, steady=steady)

    def _is_steady(self) -> bool:
        """Return whether all that is configured gives answers that depend on the snapshot alone."""
        actions = map(action_named, self.conf.actions)
        return all(is_steady(plugin) for _, plugin in self.plugins) and all(map(is_steady, actions))

    def end(self) -> None:
        """
        Let go of everything: the session is of no use any more.

        Plugins, points, views and the session know each other in circles, and would stay, with the
        node table, until the garbage collector comes by.
        """
        self.views.end()
        self.space.handlers.clear()
        vars(self).clear()

    def _locate(self) -> None:
        """Write down in which HyperNodes the jobs are that are to be in few."""
        for job in self.active:
            if job.group.spec.network_topology is None and not job.policies:
                continue
            standings = self.domains.standings(job)
            if standings.bounds and not job.counts.total.count(_UNDECIDED):
                tree, lowest = self.domains.tree, standings.whole.lowest
                inside = lowest not in (NOWHERE, tree.top)
                self.findings.hypernodes[job.key] = tree.names[lowest] if inside else ""


def _faults(snapshot: Snapshot, jobs: Iterable[JobInfo]) -> Iterator[str]:
    """Yield what is wrong with single objects."""
    yield from (f"{name}: {fault}" for name, fault in snapshot.faults.items())
    for job in jobs:
        for remark in (*job.terms.remarks, job.terms.fault):
            if remark:
                yield f"podgroup {job.key}: {remark}"
