"""Letting pods out of the gate of their queue, as sessions decide it."""

from __future__ import annotations

from dataclasses import dataclass

from extender.model import Model
from extender.writes import OutboxWrites
from pumice.core import names
from pumice.core.plan import Plan
from pumice.core.steering import admit_patch
from pumice.kube.resources import PODS


@dataclass(frozen=True, slots=True)
class Admissions:
    """Takes the gates off that are the last ones of their pods."""

    model: Model
    writes: OutboxWrites

    def enter(self, plan: Plan) -> None:
        """Send what a plan says, but for pods of which a write is still to be answered."""
        for admitted in plan.admitted:
            job = self.model.cluster.jobs.get(admitted.job)
            if job is None or job.uid != admitted.group_uid:
                continue
            for uid in admitted.pods:
                pod = self.model.pending.get(uid)
                if pod is None:
                    continue
                gates = [gate.name for gate in pod.spec.scheduling_gates or ()]
                busy = self.writes.outbox.pending(PODS, pod.metadata.namespace, pod.metadata.name)
                if gates == [names.QUEUE_ALLOCATION_GATE] and not busy:
                    self.writes.patch(pod, admit_patch(pod))
