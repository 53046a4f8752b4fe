"""
`pumice release`: let every pod go that we hold, so that none waits for a Pumice that is not there.

The gate is removed and nothing else is done: whichever scheduler the pod names takes it from
there. Gates of others stay. The server merges the gates by name, so removing ours cannot undo
what the owner of another does meanwhile.

Pods are listed again until none is held: some may have been made meanwhile, and what failed is
tried again.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kubernetes.aio.config import ConfigException

from pumice.core import names
from pumice.core.api.core import Pod
from pumice.core.steering import is_held
from pumice.kube.client import Client, Preconditions, Selector
from pumice.kube.clock import Clock, SystemClock
from pumice.kube.config import connect
from pumice.kube.errors import Conflict, KubeError, NotFound
from pumice.kube.patches import StrategicPatch
from pumice.kube.resources import PODS
from pumice.kube.retry import wait_s

PASSES: Final = 6
IN_FLIGHT: Final = 32
UNBOUND: Final = "spec.nodeName="
"""Field selector of pods without a node: no other can be held."""
UNGATE: Final = StrategicPatch(
    {"spec": {"schedulingGates": [{"name": names.GATE_HELD, "$patch": "delete"}]}}
)

Say = Callable[[str], None]


@dataclass(slots=True)
class Released:
    """What came of it, by `namespace/name`."""

    released: set[str] = field(default_factory=set)
    #: released by us, and held by gates of others
    gated: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    #: how many are held still
    left: int = 0


class Releasing:
    """Releases the held pods of a cluster, or of one namespace."""

    def __init__(
        self, client: Client, say: Say, *, namespace: str = "", clock: Clock | None = None
    ) -> None:
        self._client = client
        self._say = say
        self._select = Selector(namespace=namespace, fields=UNBOUND)
        self._clock = clock or SystemClock()
        self.done = Released()

    async def held(self) -> list[Pod]:
        """Return the pods that we hold, by name."""
        found = await self._client.list(PODS, self._select)
        return sorted(filter(is_held, found), key=lambda pod: pod.metadata.key)

    async def run(self) -> Released:
        """Release all, and tell of each; raises KubeError where the pods cannot be listed."""
        for number in range(PASSES):
            pods = await self.held()
            self.done.left = len(pods)
            if not pods:
                self.done.failed.clear()
                break
            if number:
                await self._clock.sleep(wait_s(number, base_s=0.1, cap_s=2.0))
            await self._release_all(pods)
        for key, error in sorted(self.done.failed.items()):
            self._say(f"{key}: FAILED: {error}")
        return self.done

    async def _release_all(self, pods: Sequence[Pod]) -> None:
        """Release pods, a few at a time."""
        left = iter(pods)

        async def work() -> None:
            for pod in left:
                await self._release(pod)

        async with asyncio.TaskGroup() as group:
            for n in range(min(IN_FLIGHT, len(pods))):
                group.create_task(work(), name=f"release: {n}")

    async def _release(self, pod: Pod) -> None:
        """Remove our gate from one pod."""
        meta = pod.metadata
        given = Preconditions(uid=meta.uid)
        try:
            await self._client.patch(PODS, meta.namespace, meta.name, UNGATE, given=given)
        except (NotFound, Conflict):
            self.done.failed.pop(meta.key, None)
            self.done.gone.add(meta.key)
            self._say(f"{meta.key}: gone meanwhile")
        except KubeError as error:
            self.done.failed[meta.key] = str(error)
        else:
            self.done.failed.pop(meta.key, None)
            self.done.released.add(meta.key)
            if others(pod):
                self.done.gated.add(meta.key)
            self._say(f"{meta.key}: released{still(pod)}")


def run(namespace: str, dry_run: bool, kubeconfig: str | None) -> int:
    """Release, print what was done, and return the exit code."""
    try:
        return asyncio.run(_run(namespace, dry_run, kubeconfig))
    except (KubeError, ConfigException) as error:
        print(f"The pods cannot be listed: {error}", file=sys.stderr)
        return 1


async def _run(namespace: str, dry_run: bool, kubeconfig: str | None) -> int:
    async with await connect(kubeconfig, component="pumice-cli") as client:
        work = Releasing(client, print, namespace=namespace)
        if not dry_run:
            done = await work.run()
            print(summary(done))
            return 1 if done.left else 0
        pods = await work.held()
        for pod in pods:
            print(f"{pod.metadata.key}: would be released{still(pod)}")
        print(f"{count(len(pods))} would be released.")
        return 0


def summary(done: Released) -> str:
    """Return what was done, in a few lines."""
    lines = [f"{count(len(done.released))} released."]
    if done.gated:
        lines.append(f"Still held by gates of others: {count(len(done.gated))}.")
    if done.left:
        lines.append(f"Still held by Pumice: {count(done.left)}.")
    lines.append("Pods of our schedulers are held again as long as they meet our admission policy.")
    return "\n".join(lines)


def count(number: int) -> str:
    """Return `1 pod`, `2 pods`."""
    return f"{number} pod" if number == 1 else f"{number} pods"


def others(pod: Pod) -> list[str]:
    """Return the gates that are not ours."""
    gates = [gate.name for gate in pod.spec.scheduling_gates or ()]
    return [name for name in gates if name != names.GATE_HELD]


def still(pod: Pod) -> str:
    """Return what still holds a pod, in words."""
    return f", still held by {', '.join(others(pod))}" if others(pod) else ""
