"""Two replicas of the controllers, and who of them leads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from pumice.core import names
from pumice.local.watching import Watched
from tests.acceptance.bed import Bed

LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases"
DURATION_S = 3
TAKEOVER_S = DURATION_S + 5
TERMS = (
    "--leader-elect=true",
    f"--leader-elect-lease-duration={DURATION_S}s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=300ms",
)
FIRST, SECOND = "controllers", "controllers-2"
PROGRAM = ("-m", "controllers")


class Replicas:
    """Both replicas, started in place of the one that the cluster has."""

    def __init__(
        self, bed: Bed, program: Sequence[str] = PROGRAM, env: Mapping[str, str] = {}
    ) -> None:
        self.bed = bed
        self.processes = bed.plane.processes
        self.leases = Watched(bed.api, LEASES, changed=bed.changed).start()
        controllers = bed.cluster.controllers
        before = self.holder
        controllers.stop()
        credentials = f"--kubeconfig={bed.plane.kubeconfig(controllers.user)}"
        argv = [sys.executable, *program, credentials, *controllers.arguments(), *TERMS]
        self.processes.start(FIRST, argv, env)
        self.wait_for(lambda: self.holder not in ("", before), "the first leads")
        self.holders = {self.holder: FIRST}
        elsewhere = f"--healthz=127.0.0.1:{bed.plane.ports.claim()}"
        self.processes.start(SECOND, [*argv, elsewhere], env)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def holder(self) -> str:
        lease = self.leases.get(f"{names.NAMESPACE}/pumice-controllers", {})
        return str(lease.get("spec", {}).get("holderIdentity") or "")

    @property
    def leader(self) -> str:
        """Return which of the processes leads; each start of one is another holder."""
        if self.holder not in self.holders:
            *_, before = self.holders.values()
            self.holders[self.holder] = SECOND if before == FIRST else FIRST
        return self.holders[self.holder]

    def wait_for(self, check: Callable[[], object], what: str, timeout_s: float = 30) -> float:
        return self.bed.wait_for(check, timeout_s, what)

    def hand_over(self, number: int) -> tuple[str, float]:
        """Send the leader a signal; return which it was, and how long the other took."""
        leader, holder = self.leader, self.holder
        self.processes.kill(leader, number)
        after_s = self.wait_for(
            lambda: self.holder not in ("", holder), "the other leads", TAKEOVER_S
        )
        assert self.leader != leader
        return leader, after_s

    def stop(self) -> None:
        self.leases.stop()
        self.processes.stop(SECOND)
