"""
E: when all is quiet, the extender's ledger says what the API says.

What the ledger must say of a pod of ours:

    bound and not finished         Bound, on its node
    finished                       nothing
    holds the gate of ours         Held
    no gate, pinned to a node      Released or Arrived, on that node
    no gate, no pin                anything but Bound (it waits, or is free to go anywhere)
    other gates only, or deleting  anything but Bound, unless bound
And it says nothing of pods that are not there.

Watches lag a little on both sides, so a disagreement counts when two dumps show it, taken apart
from each other within one quiet time.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.auditor.facts import Dump, Entry, Pod, Violation
from tests.auditor.history import History, Settings

GATE = "pumice.dev/held"


def judge(history: History, settings: Settings) -> list[Violation]:
    """Return the lasting disagreements, or the complaint that nothing could be compared."""
    pairs = list(quiet_pairs(history, settings))
    if not pairs:
        return [_unjudged(history)]
    found: dict[tuple[str, str], Violation] = {}
    for first, second in pairs:
        pods = pods_at(history, second.at)
        early = {v.sentence for v in disagreements(pods, first, settings)}
        for violation in disagreements(pods, second, settings):
            if violation.sentence in early:
                found.setdefault((violation.object, violation.sentence), violation)
    return list(found.values())


def quiet_pairs(history: History, settings: Settings) -> Iterator[tuple[Dump, Dump]]:
    """Yield pairs of dumps around which no pod of ours changed."""
    changes = sorted(s.at for s in history.pods if s.object.scheduler in settings.schedulers)
    for first, second in zip(history.dumps, history.dumps[1:], strict=False):
        quiet = not any(first.at - settings.quiet_s < at <= second.at for at in changes)
        if quiet and second.at - first.at >= settings.patience_s:
            yield first, second


def pods_at(history: History, at: float) -> dict[str, Pod]:
    """Return the pods that the watch had shown by then."""
    pods: dict[str, Pod] = {}
    for seen in history.pods:
        if seen.at > at:
            break
        if seen.gone:
            pods.pop(seen.object.uid, None)
        else:
            pods[seen.object.uid] = seen.object
    return pods


def disagreements(pods: dict[str, Pod], dump: Dump, settings: Settings) -> list[Violation]:
    """Return what this dump gets wrong."""
    ours = {uid: pod for uid, pod in pods.items() if pod.scheduler in settings.schedulers}
    wrong = [
        Violation("E", pod.key, f"{_is(pod)}, but {_says(entry)}", (dump.at,))
        for uid, pod in ours.items()
        if not agrees(pod, entry := dump.entries.get(uid))
    ]
    orphans = [
        Violation("E", f"{e.namespace}/{e.name}", f"no pod has uid {uid}, but {_says(e)}")
        for uid, e in dump.entries.items()
        if uid not in pods
    ]
    return wrong + orphans


def agrees(pod: Pod, entry: Entry | None) -> bool:
    """Whether the ledger's entry is one that the pod allows."""
    state, node = (entry.state, entry.node) if entry else ("", "")
    if pod.finished:
        return entry is None
    if pod.node:
        return (state, node) == ("Bound", pod.node) or (pod.deleting and entry is None)
    if pod.deleting:
        return state != "Bound"
    if GATE in pod.gates:
        return state == "Held"
    if pod.pin and not pod.gates:
        return state in ("Released", "Arrived") and node == pod.pin
    return state != "Bound"


def _is(pod: Pod) -> str:
    if pod.finished:
        return f"pod {pod.key} is {pod.phase}"
    if pod.node:
        return f"pod {pod.key} is bound to {pod.node}"
    gates = f"holds {', '.join(pod.gates)}" if pod.gates else "holds no gate"
    return f"pod {pod.key} {gates}" + (f" and is pinned to {pod.pin}" if pod.pin else "")


def _says(entry: Entry | None) -> str:
    if entry is None:
        return "the ledger does not know it"
    where = f" on {entry.node}" if entry.node else ""
    return f"the ledger says {entry.name} is {entry.state}{where}"


def _unjudged(history: History) -> Violation:
    return Violation(
        "E",
        "ledger",
        "the ledger could not be compared: it was read "
        f"{len(history.dumps)} times, never twice within one quiet time",
        numbers={"dumps": len(history.dumps)},
    )
