"""
What admission costs: the creation of a Job, and the answer to a review.

    alone      Jobs created with nothing behind the API server but the schema
    webhooks   the same with the webhooks
    policies   the same with the admission policies in their place

One Job after the other, as long as a user waits for it; rounds are interleaved. The controllers
are stopped meanwhile. Reviews of objects of all shapes, most of them wrong in some way, are asked
over TLS by several connections at once, as the API server asks.
"""

from __future__ import annotations

import asyncio
import ssl
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import aiohttp
from hypothesis import HealthCheck, Phase, given, settings

from benchmarks.bed import WRITERS, Bed, Object, a_job
from benchmarks.figures import Figure
from pumice.local.cluster import Cluster
from pumice.local.errors import ApiError
from pumice.local.install import apply, documents, path_of
from pumice.local.paths import manifests
from pumice.local.services import Webhooks
from tests.adapters.webhooks.shapes import reviews
from webhooks.register import KINDS, NAME
from webhooks.table import Webhook

JOBS = 2_000
ROUNDS = 2
SHAPES = 1_000
ASKED = 10_000
TIMEOUT_S = 60.0
JOBS_PATH = "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs"
HEADERS = {"Content-Type": "application/json"}
Question = tuple[str, bytes]


def measure(say: Callable[[str], None]) -> list[Figure]:
    """Return the figures of reviews and of creations."""
    with Cluster(nodes=0, webhooks=True) as cluster:
        for name in ("controllers", "extender", "kube-scheduler"):
            cluster.plane.processes.stop(name)
        if cluster.webhooks is None:
            raise RuntimeError("there are no webhooks")
        return [
            *_reviewed(cluster.webhooks),
            *_Creations(Bed(cluster), cluster.webhooks, say).figures(),
        ]


# Reviews.


def _reviewed(webhooks: Webhooks) -> list[Figure]:
    shapes = _shapes()
    questions = [shapes[i % len(shapes)] for i in range(ASKED)]
    began = time.monotonic()
    answers = asyncio.run(_ask(f"https://127.0.0.1:{webhooks.tls_port}", questions))
    rate = ASKED / (time.monotonic() - began)
    failed = sum(status != 200 for status, _ in answers)
    seconds = [taken for _, taken in answers]
    return [
        Figure.of(f"of {ASKED:,} reviews of all shapes not answered in order", failed, "", 0),
        Figure.of("  p99", 1_000 * _p99(seconds), "ms"),
        Figure.of("  throughput", rate, "reviews/s"),
    ]


def _shapes() -> Sequence[Question]:
    """Return questions, the same ones every time."""
    found: list[Question] = []

    @settings(
        max_examples=SHAPES,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(reviews())
    def take(review: tuple[Webhook, bytes]) -> None:
        webhook, body = review
        found.append((webhook.path, body))

    take()
    return found


async def _ask(url: str, questions: Sequence[Question]) -> list[tuple[int, float]]:
    """Ask everything; return status and seconds of each answer."""
    trust = ssl.create_default_context()
    trust.check_hostname = False
    trust.verify_mode = ssl.CERT_NONE
    waiting = iter(questions)
    answers = []
    async with aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(ssl=trust)) as session:

        async def keep_asking() -> None:
            for path, body in waiting:
                began = time.monotonic()
                async with session.post(path, data=body, headers=HEADERS) as answer:
                    await answer.read()
                answers.append((answer.status, time.monotonic() - began))

        async with asyncio.TaskGroup() as group:
            for number in range(WRITERS):
                group.create_task(keep_asking(), name=f"asker {number}")
    return answers


# Creations.


class _Creations:
    def __init__(self, bed: Bed, webhooks: Webhooks, say: Callable[[str], None]) -> None:
        self.bed = bed
        self.webhooks = webhooks
        self.say = say

    def figures(self) -> list[Figure]:
        modes = {"alone": self._alone, "webhooks": self._webhooks, "policies": self._policies}
        taken: dict[str, list[float]] = {name: [] for name in modes}
        self._take_webhooks_away()
        for turn in range(ROUNDS):
            for name, mode in modes.items():
                with mode():
                    seconds = self._create(JOBS // ROUNDS)
                taken[name] += seconds
                self.say(f"  round {turn + 1}: {name} {1_000 * statistics.median(seconds):.1f} ms")
        middle = {name: 1_000 * statistics.median(seconds) for name, seconds in taken.items()}
        return [
            Figure.of(f"creation of a Job, {JOBS:,} one by one, alone", middle["alone"], "ms"),
            *(
                figure
                for name in ("webhooks", "policies")
                for figure in (
                    Figure.of(f"  more with {name}", middle[name] - middle["alone"], "ms"),
                    Figure.of(f"  p99 with {name}", 1_000 * _p99(taken[name]), "ms"),
                )
            ),
        ]

    def _create(self, count: int) -> list[float]:
        """Create Jobs; return the seconds of each."""
        seconds = []
        with self.bed.namespace() as ns:
            for number in range(count):
                body = a_job(f"j{number:04}", 10)
                began = time.monotonic()
                self.bed.api.post(JOBS_PATH.format(ns), body)
                seconds.append(time.monotonic() - began)
        return seconds

    # Who has a say.

    @contextmanager
    def _alone(self) -> Iterator[None]:
        yield

    @contextmanager
    def _webhooks(self) -> Iterator[None]:
        self.webhooks.start()
        self._until(self._is_checked)
        yield
        self._take_webhooks_away()

    def _take_webhooks_away(self) -> None:
        self.webhooks.stop()
        for resource in KINDS.values():
            self.bed.api.delete(resource.path(name=NAME))
        self._until(lambda: not self._is_checked())

    @contextmanager
    def _policies(self) -> Iterator[None]:
        directory = manifests() / "admission" / "policies"
        bodies = [body for file in sorted(directory.glob("*.yaml")) for body in documents(file)]
        for body in bodies:
            apply(self.bed.api, body)
        self._until(self._is_checked)
        yield
        for body in reversed(bodies):
            self.bed.api.delete(path_of(body))
        self._until(lambda: not self._is_checked())

    def _is_checked(self) -> bool:
        """Tell whether a Job is refused that only the schema would let pass."""
        body: Object = a_job("wrong", 1)
        body["spec"]["tasks"][0]["template"]["spec"]["containers"][0].pop("image")
        try:
            self.bed.api.post(JOBS_PATH.format("default") + "?dryRun=All", body)
        except ApiError:
            return True
        return False

    def _until(self, check: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not check():
            if time.monotonic() > deadline:
                raise TimeoutError("admission did not change")
            time.sleep(0.1)


def _p99(seconds: Sequence[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.99)]
