"""
Moves: kube-scheduler has another node for a pod than the one that was planned.

It is accepted where the pod has the room and the cards there and is as near to its gang as it must
be; its charge moves along. A pod with claims is accepted also where nothing but members of its own
gang stand in the way that are planned and still held: something has been bound for it on that node,
so it would come back with the same node again and again, while those can go elsewhere. They lose
their plans, and so do held members whose place depends on where others are. Members that were let
go without a pin and have not come keep theirs, though they may stand in the way as well: nothing
but a hint says that they are on that node, and kube-scheduler, which has them all, found room.
"""

from __future__ import annotations

from collections.abc import Callable

from extender.answers import NO_ROOM, OTHER_NODE, TOO_FAR
from extender.model import Model
from pumice.core.devices.notes import Choice
from pumice.core.ids import PodUid
from pumice.core.ledger import Arm, Entry, State
from pumice.core.prebinding import has_claims
from pumice.core.room import lacking, straying

Plan = tuple[PodUid, str, Choice | None]


def move(model: Model, entry: Entry, node: str, wake: Callable[[], None]) -> str:
    """
    Move the charge of a pod to the node that kube-scheduler has for it; return why not, if so.

    `wake` is called where members lost their plans: the next session is to make them others.
    """
    if entry.arm is Arm.PIN:
        return OTHER_NODE
    held: list[Entry] = yielding(model, entry)
    lost: list[Plan] = []
    if straying(model.cluster, entry.uid, node):
        lost += [_give_way(model, member) for member in held]
    here = [member for member in held if member.node == node]
    while here and _is_short(model, entry, node):
        lost.append(_give_way(model, here.pop()))
    if why := _obstacle(model, entry, node):
        for plan in lost:
            model.plan(*plan)
        return why
    rest = [member for member in held if member.planned]
    lost += [_give_way(model, m) for m in rest if _depends(model, m.uid, entry.uid)]
    if lost:
        wake()
    return ""


def yielding(model: Model, entry: Entry) -> list[Entry]:
    """Return the members that give way to a pod that has claims: those planned and held."""
    pod = model.pending.get(entry.uid)
    if entry.job is None or pod is None or not has_claims(pod):
        return []
    return [member for member in model.ledger.of_job(entry.job) if member.planned]


def _give_way(model: Model, member: Entry) -> Plan:
    """Take a held member's plan; return it."""
    plan = (member.uid, member.node, member.cards)
    model.unplan(member.uid)
    return plan


def _obstacle(model: Model, entry: Entry, node: str) -> str:
    """Move the charge, or return what stands in the way."""
    if straying(model.cluster, entry.uid, node):
        return TOO_FAR
    if _is_short(model, entry, node) or not model.move(entry.uid, node):
        return NO_ROOM
    return ""


def _is_short(model: Model, entry: Entry, node: str) -> bool:
    """Tell whether the pod has too little room there, members aside that are merely hinted at."""
    members = model.ledger.of_job(entry.job) if entry.job is not None else ()
    hinted = [m.uid for m in members if m.state is State.RELEASED and m.arm is not Arm.PIN]
    return bool(lacking(model.cluster, entry.uid, node, hinted))


def _depends(model: Model, *uids: PodUid) -> bool:
    """Tell whether where one of the pods may be depends on where others are."""
    signatures = (task.cls.signature for uid in uids if (task := model.cluster.task(uid)))
    return any(s.affinity or s.anti_affinity or s.spread for s in signatures)
