"""
Fencing: a binding that an earlier process left on its way cannot cross what is decided now.

A process that dies may have sent bindings that the API server has not looked at yet. Where a pod
is pinned, it goes to that node or nowhere. But kube-scheduler, whose call was lost, may take
another node now for one that is nominated; and which cards a pod gets stands nowhere but in its
binding, so that the next process chooses anew. An old binding that is accepted after that would
fill a node beyond its room, or give cards away twice.

So such a binding presumes the resourceVersion of its pod (see `posting`), and a process that has
just been started writes a token of its own into every pod that may have one on its way, before it
decides anything. From then on the old binding is refused (409); one that was accepted before is
seen in the answer to the write.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Mapping

from extender.model import Model
from pumice.core import names
from pumice.core.api.core import Pod
from pumice.core.ids import PodUid
from pumice.core.ledger import Arm
from pumice.kube.errors import Disconnected, ServerError, TooManyRequests
from pumice.kube.outbox import Merge, Outbox, Outcome
from pumice.kube.resources import PODS

log = logging.getLogger(__name__)


async def fence(model: Model, outbox: Outbox) -> None:
    """
    Write the token into all those pods; return when the answers are in the model.

    It waits for as long as the API server is away. A pod that may not be written to is left out.
    """
    body = {"metadata": {"annotations": {names.FENCE: uuid.uuid4().hex}}}
    left = [pod for uid, pod in model.cluster.pods.items() if _may_be_under_way(model, uid, pod)]
    while left:
        outcomes = await asyncio.gather(*(_written(outbox, pod, body) for pod in left))
        left = [pod for pod, out in zip(left, outcomes, strict=True) if _is_unsure(pod, out)]


def _may_be_under_way(model: Model, uid: PodUid, pod: Pod) -> bool:
    """Tell whether a pod waits for such a binding; kube-scheduler binds none with a gate."""
    if pod.spec.node_name or pod.spec.scheduling_gates:
        return False
    entry = model.ledger.get(uid)
    is_nominated = entry is not None and entry.arm is not Arm.PIN
    return is_nominated or model.cluster.ask(uid) is not None


def _written(outbox: Outbox, pod: Pod, body: Mapping[str, object]) -> asyncio.Future[Outcome]:
    answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    meta = pod.metadata
    write = Merge(resource=PODS, namespace=meta.namespace, name=meta.name, uid=meta.uid, body=body)

    def done(outcome: Outcome) -> None:
        if not answer.done():
            answer.set_result(outcome)

    outbox.put(write, done)
    return answer


def _is_unsure(pod: Pod, outcome: Outcome) -> bool:
    """Tell whether the write is to be repeated."""
    if isinstance(outcome.error, Disconnected | ServerError | TooManyRequests):
        return True
    if outcome.error is not None:
        log.info("pod %s is not fenced: %s", pod.metadata.key, outcome.error)
    return False
