"""Rules B to F: which histories they object to, and which they let pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.auditor.builders import (
    ADMIN,
    CONTROLLERS,
    EXTENDER,
    KUBELET,
    SETTINGS,
    Case,
    binding,
    deletion,
    dump,
    node,
    pod,
    request,
    seen,
    verdict,
)
from tests.auditor.facts import Mark, Request, Sighting

A, B, C = "a", "b", "c"

FOREIGN: dict[str, Any] = {"scheduler": "default-scheduler", "group": ""}
SHARED = replace(SETTINGS, shared_nodes=True)
ROOM = {
    "a full node is well": Case([seen(1, node("n", 2)), seen(2, pod(A, "n"), pod(B, "n"))]),
    "a pod too many is not": Case(
        [seen(1, node("n", 1)), seen(2, pod(A, "n"), pod(B, "n"))],
        ["node n holds 2 cpu of the 1 it can since pod ns/b was bound to it"],
    ),
    "pod slots count": Case(
        [seen(1, node("n", 9, pods=1)), seen(2, pod(A, "n"), pod(B, "n", requests={}))],
        ["node n holds 2 pods of the 1 it can since pod ns/b was bound to it"],
    ),
    "finished pods hold nothing": Case(
        [
            seen(1, node("n", 1)),
            seen(2, pod(A, "n")),
            seen(3, pod(A, "n", phase="Succeeded")),
            seen(4, pod(B, "n")),
        ]
    ),
    "terminating pods hold their room until they are gone": Case(
        [
            seen(1, node("n", 1)),
            seen(2, pod(A, "n")),
            seen(3, pod(A, "n", deleting=True)),
            seen(4, pod(B, "n")),
        ],
        ["node n holds 2 cpu of the 1 it can since pod ns/b was bound to it"],
    ),
    "versions give the order, not the time of arrival": Case(
        [
            seen(1, node("n", 1)),
            seen(2, pod(A, "n")),
            Sighting(9, 5000, pod(B, "n")),
            Sighting(9, 4000, pod(A, "n"), gone=True),
        ]
    ),
    "a node that shrinks under its pods breaks nothing": Case(
        [seen(1, node("n", 2)), seen(2, pod(A, "n"), pod(B, "n")), seen(3, node("n", 1))]
    ),
    "a binding to a node that has shrunk does": Case(
        [seen(1, node("n", 2)), seen(2, pod(A, "n")), seen(3, node("n", 1)), seen(4, pod(B, "n"))],
        ["node n holds 2 cpu of the 1 it can since pod ns/b was bound to it"],
    ),
    "a resource that the pod doesn't ask for may be short": Case(
        [
            seen(1, node("n", 2)),
            seen(2, pod(A, "n"), pod(B, "n")),
            seen(3, node("n", 1)),
            seen(4, pod(C, "n", requests={})),
        ]
    ),
    "a foreign pod on top of ours is the other scheduler's doing": Case(
        [seen(1, node("n", 1)), seen(2, pod(A, "n"), pod(B, "n", **FOREIGN))]
    ),
    "a pod of ours on top of a foreign one is our doing": Case(
        [seen(1, node("n", 1)), seen(2, pod(B, "n", **FOREIGN), pod(A, "n"))],
        ["node n holds 2 cpu of the 1 it can since pod ns/a was bound to it"],
    ),
    "on shared nodes that is only counted": Case(
        [seen(1, node("n", 1)), seen(2, pod(B, "n", **FOREIGN), pod(A, "n"))], settings=SHARED
    ),
    "on shared nodes our own pods must still fit": Case(
        [seen(1, node("n", 1)), seen(2, pod(A, "n"), pod(B, "n"))],
        ["node n holds 2 cpu of the 1 it can since pod ns/b was bound to it"],
        settings=SHARED,
    ),
}

BINDERS = {
    "the extender may bind": Case([seen(1, pod(A)), binding(2, A)]),
    "nobody else may": Case(
        [seen(1, pod(A)), binding(2, A, user="kube-scheduler")],
        ["pod ns/a (schedulerName volcano) was bound to node n by kube-scheduler, not by extender"],
    ),
    "a binding that was refused bound nothing": Case(
        [seen(1, pod(A)), replace(binding(2, A, user=ADMIN), code=409)]
    ),
    "foreign pods are bound by whom they like": Case(
        [seen(1, pod(A, scheduler="default-scheduler")), binding(2, A, user=ADMIN)]
    ),
    "the older bindings resource is watched, too": Case(
        [seen(1, pod(A)), request(2, ADMIN, "create", "bindings", A, node="n")],
        ["pod ns/a (schedulerName volcano) was bound to node n by admin, not by extender"],
    ),
}

EVICTIONS = {
    "anybody else may delete": Case([seen(1, pod(A)), deletion(2, A, ADMIN)]),
    "the extender may not": Case(
        [seen(1, pod(A)), deletion(2, A, EXTENDER)],
        ["extender asked to delete pod ns/a (answer 200), which no session decided"],
    ),
    "an attempt counts though it was refused": Case(
        [seen(1, pod(A)), replace(deletion(2, A, EXTENDER), code=403, uid="")],
        ["extender asked to delete pod ns/a (answer 403), which no session decided"],
    ),
    "what a session decided may go": Case(
        [seen(1, pod(A)), request(2, EXTENDER, "create", "pods/eviction", A)],
        decided=frozenset({A}),
    ),
    "a decision for an earlier pod of the name is none for this one": Case(
        [
            seen(1, pod(A)),
            seen(2, pod(A), gone=True),
            seen(3, pod(A, uid="a2")),
            request(4, EXTENDER, "create", "pods/eviction", A),
        ],
        ["extender asked to evict pod ns/a (answer 200), which no session decided"],
        decided=frozenset({A}),
    ),
    "a collection is nobody's decision": Case(
        [request(2, EXTENDER, "deletecollection", "pods", "")],
        ["extender asked to deletecollection pod ns/ (answer 200), which no session decided"],
    ),
}

HELD: dict[str, Any] = {"gates": ("pumice.dev/held",)}
PINNED = {"pin": "n"}
LEDGERS = {
    "each state as the API shows it is well": Case(
        [
            seen(1, pod(A, **HELD), pod(B, **PINNED), pod(C, "n"), pod("d", "n", phase="Failed")),
            seen(1.5, pod("free"), pod("arrived", **PINNED)),
            dump(4, a="Held", b="Released n", c="Bound n", arrived="Arrived n"),
            dump(7, a="Held", b="Released n", c="Bound n", arrived="Arrived n"),
        ]
    ),
    "each state that contradicts the API is named": Case(
        [
            seen(1, pod(A, **HELD), pod(B, **PINNED), pod(C, "n"), pod("d", "n", phase="Failed")),
            dump(4, a="Released n", b="Released m", d="Bound n", gone="Held"),
            dump(7, a="Released n", b="Released m", d="Bound n", gone="Held"),
        ],
        [
            "pod ns/a holds pumice.dev/held, but the ledger says a is Released on n",
            "pod ns/b holds no gate and is pinned to n, but the ledger says b is Released on m",
            "pod ns/c is bound to n, but the ledger does not know it",
            "pod ns/d is Failed, but the ledger says d is Bound on n",
            "no pod has uid gone, but the ledger says gone is Held",
        ],
    ),
    "a disagreement that passes is only lag": Case(
        [seen(1, pod(A, "n")), dump(4, a="Arrived n"), dump(7, a="Bound n")]
    ),
    "dumps around a change are not compared": Case(
        [
            seen(1, pod(A, **HELD)),
            dump(4, a="Held"),
            dump(7, a="Held"),
            seen(8, pod(A, "n")),
            dump(9, a="Held"),
        ]
    ),
    "a held pod must be known": Case(
        [seen(1, pod(A, **HELD)), dump(4), dump(7)],
        ["pod ns/a holds pumice.dev/held, but the ledger does not know it"],
    ),
    "other gates leave it open whether the ledger knows the pod": Case(
        [seen(1, pod(A, gates=("example.com/wait",))), dump(4), dump(7)]
    ),
    "a free pod that the ledger calls bound is a contradiction": Case(
        [seen(1, pod(A)), dump(4, a="Bound n"), dump(7, a="Bound n")],
        ["pod ns/a holds no gate, but the ledger says a is Bound on n"],
    ),
    "a ledger never read twice in quiet was not judged, and that is said": Case(
        [seen(1, pod(A, **HELD)), dump(4, a="Held")],
        [
            "the ledger could not be compared: it was read 1 times, "
            "never twice within one quiet time"
        ],
    ),
}


def patch(at: float, rv: int | None, user: str = CONTROLLERS, **fields: Any) -> Request:
    """A patch of pod `a`, answered with this version."""
    return request(at, user, "patch", "pods/status", A, rv=rv, **fields)


def noop(at: float, rv: int, user: str = CONTROLLERS) -> str:
    """The sentence about such a patch."""
    return (
        f"patch of pods/status ns/a by {user} changed nothing: it was answered with "
        f"resourceVersion {rv}, which the object had before"
    )


NOOPS = {
    "a patch answered with a new version changed something": Case(
        [seen(1, pod(A)), patch(2, 2000)]
    ),
    "a patch answered with the version that the watch had shown changed nothing": Case(
        [seen(1, pod(A)), patch(2, 1000)], [noop(2, 1000)]
    ),
    "a version below one seen elsewhere before the request is an old one": Case(
        [seen(1.5, node("n", 1)), patch(2, 1200)], [noop(2, 1200)]
    ),
    "an answer seen only after the request came proves nothing": Case(
        [patch(2, 2000), seen(2.001, pod(A))]
    ),
    "of two patches with one version the second changed nothing": Case(
        [patch(2, 2000), patch(2.005, 2000)], [noop(2.005, 2000)]
    ),
    "overlapping with somebody else's write it stays open who did nothing": Case(
        [patch(2, 2000, KUBELET), patch(2.005, 2000)]
    ),
    "a repetition of a write whose answer a cut may have lost is excused": Case(
        [patch(2, 2000), Mark(2.5, "pause"), Mark(9, "resume"), patch(10, 2000)]
    ),
    "a repetition of a write from long before the cut is not": Case(
        [patch(2, 2000), Mark(5, "pause"), Mark(9, "resume"), patch(10, 2000)], [noop(10, 2000)]
    ),
    "so is one of a write that a killed server did not come to log": Case(
        [seen(2, pod(A)), Mark(2.5, "pause"), Mark(9, "resume"), patch(10, 1000)]
    ),
    "but not when the version is older": Case(
        [seen(1, pod(A)), Mark(2.5, "pause"), Mark(9, "resume"), patch(10, 1000)],
        [noop(10, 1000)],
    ),
    "nor long after": Case(
        [seen(2, pod(A)), Mark(2.5, "pause"), Mark(9, "resume"), patch(30, 1000)],
        [noop(30, 1000)],
    ),
    "somebody else may write in vain": Case([seen(1, pod(A)), patch(2, 1000, KUBELET)]),
    "a refused patch is no write": Case([seen(1, pod(A)), patch(2, 1000, code=409)]),
    "a dry run is no write": Case([seen(1, pod(A)), patch(2, 1000, dry_run=True)]),
    "an object that goes with its last finalizer is answered with its old version": Case(
        [seen(1, pod(A)), patch(2, 1000, last_finalizer=True)]
    ),
    "leases are renewed": Case(
        [seen(1, pod(A)), request(2, CONTROLLERS, "update", "leases", "l", rv=1000)]
    ),
    "an audit log without answers is objected to": Case(
        [patch(2, None)],
        [
            "1 writes of ours stand in the audit log without their answer, the first a patch of "
            "pods/status ns/a: the audit policy needs level RequestResponse"
        ],
    ),
}


@pytest.mark.parametrize("case", ROOM.values(), ids=ROOM.keys())
def test_a_node_holds_what_it_can(case: Case) -> None:
    assert verdict("B", case) == case.want


@pytest.mark.parametrize("case", BINDERS.values(), ids=BINDERS.keys())
def test_only_the_extender_binds(case: Case) -> None:
    assert verdict("C", case) == case.want


@pytest.mark.parametrize("case", EVICTIONS.values(), ids=EVICTIONS.keys())
def test_the_extender_removes_what_a_session_decided(case: Case) -> None:
    assert verdict("D", case) == case.want


@pytest.mark.parametrize("case", LEDGERS.values(), ids=LEDGERS.keys())
def test_the_ledger_says_what_the_api_says(case: Case) -> None:
    assert verdict("E", case) == case.want


@pytest.mark.parametrize("case", NOOPS.values(), ids=NOOPS.keys())
def test_no_write_leaves_its_object_as_it_was(case: Case) -> None:
    assert verdict("F", case) == case.want
