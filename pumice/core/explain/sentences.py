"""
Why a job waits, in one sentence: the renderer of the reasons that a session writes down.

The sentence is for somebody who knows what a pod and a node are and nothing of this scheduler. It
stands in the condition of the job's PodGroup, which tenants read, behind Volcano's own words: so
it names nobody else's objects. And it says nothing that changes with every pod of somebody else,
or a cluster full of waiting jobs would be busy rewriting sentences: what is free and who holds
the rest is part of the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pumice.core.api.scheduling import PodGroupCondition
from pumice.core.explain import words
from pumice.core.explain.words import count, listed
from pumice.core.fitness import Confinement
from pumice.core.plan import GroupStatus, Reason
from pumice.core.resources import EPSILON, as_text
from pumice.core.timestamps import stamp


def sentence(reason: Reason) -> str:
    """Return why a job waits."""
    match reason.obstacle:
        case "malformed":
            return f"The PodGroup cannot be scheduled as it is written: {reason.message}."
        case "no queue":
            return (
                f"The queue {reason.queue} does not exist: the job waits until somebody makes it."
            )
        case "too few pods":
            return _too_few_pods(reason)
        case "admission":
            return _admission(reason)
        case "queue":
            return _queue(reason)
        case "room":
            return _room(reason)
        case "promised":
            return "Pods that are ending still hold the room that is promised to the job."
        case "gates":
            return "The pods are held by scheduling gates that others have put on them."
        case _:
            return _otherwise(reason)


def fresh_condition(status: GroupStatus) -> PodGroupCondition | None:
    """Return the condition by which a session says that a group waits; its text is Volcano's."""
    if not status.unschedulable:
        return None
    return next((c for c in status.conditions if c.type == "Unschedulable"), None)


def explained(message: str, reason: Reason | None) -> str:
    """Return Volcano's words for why a group waits with the sentence behind them."""
    if reason is None:
        return message
    plain, text = told(reason), message.rstrip(".")
    return plain if text in plain else f"{text}. {plain}"


def told(reason: Reason) -> str:
    """Return why a job waits, and until when at the longest where that is known."""
    plain = sentence(reason)
    if reason.rivals:
        plain = f"{plain} {_RIVALS}"
    if reason.expected is None:
        return plain
    # To the second above: what is shown is a promise.
    return f"{plain} Room is kept for it, it is expected to start by {stamp(reason.expected + 1)}."


_RIVALS = "Room of another queue is not taken for it: that queue could take as much back at once."


def least_of(reason: Reason) -> int:
    """Return how many pods must run at the same time."""
    return int(reason.numbers.get("minAvailable", 0))


def numbers_of(reason: Reason, word: str) -> dict[str, float]:
    """Return the numbers that were compared under a word, by resource."""
    start = f"{word} "
    return {
        name.removeprefix(start): amount
        for name, amount in reason.numbers.items()
        if name.startswith(start)
    }


def _amounts(amounts: Mapping[str, float]) -> str:
    return listed(words.amount(name, units) for name, units in amounts.items())


def _too_few_pods(reason: Reason) -> str:
    least, there = least_of(reason), int(reason.numbers.get("ready", 0)) + reason.waiting
    if there >= least:
        return "The job needs a minimum of pods of each task, and for some task there are fewer."
    return f"The gang needs {count(least, 'pod')} at the same time, but has only {there}."


def _admission(reason: Reason) -> str:
    least = numbers_of(reason, "minimum")
    start = f"The job is not let in yet: it needs {_amounts(least)} to start" if least else ""
    if least and (cluster := numbers_of(reason, "cluster")):
        if _is_over(least, cluster):
            return f"{start}, and the whole cluster has {_amounts(cluster)}."
        return f"{start}, and too much of the cluster's {_amounts(cluster)} is taken or promised."
    if reason.detail and (bound := numbers_of(reason, "capability")):
        taken = "" if _is_over(least, bound) else ", and too much of that is taken or promised"
        return f"The job is not let in yet: {reason.detail}{taken}."
    return f"The job is not let in yet: {reason.message}."


def _is_over(asked: Mapping[str, float], bound: Mapping[str, float]) -> bool:
    return any(units >= bound.get(name, units) + EPSILON for name, units in asked.items())


def _queue(reason: Reason) -> str:
    held = [name for name in numbers_of(reason, "held") if name in reason.asks]
    why = (reason.detail or reason.message).rstrip(".")
    if len(held) == 1:
        why = f"{why}, and a pod asks for {as_text(held[0], reason.asks[held[0]])}"
    may = _Ability("may be placed", "may be placed", "may not be placed", "may not be placed")
    return f"{_who(reason, may)}: {why}."


def _confined(reason: Reason, confined: Confinement) -> str:
    where, tried = f"one HyperNode of {confined.tier} or below", words.cramped(confined.tried)
    if reason.whole:
        more = max(reason.waiting - reason.found, 1)
        find = "finds" if more == 1 else "find"
        return (
            f"The job has the pods that it needs; {more} more {find} no node where all are within"
            f" {where} ({tried})."
        )
    who = "A sub-group of the gang" if confined.part else "The gang"
    needs = count(confined.wanted, "pod") + (" at the same time" if confined.wanted > 1 else "")
    number = len(confined.tried)
    none = f"none of the {number} that come into question" if number > 1 else "the only one left"
    hold = "will do" if number > 1 else "will not do"
    return f"{who} needs {needs} within {where}, and {none} {hold} ({tried})."


def _room(reason: Reason) -> str:
    if reason.confined is not None and reason.confined.tried:
        return _confined(reason, reason.confined)
    find = _Ability("finds a node", "find a node", "finds no node", "find no node")
    if not reason.of_nodes and not reason.nodes:
        return f"{_who(reason, find)} (there is none)."
    why = words.refusals(reason.nodes, reason.asks)
    return f"{_who(reason, find)} ({why})." if why else f"{_who(reason, find)}."


@dataclass(frozen=True, slots=True)
class _Ability:
    """What one pod, or several, can or cannot do."""

    one_can: str
    many_can: str
    one_cannot: str
    many_cannot: str


def _who(reason: Reason, ability: _Ability) -> str:
    """Return how many of the pods that must run together can do something, and how many not."""
    least, ready = least_of(reason), int(reason.numbers.get("ready", 0))
    have = ready + reason.found
    if reason.whole:
        more = max(reason.waiting - reason.found, 1)
        cannot = ability.one_cannot if more == 1 else ability.many_cannot
        return f"The job has the pods that it needs; {more} more {cannot}"
    if have >= least:
        return f"The gang lacks pods of one of its tasks, and they {ability.many_cannot}"
    if least == 1:
        if reason.waiting <= 1:
            return f"The pod {ability.one_cannot}"
        return f"None of the job's {reason.waiting} pods {ability.one_can}"
    needs = f"The gang needs {count(least, 'pod')} at the same time"
    if not have:
        return f"{needs}, but none of them {ability.one_can}"
    can = ability.one_can if have == 1 else ability.many_can
    return f"{needs}, but only {have} of them {can}"


def _otherwise(reason: Reason) -> str:
    least, ready = least_of(reason), int(reason.numbers.get("ready", 0))
    if ready < least and not reason.waiting:
        return f"The gang needs {count(least, 'pod')} at the same time, and has {ready} on nodes."
    return words.sentence_of(reason.message)
