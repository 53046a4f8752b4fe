"""
resourcequota: a group is let in only if its minimum stays within its namespace's quotas.

For each ResourceQuota, what is used, what was let in before in this session, and the group's
minimum are added up and compared with `hard`, in the names that both have. A group without a
minimum, and a namespace without quotas, pass. Scopes of quotas are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping

from pumice.core import quantity, quota
from pumice.core.api.core import ResourceList
from pumice.core.conf import Arguments
from pumice.core.extension import Vote
from pumice.core.model.jobs import JobInfo
from pumice.core.plan import Reason
from pumice.core.quota import Usage
from pumice.core.session import Session

NAME = "resourcequota"


class ResourceQuotas:
    """The plugin. It has no arguments."""

    name = NAME
    steady = True

    def __init__(self, args: Arguments) -> None:
        #: namespace -> minima of the groups that were let in
        self.pending: dict[str, Usage] = {}
        #: namespace -> (hard, used) of each quota
        self.quotas: dict[str, list[tuple[Usage, Usage]]] = {}

    def on_session_open(self, ssn: Session) -> None:
        """Read the quotas; one that is malformed is told of, and not looked at."""
        for namespace, named in ssn.snapshot.inputs.quotas.items():
            for name, found in named.items():
                try:
                    pair = (_exact(found.status.hard), _exact(found.status.used))
                except quantity.QuantityError as fault:
                    ssn.findings.warnings.append(f"resourcequota {namespace}/{name}: {fault}")
                    continue
                self.quotas.setdefault(namespace, []).append(pair)
        ssn.points.job_enqueueable[NAME] = self.enqueueable
        ssn.points.job_enqueued[NAME] = self.enqueued

    def on_session_close(self, ssn: Session) -> None:
        """Say nothing."""

    def enqueueable(self, job: JobInfo) -> tuple[Vote, Reason | None]:
        """Vote on whether the group's minimum stays within every quota of its namespace."""
        least, namespace = _minimum(job), job.group.metadata.namespace
        for hard, used in self.quotas.get(namespace, ()) if least else ():
            wanted = {name: amount for name, amount in least.items() if name in hard}
            taken = {name: used.get(name, 0) for name in wanted}
            quota.add(taken, _only(self.pending.get(namespace, {}), wanted))
            if any(taken[name] + amount > hard[name] for name, amount in wanted.items()):
                texts = (_text(amounts) for amounts in (wanted, taken, _only(hard, wanted)))
                requested, in_use, limited = texts
                message = (
                    "resource quota insufficient, "
                    f"requested: {requested}, used: {in_use}, limited: {limited}"
                )
                numbers = {f"minimum {name}": float(a) for name, a in wanted.items()}
                numbers |= {f"taken {name}": float(a) for name, a in taken.items()}
                numbers |= {f"limit {name}": float(hard[name]) for name in wanted}
                return Vote.REJECT, Reason("enqueue", NAME, message, numbers)
        return Vote.PERMIT, None

    def enqueued(self, job: JobInfo) -> None:
        """Count a group that was let in."""
        if least := _minimum(job):
            quota.add(self.pending.setdefault(job.group.metadata.namespace, {}), least)


def _minimum(job: JobInfo) -> Usage:
    """Return the group's minimum by the names of quotas, in which its own `minResources` is."""
    return _exact(job.group.spec.min_resources)


def _exact(amounts: ResourceList | None) -> Usage:
    return {name: quantity.parse(amount) for name, amount in (amounts or {}).items()}


def _only(amounts: Mapping[str, quantity.Exact], of: Mapping[str, quantity.Exact]) -> Usage:
    return {name: amount for name, amount in amounts.items() if name in of}


def _text(amounts: Usage) -> str:
    entries = quota.resource_list(amounts).items()
    return f"map[{' '.join(f'{name}:{amount}' for name, amount in entries)}]"
