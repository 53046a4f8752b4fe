"""T8: what kube-scheduler or the commit check refuses is replaced, alone, and no policy fires."""

from __future__ import annotations

import pytest

from tests.acceptance.bed import Bed
from tests.acceptance.parked import NAME, NODE_CPU, SIZE, behind_proxy, park

pytestmark = pytest.mark.cluster
LAYOUTS = ("own", "shared")

NODES = 7


async def test_a_member_whose_node_is_cordoned_starts_elsewhere(bed: Bed) -> None:
    bed.nodes(NODES, cpu=NODE_CPU)
    async with behind_proxy(bed) as proxy, bed.auditor():
        with park(bed, proxy) as gang:
            await gang.is_parked()
            bed.cordon(gang.before[gang.last].node)
            await gang.let_go()

        await gang.starts_but_for(gang.last)
        gang.no_policy_fired()


async def test_an_arrived_member_whose_node_shrank_starts_elsewhere(bed: Bed) -> None:
    bed.nodes(NODES, cpu=NODE_CPU)
    async with behind_proxy(bed) as proxy, bed.auditor():
        with park(bed, proxy) as gang:
            await gang.is_parked()
            bed.resize(gang.before[gang.first].node, cpu="1")
            await gang.let_go()

        await gang.starts_but_for(gang.first)
        gang.no_policy_fired()


async def test_without_the_barrier_the_gang_is_torn_apart_and_the_auditor_says_so(
    bed: Bed,
) -> None:
    bed.nodes(NODES, cpu=NODE_CPU)
    async with (
        behind_proxy(bed, "--barrier=off") as proxy,
        bed.auditor() as auditor,
    ):
        with park(bed, proxy) as gang:
            await bed.until(lambda: len(bed.bound(NAME)) == SIZE - 1, 20, "all but the last bound")
            with pytest.raises(AssertionError, match="a member is bound"):
                await gang.stays_parked()
            await auditor.wait_for_objection("A")
        report = await auditor.stop()

    (violation,) = report.of("A")
    assert violation.sentence.startswith(f"gang {bed.namespace}/{NAME}-")
    assert f"showed {SIZE - 1} of its minimum of {SIZE} for" in violation.sentence
    assert [v.rule for v in report.violations] == ["A"]
