"""
Carry out the steps of a case, one after the other.

A step that the cluster refuses ends the case, but for the `try` steps, whose answers are kept.
"""

from __future__ import annotations

from time import monotonic

from pumice.local.api import STRATEGIC_PATCH, Object
from tests.cases import podfacts, schema
from tests.cases.errors import StepError
from tests.cases.moment import Moment
from tests.cases.podstatus import readiness, status
from tests.cases.record import END, Window
from tests.cases.schema import AnyStep, Case
from tests.cases.selection import Selection, bound_of, leader
from tests.cases.settling import settle
from tests.cases.world import World
from tests.cases.writer import PATCHES, Writer

OPEN_TIMEOUT_S = 30.0
BOUND_TIMEOUT_S = 30.0


class Player:
    """Plays one case in a world."""

    def __init__(self, case: Case, world: World) -> None:
        self.case = case
        self.world = world
        self.record = world.record
        self.writer = Writer(world, case.objects())

    def play(self) -> list[str]:
        """Prepare, carry out the steps, and return what is wrong with what was seen."""
        self._prepare()
        steps = self.case.steps
        for number, step in enumerate(steps):
            following = steps[number + 1] if number + 1 < len(steps) else None
            try:
                self._carry_out(step, following)
            except StepError as error:
                kind = step.__struct_config__.tag
                raise StepError(f"steps[{number}] ({kind}): {error}") from error
        self._take(END)
        moments = self.record.moments
        reasons = (check.reason(self.record, moments[check.at]) for check in self.case.expect)
        return [reason for reason in reasons if reason]

    def _prepare(self) -> None:
        """Make the namespaces and all that is there before the first step."""
        objects = self.case.objects()
        for name in sorted(self.case.namespaces()):
            ref = f"namespace/{name}"
            if ref not in objects and self.world.get(ref) is None:
                body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                self.writer.create(body)
        standing = self.case.standing()
        for body in standing:
            self.writer.establish(body)
        queues = {body["metadata"]["name"] for body in standing if body["kind"] == "Queue"}
        self.world.must(lambda: queues <= self._open_queues(), OPEN_TIMEOUT_S, "the queues open")

    def _carry_out(self, step: AnyStep, following: AnyStep | None) -> None:
        """Carry out one step."""
        components = self.world.components
        match step:
            case schema.Apply(refs=refs):
                for ref in refs:
                    self.writer.apply(ref)
            case schema.SendCommand(ref=ref):
                self.writer.apply(ref)
            case schema.ApplyMany():
                self.writer.apply_many(step)
            case schema.TryApply() | schema.TryDelete() | schema.TryPatch():
                self.record.answers[step.answer] = self.writer.attempt(step)
            case schema.ApplyPatch(ref=ref, patch=patch, type=kind):
                self.writer.patch(ref, self.writer.path(ref), patch, PATCHES[kind])
            case schema.Delete():
                self.writer.delete(step)
            case schema.Settle():
                self._settle(step, following)
            case schema.Snapshot(name=name):
                self._take(name)
            case schema.Watch(name=name, seconds=seconds):
                begin = monotonic()
                self.world.wait(lambda: False, seconds)
                self.record.windows[name] = Window(begin, monotonic())
            case schema.SetPodPhase():
                self._set_pod_phase(step)
            case schema.SetKubelet(select=select, mode=mode):
                self.world.kubelet.treat(select, mode)
            case schema.SetNode():
                self._set_node(step)
            case schema.Stop(component=component):
                components.stop(component)
            case schema.Start(component=component):
                components.start(component)
            case schema.Restart(component=component):
                components.restart(component)

    def _take(self, name: str) -> None:
        """Keep this moment under a name."""
        self.record.moments[name] = self._moment(name)

    def _moment(self, name: str) -> Moment:
        """Return all there is now, with what the checks refer to that look at this moment."""
        looking = (c for c in self.case.expect if name in (c.at, getattr(c, "since", None)))
        return self.world.moment({ref for check in looking for ref in check.refers_to})

    def _holds(self, name: str) -> bool:
        """Tell whether the checks about a moment would hold now, where that can be told yet."""
        moment = self._moment(name)
        checks = (c for c in self.case.expect if c.at == name and c.is_due(self.record))
        return not any(check.fault(self.record, moment) for check in checks)

    def _settle(self, step: schema.Settle, following: AnyStep | None) -> None:
        """Come to rest; what comes directly after it decides which checks are to hold by then."""
        name = END if following is None else ""
        if isinstance(following, schema.Snapshot):
            name = following.name
        settle(
            self.world.pulses.last_change,
            lambda: not name or self._holds(name),
            self.world.tick,
            quiet_s=step.quiet_seconds,
            timeout_s=step.timeout_seconds,
        )

    def _set_node(self, step: schema.SetNode) -> None:
        path = self.writer.path(step.ref)
        if step.unschedulable is not None:
            change = {"spec": {"unschedulable": step.unschedulable}}
            self.writer.patch(step.ref, path, change)
        fields: Object = {}
        if step.ready is not None:
            fields["conditions"] = [readiness(step.ready)]
        if step.allocatable is not None:
            amounts = {resource: str(amount) for resource, amount in step.allocatable.items()}
            fields |= {"allocatable": amounts, "capacity": amounts}
        if fields:
            self.writer.patch(step.ref, f"{path}/status", {"status": fields}, STRATEGIC_PATCH)

    def _set_pod_phase(self, step: schema.SetPodPhase) -> None:
        """Write the statuses of the pods that are bound by now, once there are enough."""
        count = step.select.count
        self.world.must(
            lambda: len(self._playable(step.select)) >= count,
            BOUND_TIMEOUT_S,
            f"{count} bound and unfinished of {step.select}",
        )
        ready = step.ready is not False
        for pod in self._playable(step.select):
            path = podfacts.path(pod)
            patch = status(pod, step.phase, ready=ready, exit_code=step.exit_code)
            self.writer.patch(path, f"{path}/status", patch, STRATEGIC_PATCH)

    def _playable(self, select: Selection) -> list[Object]:
        """Return the pods that a kubelet could bring into another phase."""
        scene = self.world.moment()
        if select.winner_of:
            winner = leader(select.winner_of, scene)
            self.record.winners[frozenset(select.winner_of)] = winner
            chosen = bound_of(winner, scene)
        elif select.any_bound_of:
            either = (Selection(jobs=select.any_bound_of), Selection(pods=select.any_bound_of))
            chosen = [pod for some in either for pod in some.of(scene)]
        else:
            chosen = select.of(scene)
        able = [p for p in chosen if podfacts.occupies(p) and not podfacts.is_terminating(p)]
        return able[: select.count] if select.any_bound_of else able

    def _open_queues(self) -> set[str]:
        queues = self.world.seen().queues.items()
        return {name for name, queue in queues if queue.get("status", {}).get("state") == "Open"}
