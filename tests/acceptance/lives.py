"""The life of a Job as its watchers see it: which phases its writes showed, and orders to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tests.acceptance.bed import Bed
from tests.acceptance.objects import Object

COMMANDS: Final = "/apis/bus.volcano.sh/v1alpha1/namespaces/{}/commands"
PATIENCE_S: Final = 30.0


def _none(status: Object, *counters: str) -> bool:
    return not any(status.get(counter) for counter in counters)


def _may_pend(job: Object, status: Object) -> bool:
    total = sum(task.get("replicas", 0) for task in job["spec"]["tasks"])
    left = total - status.get("terminating", 0)
    pods = ("pending", "running", "succeeded", "failed")
    return _none(status, *pods) or left >= status.get("minAvailable", 0)


def _runs(job: Object, status: Object) -> bool:
    return bool(status.get("running", 0) >= job["spec"].get("minAvailable", 0))


def _empties(_job: Object, status: Object) -> bool:
    return bool(status.get("terminating", 0) > 0)


def _is_empty(_job: Object, status: Object) -> bool:
    return _none(status, "pending", "running", "terminating")


#: what the counters must say in the write that shows a phase, for others to go by it
FITS: Final[dict[str, Callable[[Object, Object], bool]]] = {
    "Pending": _may_pend,
    "Running": _runs,
    **dict.fromkeys(("Restarting", "Aborting", "Completing", "Terminating"), _empties),
    **dict.fromkeys(("Aborted", "Completed", "Terminated"), _is_empty),
}


def phases(bed: Bed, job: str) -> list[str]:
    """Return the phases that the writes of a Job showed, each with the counters it goes with."""
    shown: list[str] = []
    for seen in list(bed.jobs.history):
        body = seen.object
        meta, status = body["metadata"], body.get("status", {})
        phase = status.get("state", {}).get("phase")
        if (meta["namespace"], meta["name"]) != (bed.namespace, job) or not phase:
            continue
        fits = FITS.get(phase)
        if (fits is None or fits(body, status)) and shown[-1:] != [phase]:
            shown.append(phase)
    return shown


def wait_phases(bed: Bed, job: str, *wanted: str, patience_s: float = PATIENCE_S) -> None:
    """
    Wait until a Job has gone through phases, in this order.

    The pods that it counts as running are seen to run, too, when this returns, and no others.
    """
    what = f"{job} goes through {', '.join(wanted)}"

    def is_through() -> bool:
        return bed.shows_running(job) and _come_in_order(phases(bed, job), wanted)

    try:
        bed.wait_for(is_through, patience_s, what)
    except TimeoutError as error:
        raise TimeoutError(f"{error}\nshown: {phases(bed, job)}") from None


def _come_in_order(shown: Sequence[str], wanted: Sequence[str]) -> bool:
    left = iter(shown)
    return all(phase in left for phase in wanted)


def command(bed: Bed, job: str, action: str) -> None:
    """Order an action of a Job, as `vcctl job suspend` and its like do."""
    found = bed.job(job)
    assert found is not None
    target = {
        "apiVersion": found["apiVersion"],
        "kind": "Job",
        "name": job,
        "uid": found["metadata"]["uid"],
        "controller": True,
    }
    body = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": f"{job}-{action.lower()}-"},
        "action": action,
        "target": target,
    }
    bed.api.post(COMMANDS.format(bed.namespace), body)


def commands(bed: Bed) -> list[Object]:
    """Return the Commands that nobody has taken yet."""
    found: list[Object] = bed.api.get(COMMANDS.format(bed.namespace))["items"]
    return found
