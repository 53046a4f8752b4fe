"""
A gang parked in `bind`: all members have arrived but the last, whose release is held back.

    async with behind_proxy(bed) as proxy, bed.auditor():
        with park(bed, proxy) as gang:
            await gang.is_parked()
            ...                     # something happens to a node
            await gang.let_go()
        await gang.starts_but_for(gang.last)

The proxy keeps the patch that would take the last member's gate off. What happens meanwhile
happens to a gang whose calls are open and of which nothing is bound.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from tests.acceptance.bed import Bed
from tests.acceptance.faults import Hold
from tests.acceptance.objects import a_job
from tests.acceptance.pages import Entries, Pages
from tests.acceptance.proxy import FaultProxy

NAME = "gang"
SIZE = 4
NODE_CPU = 4
MEMBER_CPU = 3
HELD_S = 10.0
"""How long the last member's release is held back at least."""
ELSEWHERE_S = 10.0
"""How soon a gang that lost a member has to be bound with a new one."""
RESTART_ON_EVICTION = {"event": "PodEvicted", "action": "RestartJob"}


@asynccontextmanager
async def behind_proxy(bed: Bed, *arguments: str) -> AsyncIterator[FaultProxy]:
    """Run the extender behind a proxy; afterwards it talks to the API server itself again."""
    extender, plane = bed.cluster.extender, bed.plane
    async with FaultProxy(plane.kubeconfig(extender.user)) as proxy:
        through = plane.kubeconfig(extender.user, server=proxy.url)
        try:
            await bed.aside(extender.start, *arguments, kubeconfig=through)
            yield proxy
        finally:
            await bed.aside(extender.start)


@dataclass
class Parked:
    """The gang, and what was known of it while it was parked."""

    bed: Bed
    hold: Hold
    pages: Pages
    members: list[str]
    #: the ledger when all but the last had arrived
    before: Entries = field(default_factory=dict)

    @property
    def first(self) -> str:
        """The member that was created first; it has arrived."""
        return self.members[0]

    @property
    def last(self) -> str:
        """The member that is held back."""
        return self.members[-1]

    async def is_parked(self) -> None:
        """Wait until all but the last have arrived, and see where each is to go."""
        self.before = await self.pages.reaches(self._is_parked, 20, "the gang is parked")

    async def stays_parked(self) -> None:
        """See that nothing is bound for as long as the last member is held back."""
        await self.bed.never(lambda: self.bed.bound(NAME), HELD_S, "a member is bound")

    async def let_go(self) -> None:
        """Let the last member's release through, after the time for which it has to be held."""
        await self.stays_parked()
        assert self.hold.waiting == 1, "the release is no longer held back"
        self.hold.release()

    async def starts_but_for(self, lost: str) -> None:
        """See the gang start soon: one is replaced, the others keep uid and node."""
        bed, size = self.bed, len(self.members)
        await bed.until(lambda: len(bed.bound(NAME)) == size, ELSEWHERE_S, "the gang is bound")
        await bed.until(lambda: bed.job_phase(NAME) == "Running", 20, "the Job is Running")
        now = {
            pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["spec"]["nodeName"])
            for pod in bed.pods_of(NAME)
        }
        then = {name: (entry.uid, entry.node) for name, entry in self.before.items()}
        new, old = now.pop(lost), then.pop(lost)
        assert now == then
        assert new[0] != old[0], f"{lost} was not replaced"
        assert new[1] != old[1], f"{lost} is again on {old[1]}"

    def no_policy_fired(self) -> None:
        """See that the Job was not restarted, and that no retry was spent."""
        status = (self.bed.job(NAME) or {})["status"]
        assert (status.get("retryCount", 0), status.get("version", 0)) == (0, 0)

    def _is_parked(self, ledger: Entries) -> bool:
        states = [ledger[name].state for name in self.members if name in ledger]
        return states == ["Arrived"] * (len(self.members) - 1) + ["Released"]


@contextmanager
def park(
    bed: Bed, proxy: FaultProxy, *, size: int = SIZE, cpu: int = MEMBER_CPU
) -> Iterator[Parked]:
    """Create a gang, and hold the release of its last member back until the block ends."""
    members = [f"{NAME}-worker-{index}" for index in range(size)]
    path = rf"/namespaces/{bed.namespace}/pods/{members[-1]}$"
    with proxy.hold(method="PATCH", path=path, body=_takes_gate_off) as hold:
        policies = [RESTART_ON_EVICTION]
        bed.create(a_job(NAME, replicas=size, min_available=size, cpu=cpu, policies=policies))
        yield Parked(bed, hold, Pages(bed), members)


def _takes_gate_off(body: bytes) -> bool:
    return b'"schedulingGates"' in body
