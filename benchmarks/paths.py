"""
How fast pods get from created to bound, against a plain kube-scheduler on the same machine.

    raw        bindings posted as fast as the API server takes them: what nobody can beat
    free       2,000 pods on a plain kube-scheduler
    whole      20 Jobs of 100 pods, submitted, through controllers, session, release and barrier
    pinned     a window of pods, born pinned, for which a plain kube-scheduler is started
    bind       a window of pods that we released, for which our kube-scheduler is started

No kubelet is played meanwhile: a pod's way ends where it is bound, and what comes after would take
the API server's time from whoever is slower.

Runs are interleaved and the medians compared. During the runs of the plain kube-scheduler our
own processes are stopped, and the other way round.
"""

from __future__ import annotations

import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable

from benchmarks.audit import Account
from benchmarks.bed import Bed, Object, a_job, a_pod
from benchmarks.figures import Figure
from pumice.local.cluster import Cluster
from pumice.local.scheduler import STOCK, Scheduler, start_stock_scheduler

NODES = 1_000
PODS = 2_000
GANG = 100
WINDOW = 1_000
ROUNDS = 3
KWOK = "kwok"
BINDING = "pods/binding"
TIMEOUT_S = 180.0
OURS = ("extender", "controllers", "kube-scheduler")
PODS_PATH = "/api/v1/namespaces/{}/pods"
JOBS_PATH = "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs"


def measure(say: Callable[[str], None]) -> list[Figure]:
    """Return the figures of the paths."""
    with Cluster(nodes=NODES, audit_level="Metadata") as cluster:
        cluster.plane.processes.stop(KWOK)
        return _Paths(Bed(cluster), say).figures()


class _Paths:
    def __init__(self, bed: Bed, say: Callable[[str], None]) -> None:
        self.bed = bed
        self.say = say
        self.stock = start_stock_scheduler(bed.cluster.plane)
        self.whole_accounts: list[Account] = []
        self.usage: list[tuple[float, float]] = []
        self.bind_p99: list[float] = []

    def figures(self) -> list[Figure]:
        rates: dict[str, list[float]] = {}
        runs = {
            "free": self._free,
            "whole": self._whole,
            "pinned": self._pinned,
            "bind": self._bind,
        }
        rates["raw"] = [self._raw()]
        for turn in range(ROUNDS):
            for name, run in runs.items():
                rate = run()
                rates.setdefault(name, []).append(rate)
                self.say(f"  round {turn + 1}: {name} {rate:.0f} pods/s")
        middle = {name: statistics.median(found) for name, found in rates.items()}
        return [
            *(Figure.of(f"path {name}", rate, "pods/s") for name, rate in middle.items()),
            Figure.of(
                "whole path ÷ free pods on a plain kube-scheduler",
                middle["whole"] / middle["free"],
                "",
                0.7,
                "more",
            ),
            Figure.of(
                "bind path ÷ pinned pods on a plain kube-scheduler",
                middle["bind"] / middle["pinned"],
                "",
                0.8,
                "more",
            ),
            *self._splits(),
            *self._writes(),
            *self._extender(),
        ]

    # The runs; each returns pods per second.

    def _raw(self) -> float:
        with self.bed.namespace() as ns:
            path = PODS_PATH.format(ns)
            names = [f"p{i:04}" for i in range(PODS)]
            self.bed.create(path, [a_pod(name, "nobody") for name in names])
            began = time.monotonic()
            self.bed.create_each(
                [
                    (f"{path}/{name}/binding", _binding(name, i % NODES))
                    for i, name in enumerate(names)
                ]
            )
            return PODS / (time.monotonic() - began)

    def _free(self) -> float:
        self._only_stock()
        with self.bed.namespace() as ns:
            pods = [a_pod(f"p{i:04}", "default-scheduler") for i in range(PODS)]
            tail = self.bed.tail()
            self.bed.create(PODS_PATH.format(ns), pods)
            tail.wait("create", BINDING, ns, PODS, TIMEOUT_S)
            return PODS / self.bed.account(ns).seconds

    def _whole(self) -> float:
        self._only_ours()
        before = self._cpu()
        with self.bed.namespace() as ns:
            jobs = [a_job(f"j{i:02}", GANG) for i in range(PODS // GANG)]
            tail = self.bed.tail()
            self.bed.create(JOBS_PATH.format(ns), jobs)
            tail.wait("create", BINDING, ns, PODS, TIMEOUT_S)
            account = self.bed.account(ns, "jobs")
            self.whole_accounts.append(account)
            cpu, rss = self._cpu(), self._gauge("process_resident_memory_bytes")
            self.usage.append((cpu - before, rss))
            # The extender was started for this run.
            self.bind_p99.append(self._quantile("pumice_bind_duration_seconds", 0.99))
            return PODS / account.seconds

    def _pinned(self) -> float:
        self._only_stock()
        processes = self.bed.cluster.plane.processes
        processes.stop(STOCK)
        with self.bed.namespace() as ns:
            pods = [
                a_pod(f"p{i:04}", "default-scheduler", f"node-{i % NODES:03}")
                for i in range(WINDOW)
            ]
            self.bed.create(PODS_PATH.format(ns), pods)
            return self._from_start(self.stock, ns)

    def _bind(self) -> float:
        self._only_ours()
        scheduler = self.bed.cluster.scheduler
        if scheduler is None:
            raise RuntimeError("our kube-scheduler was never started")
        self.bed.cluster.plane.processes.stop(scheduler.name)
        with self.bed.namespace() as ns:
            jobs = [a_job(f"j{i:02}", GANG) for i in range(WINDOW // GANG)]
            tail = self.bed.tail()
            self.bed.create(JOBS_PATH.format(ns), jobs)
            tail.wait("patch", "pods", ns, WINDOW, TIMEOUT_S)
            return self._from_start(scheduler, ns)

    def _from_start(self, scheduler: Scheduler, ns: str) -> float:
        """Start a scheduler on waiting pods; count from the moment when it is ready."""
        tail = self.bed.tail()
        self.bed.cluster.plane.processes.restart(scheduler.name)
        scheduler.wait_ready()
        began = time.time()
        tail.wait("create", BINDING, ns, WINDOW, TIMEOUT_S)
        return WINDOW / (max(self.bed.account(ns).bound) - began)

    # Who runs.

    def _only_stock(self) -> None:
        self._run((STOCK,), OURS)

    def _only_ours(self) -> None:
        self._run(OURS, (STOCK,))
        self.bed.cluster.extender.wait_ready()
        self.bed.cluster.controllers.wait_ready()
        if self.bed.cluster.scheduler is not None:
            self.bed.cluster.scheduler.wait_ready()

    def _run(self, on: Iterable[str], off: Iterable[str]) -> None:
        processes = self.bed.cluster.plane.processes
        for name in off:
            if processes.exit_code(name) is None:
                processes.stop(name)
        for name in on:
            if processes.exit_code(name) is not None:
                processes.restart(name)
        if STOCK in on:
            self.stock.wait_ready()

    # Where the time went, and what it cost.

    def _splits(self) -> list[Figure]:
        """Return the median way of a pod in the last run of the whole path."""
        found = self.whole_accounts[-1].splits()
        return [Figure.of(f"  {name}", seconds, "s") for name, seconds in found.items()]

    def _writes(self) -> list[Figure]:
        total: Counter[tuple[str, str, str]] = Counter()
        for account in self.whole_accounts:
            total += account.writes
        pods = PODS * len(self.whole_accounts)
        per_pod = sum(total.values()) / pods
        return [
            Figure.of("API writes a pod, whole path, creation to bound", per_pod, "writes", 3.3),
            *(
                Figure.of(f"  {verb} {resource} by {who}", count / pods, "writes")
                for (verb, resource, who), count in total.most_common()
            ),
        ]

    def _extender(self) -> list[Figure]:
        cpu = statistics.median(cpu for cpu, _ in self.usage)
        rss = max(rss for _, rss in self.usage)
        p99 = statistics.median(self.bind_p99)
        return [
            Figure.of(f"extender CPU for {PODS} pods, whole path", cpu, "s"),
            Figure.of("extender RSS, 1,000 nodes", rss / 2**20, "MiB"),
            Figure.of("bind p99 without the wait for the gang, at most", 1_000 * p99, "ms", 50.0),
        ]

    def _cpu(self) -> float:
        return self._gauge("process_cpu_seconds_total")

    def _gauge(self, name: str) -> float:
        text = self.bed.cluster.extender.get("/metrics")[1].decode()
        found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def _quantile(self, name: str, q: float) -> float:
        """Return an upper bound of a quantile: the edge of the bucket that it falls into."""
        text = self.bed.cluster.extender.get("/metrics")[1].decode()
        pattern = rf'^{name}_bucket{{le="(\S+)"}} (\S+)$'
        buckets = [(float(le), float(n)) for le, n in re.findall(pattern, text, re.MULTILINE)]
        whole = buckets[-1][1] if buckets else 0.0
        return next((le for le, n in buckets if n >= q * whole), 0.0)


def _binding(name: str, node: int) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": f"node-{node:03}"},
    }
