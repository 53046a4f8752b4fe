"""
Which nodes a pod has to choose from as things stand, and what speaks for or against one of them.

A session is opened on the snapshot with the configured plugins, and nothing is done in it but to
ask: the pod is taken off its node, and a node that Pumice has pinned it to does not count as asked
for by the pod itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from pumice.core.api.core import NodeSelectorTerm, Pod
from pumice.core.class_views import ClassView
from pumice.core.conf import Configuration
from pumice.core.explain import words
from pumice.core.explain.answers import Choice, NodeVerdict, Refused
from pumice.core.explain.picture import Picture
from pumice.core.extension import Code, Refusal
from pumice.core.kernels import only
from pumice.core.model.jobs import JobInfo
from pumice.core.model.signatures import Signature
from pumice.core.model.tasks import Task, TaskClass, TaskClasses
from pumice.core.outside import Ask, nobody
from pumice.core.requests import pod_requests
from pumice.core.resources import EPSILON, PODS, as_text
from pumice.core.session import Session
from pumice.core.steering import pinned_node


def choose(
    picture: Picture,
    conf: Configuration,
    job: JobInfo,
    task: Task,
    cls: TaskClass,
    node: str,
    *,
    ask: Ask = nobody,
) -> Choice:
    """
    Return what the nodes say to a task of a job; `node` is the one in question, if any.

    `cls` is the class that the pod has by itself (`class_of`), `ask` the way to a policy server.
    """
    snapshot = replace(picture.snapshot, active=frozenset({job.key}))
    with Session(snapshot, conf, picture.plan.now, picture.plan.session, ask=ask) as ssn:
        return _choice(ssn, task, cls, node)


def _choice(ssn: Session, task: Task, cls: TaskClass, node: str) -> Choice:
    if task.node in ssn.nodes.index and task.occupies:
        _take_off(ssn, task)
    view = ssn.views.of_task(replace(task, cls=cls))
    everywhere = len(ssn.nodes)
    if view.refused is not None:
        whole = Refused(everywhere, view.refused, words.refusal(view.refused, {}))
        return Choice(everywhere, 0, (whole,))
    asks = {ssn.names[row]: float(view.cls.req[row]) for row in view.cls.rows if row != PODS}
    refusals, within = view.refusals(), ssn.within(task)
    if within is not None:
        outside = np.ones(everywhere, bool)
        outside[within] = False
        refusals.append(Refusal(Code.UNRESOLVABLE, words.OUTSIDE, outside))
    counts = {r.message: int(np.count_nonzero(r.nodes)) for r in refusals if r.nodes.any()}
    refused = tuple(
        Refused(number, why, words.refusal(why, asks)) for why, number in words.by_node(counts)
    )
    takers = np.flatnonzero(only(view.candidates(), within))
    at = ssn.nodes.index.get(node)
    verdict = None if at is None else _verdict(ssn, view, at, takers, refusals)
    return Choice(everywhere, int(takers.size), refused, verdict)


def _take_off(ssn: Session, task: Task) -> None:
    """Let a pod be gone from its node."""
    at, req = ssn.nodes.index[task.node], task.cls.req
    ssn.space.evict(task)
    for table in (ssn.nodes.used, ssn.nodes.releasing):
        table[: req.size, at] -= req


def _verdict(
    ssn: Session, view: ClassView, at: int, takers: np.ndarray, refusals: Sequence[Refusal]
) -> NodeVerdict:
    names, idle = ssn.names, ssn.nodes.idle[:, at]
    asked = [row for row in view.cls.rows if row != PODS]
    asks = {names[row]: float(view.cls.req[row]) for row in asked}
    takes = bool(np.isin(at, takers))
    scores = view.scores(takers) if takers.size else np.zeros(0)
    score = float(scores[takers == at][0]) if takes else None
    return NodeVerdict(
        name=ssn.nodes.names[at],
        takes=takes,
        refusals=tuple(words.refusal(r.message, asks) for r in refusals if r.nodes[at]),
        asks={name: as_text(name, units) for name, units in asks.items()},
        has={names[row]: as_text(names[row], max(float(idle[row]), 0.0)) for row in asked},
        score=score,
        best=float(scores.max()) if scores.size else None,
        better=0 if score is None else int(np.count_nonzero(scores > score + EPSILON)),
    )


def class_of(picture: Picture, pod: Pod) -> TaskClass:
    """
    Return the class of a pod without its pin.

    To be called where pods are taken in: what classes are made of is shared with theirs.
    """
    free = unpinned(pod)
    signature = Signature.of(free, frozenset(free.metadata.labels or ()))
    return TaskClasses().of(picture.space.of(pod_requests(free)), signature)


def unpinned(pod: Pod) -> Pod:
    """Return a pod without the one node that its affinity names."""
    node, affinity = pinned_node(pod), pod.spec.affinity
    if not node or affinity is None or affinity.node_affinity is None:
        return pod
    required = affinity.node_affinity.required
    left = [_without_name(term) for term in (required and required.node_selector_terms) or ()]
    left = [term for term in left if term.match_expressions or term.match_fields]
    of = msgspec.structs.replace
    choice = of(required, node_selector_terms=left) if required and left else None
    kept = of(affinity, node_affinity=of(affinity.node_affinity, required=choice))
    return of(pod, spec=of(pod.spec, affinity=kept))


def _without_name(term: NodeSelectorTerm) -> NodeSelectorTerm:
    fields = [field for field in term.match_fields or () if field.key != "metadata.name"]
    return msgspec.structs.replace(term, match_fields=fields or None)
