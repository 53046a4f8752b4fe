"""Pod patches of the extender, put into the outbox: each presumes the pod's uid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pumice.core.api.core import Pod
from pumice.core.steering import Patch
from pumice.kube.outbox import Merge, MergeByKey, Outbox, Outcome, Unless
from pumice.kube.resources import PODS

Failed = Callable[[Exception], None]


@dataclass(frozen=True, slots=True)
class OutboxWrites:
    """`PodWrites` on an outbox; answers reach the cache through the outbox's observers."""

    outbox: Outbox

    def patch(self, pod: Pod, patch: Patch, failed: Failed | None = None) -> None:
        """Patch the pod."""

        def done(outcome: Outcome) -> None:
            if outcome.error is not None and failed is not None:
                failed(outcome.error)

        self.outbox.put(_merge(pod, patch), done)

    def patch_status(self, pod: Pod, patch: Patch, unless: Unless) -> None:
        """Patch the pod's status, unless that is needless by the time it is sent."""
        self.outbox.put(_merge(pod, patch, "status"), unless=unless)

    def set_condition(self, pod: Pod, condition: Patch) -> None:
        """Set one condition and leave the others."""
        meta = pod.metadata
        body = {"status": {"conditions": [condition]}}
        self.outbox.put(
            MergeByKey(
                resource=PODS,
                namespace=meta.namespace,
                name=meta.name,
                uid=meta.uid,
                body=body,
                subresource="status",
            )
        )


def _merge(pod: Pod, patch: Patch, subresource: str = "") -> Merge:
    meta = pod.metadata
    return Merge(
        resource=PODS,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        body=patch,
        subresource=subresource,
    )
