"""
A gang parked in `bind`: all members have arrived but the last, whose release is held back.

    async with behind_proxy(bed) as proxy, bed.auditor() as auditor:
        with park(bed, proxy, auditor) as gang:
            await gang.is_parked()
            ...                     # something happens to a node
            await gang.let_go()
        await gang.starts_but_for("gang-worker-3")

The proxy keeps the patch that would take the last member's gate off. What happens meanwhile
happens to a gang whose calls are open and of which nothing is bound.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from tests.acceptance.bed import Bed
from tests.acceptance.faults import Hold
from tests.acceptance.objects import Object, a_job
from tests.acceptance.pages import Entries, Pages
from tests.acceptance.proxy import FaultProxy
from tests.auditor.run import Auditor

NAME = "gang"
SIZE = 4
SPARE_NODES = 3
NODE_CPU = 4
MEMBER_CPU = 3
HELD_S = 10.0
"""How long the last member's release is held back at least."""
ELSEWHERE_S = 10.0
"""How soon a gang that lost a member has to run with a new one."""
MEMBERS = [f"{NAME}-worker-{index}" for index in range(SIZE)]
FIRST, LAST = MEMBERS[0], MEMBERS[-1]
RESTART_ON_EVICTION = {"event": "PodEvicted", "action": "RestartJob"}


@asynccontextmanager
async def behind_proxy(bed: Bed, *arguments: str) -> AsyncIterator[FaultProxy]:
    """Run the extender behind a proxy; afterwards it talks to the API server itself again."""
    extender, plane = bed.cluster.extender, bed.plane
    async with FaultProxy(plane.kubeconfig(extender.user)) as proxy:
        through = plane.kubeconfig(extender.user, server=proxy.url)
        start = bed.aside(extender.start, *arguments, kubeconfig=through)
        try:
            await start
            yield proxy
        finally:
            await bed.aside(extender.start)


@dataclass
class Parked:
    """The gang, and what was known of it while it was parked."""

    bed: Bed
    hold: Hold
    auditor: Auditor
    pages: Pages
    #: the ledger when all but the last had arrived
    before: Entries = field(default_factory=dict)

    async def is_parked(self) -> None:
        """Wait until all but the last have arrived, and see where each is to go."""
        self.before = await self.pages.reaches(_all_but_the_last_arrived, 20, "the gang is parked")

    async def stays_parked(self) -> None:
        """See that nothing is bound for as long as the last member is held back."""
        # The ledger knows of a release that the API server, for the proxy's doing, does not.
        async with self.auditor.paused():
            await self.bed.never(lambda: self.bed.bound(NAME), HELD_S, "a member is bound")

    async def let_go(self) -> None:
        """Let the last member's release through, after the time for which it has to be held."""
        await self.stays_parked()
        assert self.hold.waiting == 1, "the release is no longer held back"
        self.hold.release()

    async def starts_but_for(self, lost: str) -> None:
        """See the gang start soon, one member replaced, every other with the uid and node it had."""
        bed = self.bed
        await bed.until(lambda: len(bed.bound(NAME)) == SIZE, ELSEWHERE_S, "the gang is bound")
        await bed.until(lambda: bed.job_phase(NAME) == "Running", 20, "the Job is Running")
        now = {_name(pod): (pod["metadata"]["uid"], pod["spec"]["nodeName"]) for pod in self.pods()}
        then = {name: (placed.uid, placed.node) for name, placed in self.before.items()}
        new, old = now.pop(lost), then.pop(lost)
        assert now == then
        assert new[0] != old[0], f"{lost} was not replaced"
        assert new[1] != old[1], f"{lost} is again on {old[1]}"

    def pods(self) -> list[Object]:
        """Return the gang's pods."""
        return self.bed.pods_of(NAME)

    def no_policy_fired(self) -> None:
        """See that the Job was not restarted, and no retry of its spent."""
        status = (self.bed.job(NAME) or {})["status"]
        assert (status.get("retryCount", 0), status.get("version", 0)) == (0, 0)


@contextmanager
def park(bed: Bed, proxy: FaultProxy, auditor: Auditor) -> Iterator[Parked]:
    """Create nodes and a gang, and hold the release of its last member back."""
    bed.nodes(SIZE + SPARE_NODES, cpu=NODE_CPU)
    path = rf"/namespaces/{bed.namespace}/pods/{LAST}$"
    with proxy.hold(method="PATCH", path=path, body=_takes_gate_off) as hold:
        bed.create(
            a_job(
                NAME,
                replicas=SIZE,
                min_available=SIZE,
                cpu=MEMBER_CPU,
                policies=[RESTART_ON_EVICTION],
            )
        )
        yield Parked(bed, hold, auditor, Pages(bed))


def _takes_gate_off(body: bytes) -> bool:
    return b'"schedulingGates"' in body


def _all_but_the_last_arrived(ledger: Entries) -> bool:
    states = [ledger[name].state for name in MEMBERS if name in ledger]
    return states == ["Arrived"] * (SIZE - 1) + ["Released"]


def _name(pod: Object) -> str:
    name: str = pod["metadata"]["name"]
    return name
