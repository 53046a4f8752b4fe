"""Jobs whose tasks are split: partitions as sub-groups of the PodGroup, and restarted alone."""

from __future__ import annotations

import pytest

from pumice.core import names
from pumice.kube.resources import JOBS
from tests.adapters.controllers.job_world import JobWorld
from tests.adapters.controllers.world import Json
from tests.unit.jobs.builders import template

TOPOLOGY = {"mode": "soft", "highestTierName": "zone"}
WITHIN = {"mode": "hard", "highestTierAllowed": 1}


class PartitionWorld(JobWorld):
    """A world with a Job of two partitions of two pods, and a pod without any."""

    def submit_partitions(self, **policy: str) -> Json:
        parts = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}
        tasks = [
            {
                "name": "w",
                "replicas": 4,
                "template": template("1"),
                "partitionPolicy": {**parts, "networkTopology": WITHIN},
                "policies": [{"event": "PodFailed", **policy}],
            },
            {"name": "m", "replicas": 1, "template": template("1")},
        ]
        spec = {"tasks": tasks, "networkTopology": TOPOLOGY}
        return self.api.add(JOBS, {"metadata": {"name": "j"}, "spec": spec}, "ns")

    async def until_new(self, before: dict[str, str]) -> set[str]:
        """Wait until a whole Job runs again, and return which pods are new."""
        await self.until(lambda: self.status.get("retryCount"))
        await self.finish()
        await self.until(lambda: len(self.pods) == 5)
        self.set_phase("Running")
        await self.until(lambda: self.phase == "Running" and self.status["running"] == 5)
        return {name for name, uid in self.uids.items() if before[name] != uid}


@pytest.fixture
def world() -> PartitionWorld:
    return PartitionWorld()


async def test_partitions_are_sub_groups_of_the_group_and_labels_of_the_pods(
    world: PartitionWorld,
) -> None:
    world.submit_partitions(action="RestartPartition")
    async with world.running():
        await world.until_running(pods=5)
        (group,) = world.groups
        assert group["spec"]["networkTopology"] == TOPOLOGY
        assert group["spec"]["minMember"] == 3
        assert group["spec"]["minTaskMember"] == {"w": 2, "m": 1}
        (policy,) = group["spec"]["subGroupPolicy"]
        assert policy == {
            "name": "w",
            "networkTopology": {"highestTierAllowed": 1},
            "subGroupSize": 2,
            "minSubGroups": 1,
            "labelSelector": {"matchLabels": {names.TASK_SPEC: "w"}},
            "matchLabelKeys": [names.PARTITION_ID],
        }
        labels = {name: pod["metadata"]["labels"] for name, pod in world.pods.items()}
        assert {name: got.get(names.PARTITION_ID) for name, got in labels.items()} == {
            "j-w-0": "0", "j-w-1": "0", "j-w-2": "1", "j-w-3": "1", "j-m-0": None,
        }  # fmt: skip

        await world.quiet()
        world.writes()
        world.annotate("j-w-0", note="x")
        await world.clock.advance(30)
        assert world.writes() == [], "the group is as it should be"


RESTARTS = {
    "a partition": ("RestartPartition", {"j-w-2", "j-w-3"}),
    "a pod": ("RestartPod", {"j-w-3"}),
    "a task": ("RestartTask", {"j-w-0", "j-w-1", "j-w-2", "j-w-3"}),
}


@pytest.mark.parametrize(("action", "want"), RESTARTS.values(), ids=RESTARTS.keys())
async def test_what_a_failed_pod_takes_along(
    world: PartitionWorld, action: str, want: set[str]
) -> None:
    world.submit_partitions(action=action)
    async with world.running():
        await world.until_running(pods=5)
        before, (group,) = world.uids, world.groups
        world.set_phase("Failed", "j-w-3")

        assert await world.until_new(before) == want
        assert world.groups[0]["metadata"]["uid"] == group["metadata"]["uid"]
        assert (world.status["retryCount"], world.status.get("version", 0)) == (1, 0)


async def test_a_pod_without_partition_restarts_none(world: PartitionWorld) -> None:
    world.submit_partitions(action="AbortJob")
    job = world.job
    policies = [{"event": "PodFailed", "action": "RestartPartition"}]
    world.api.put(JOBS, {**job, "spec": {**job["spec"], "policies": policies}})
    async with world.running():
        await world.until_running(pods=5)
        before = world.uids
        world.set_phase("Failed", "j-m-0")
        await world.quiet()
        assert (world.uids, world.phase) == (before, "Running")
        assert world.status.get("retryCount", 0) == 0
