"""
The form of a case file: what there is, the steps in order, what must be seen.

Files may be written shorter: see `shorthand`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from pumice.local.api import Object
from tests.cases.checks import AnyCheck
from tests.cases.moment import reference
from tests.cases.selection import Selection

Component = Literal["extender", "scheduler"]
Mode = Literal["run", "neverStart", "runNotReady", "succeedAfter3s", "terminateAfter20s"]
PatchType = Literal["json", "merge", "strategic"]
Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
Patch = Any


class Step(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="op",
    forbid_unknown_fields=True,
    rename="camel",
):
    """Something that is done, or waited for."""


class Apply(Step, frozen=True, kw_only=True, tag="apply"):
    """Create objects; each must be accepted."""

    refs: list[str]


class ApplyMany(Step, frozen=True, kw_only=True, tag="applyMany"):
    """Create copies of an object, `{i}` replaced by each number in turn, or all at once."""

    template: str
    names: str
    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")
    parallel: bool = False


class TryApply(Step, frozen=True, kw_only=True, tag="tryApply"):
    """Create an object and keep the answer."""

    ref: str
    answer: str = msgspec.field(name="as")


class TryDelete(Step, frozen=True, kw_only=True, tag="tryDelete"):
    """Delete an object and keep the answer."""

    ref: str
    answer: str = msgspec.field(name="as")


class TryPatch(Step, frozen=True, kw_only=True, tag="tryPatch"):
    """Patch an object and keep the answer."""

    ref: str
    patch: Patch
    answer: str = msgspec.field(name="as")
    type: PatchType = "json"


class ApplyPatch(Step, frozen=True, kw_only=True, tag="patch"):
    """Patch an object; it must be accepted."""

    ref: str
    patch: Patch
    type: PatchType = "json"


class Delete(Step, frozen=True, kw_only=True, tag="delete"):
    """Delete objects, wait until they are gone; with `podsToo` the pods of a node go as well."""

    refs: list[str]
    wait: bool = True
    pods_too: bool = False


class SendCommand(Step, frozen=True, kw_only=True, tag="command"):
    """Create a Command for an object that is there."""

    ref: str


class Settle(Step, frozen=True, kw_only=True, tag="settle"):
    """Wait until nothing has changed for a while, and what is then to be checked holds."""

    quiet_seconds: float = 10
    timeout_seconds: float = 60


class Snapshot(Step, frozen=True, kw_only=True, tag="snapshot"):
    """Give the moment a name."""

    name: str = msgspec.field(name="as")


class Watch(Step, frozen=True, kw_only=True, tag="watch"):
    """Let time pass and give it a name."""

    seconds: float
    name: str = msgspec.field(name="as")


class SetPodPhase(Step, frozen=True, kw_only=True, tag="setPodPhase"):
    """Play the kubelet for bound pods that are selected."""

    select: Selection
    phase: Phase
    exit_code: int | None = None
    ready: bool | None = None


class SetKubelet(Step, frozen=True, kw_only=True, tag="kubelet"):
    """Say how the kubelet treats the selected pods from now on."""

    select: Selection
    mode: Mode


class SetNode(Step, frozen=True, kw_only=True, tag="setNode"):
    """Change a node; `allocatable` changes its capacity as well."""

    ref: str
    ready: bool | None = None
    unschedulable: bool | None = None
    allocatable: dict[str, str | int | float] | None = None


class Stop(Step, frozen=True, kw_only=True, tag="stop"):
    """Stop a component."""

    component: Component


class Start(Step, frozen=True, kw_only=True, tag="start"):
    """Start a component that was stopped."""

    component: Component


class Restart(Step, frozen=True, kw_only=True, tag="restart"):
    """Stop a component and start it again."""

    component: Component


AnyStep = (
    Apply
    | ApplyMany
    | ApplyPatch
    | Delete
    | Restart
    | SendCommand
    | SetKubelet
    | SetNode
    | SetPodPhase
    | Settle
    | Snapshot
    | Start
    | Stop
    | TryApply
    | TryDelete
    | TryPatch
    | Watch
)


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The scheduler configuration; it counts only where it matters."""

    actions: str
    tiers: list[dict[str, Any]]
    matters: Literal["yes", "no"] | bool = "no"

    @property
    def counts(self) -> bool:
        """Whether the case's answer depends on it."""
        return self.matters in ("yes", True)


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A whole file."""

    schema_version: Literal[1]
    id: str
    config: Config
    steps: list[AnyStep]
    expect: list[AnyCheck]
    source: dict[str, Any] = {}
    area: str = ""
    scenario: str = ""
    nodes: list[Object] = []
    queues: list[Object] = []
    priority_classes: list[Object] = []
    pod_groups: list[Object] = []
    jobs: list[Object] = []
    pods: list[Object] = []
    extras: list[Object] = []
    intentionally_invalid: list[str] = []
    why: str = ""
    basis: str = ""
    note: str = ""

    def objects(self) -> dict[str, Object]:
        """Return all objects by their references."""
        lists = (
            *(self.priority_classes, self.queues, self.nodes),
            *(self.pod_groups, self.jobs, self.pods, self.extras),
        )
        return {reference(body): body for some in lists for body in some}

    def standing(self) -> list[Object]:
        """Return what is there before the first step."""
        applied = set(created_by(self.steps))
        lists = (self.priority_classes, self.queues, self.nodes)
        return [body for some in lists for body in some if reference(body) not in applied]

    def namespaces(self) -> set[str]:
        """Return the namespaces that the objects name."""
        named = (body["metadata"].get("namespace") for body in self.objects().values())
        return {name for name in named if name}


def created_by(steps: list[AnyStep]) -> Iterator[str]:
    """Yield the references of the objects that steps create, templates included."""
    for step in steps:
        match step:
            case Apply(refs=refs):
                yield from refs
            case ApplyMany(template=template):
                yield template
            case TryApply(ref=ref) | SendCommand(ref=ref):
                yield ref
