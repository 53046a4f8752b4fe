"""Pod patches on their way to the API server."""

from __future__ import annotations

from typing import Any

from extender.model import Model
from extender.releases import Releases
from extender.writes import OutboxWrites
from pumice.core.api.core import Node, Pod
from pumice.core.ids import PodUid
from pumice.kube.outbox import Outbox
from pumice.kube.resources import NODES, PODS
from tests.adapters.kube.conftest import running
from tests.fakeapi import FakeApi, ManualClock

NODE: dict[str, Any] = {
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}
POD: dict[str, Any] = {
    "metadata": {"name": "p"},
    "spec": {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]},
}


async def test_a_nomination_that_is_on_its_way_already_is_not_sent_twice() -> None:
    clock = ManualClock()
    api = FakeApi(clock)
    api.add(NODES, NODE)
    api.add(PODS, POD)
    async with api.client() as client:
        model = Model(now=clock.monotonic)

        def shown(pod: Pod) -> None:
            model.set_pod(pod)

        outbox = Outbox(client, observe={PODS: shown}, clock=clock)
        releases = Releases(model, OutboxWrites(outbox))
        node: Node = await client.get(NODES, "", "n1")
        model.set_node(node)
        pod = await client.get(PODS, "default", "p")
        model.set_pod(pod)
        uid = PodUid(pod.metadata.uid)
        model.adopt(pod, "n1")
        api.calls.clear()
        async with running(outbox.run()):
            releases.nominate(uid)
            model.withdraw(uid)
            model.adopt(pod, "n1")
            releases.nominate(uid)
            await outbox.drain()
            releases.nominate(uid)
            await outbox.drain()

    stored = api.get(PODS, "default", "p") or {}
    assert stored["status"]["nominatedNodeName"] == "n1"
    assert [call.method for call in api.calls] == ["PATCH"]
