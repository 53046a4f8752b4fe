"""
Views: each class of tasks before all nodes.

The view of a class is made once per session, and shared by all tasks of the class that no plugin
tells apart. Verdicts that depend on constraints alone are shared by all classes with the same
signature.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pumice.core.class_views import ClassView
from pumice.core.extension import Code, Points, PredicateResult, Refusal
from pumice.core.ids import JobKey
from pumice.core.model.signatures import Signature
from pumice.core.model.tasks import Task, TaskClass
from pumice.core.workspace import Workspace

AVOIDED = "node(s) refused a planned pod a moment ago"
_NOWHERE: frozenset[str] = frozenset()


class Views:
    """The views of one session."""

    def __init__(
        self,
        space: Workspace,
        points: Points,
        names: Sequence[str],
        avoided: Mapping[JobKey, frozenset[str]],
    ) -> None:
        self.space = space
        self.points = points
        self.names = names
        self._avoided = avoided
        #: the task that was asked for last; what scores nodes by where its kin are looks here
        self.subject: Task | None = None
        self._verdicts: dict[Signature | TaskClass, PredicateResult] = {}
        self._classes: dict[tuple[TaskClass, tuple[Hashable, ...]], TaskClass] = {}
        self._views: dict[tuple[TaskClass, frozenset[str]], ClassView] = {}

    def end(self) -> None:
        """Let go of everything."""
        vars(self).clear()

    def of_task(self, task: Task) -> ClassView:
        """Return the view of a task, which it shares with all that no plugin tells apart."""
        self.subject = task
        return self.of(self.distinct(task), task.job)

    def distinct(self, task: Task) -> TaskClass:
        """Return the task's class; one of its own where a plugin asks for more than the class."""
        if not self.points.distinction:
            return task.cls
        marks = tuple(mark(task) for mark in self.points.distinction)
        if not any(mark is not None for mark in marks):
            return task.cls
        found = self._classes.get((task.cls, marks))
        if found is None:
            found = self._classes[task.cls, marks] = replace(task.cls, example=task)
        return found

    def of(self, cls: TaskClass, job: JobKey | None) -> ClassView:
        """Return the view of a class, of which the job's nodes to avoid are left out."""
        avoided = self._avoided.get(job, _NOWHERE) if job is not None else _NOWHERE
        view = self._views.get((cls, avoided))
        if view is None:
            static = self._static(cls, avoided)
            view = ClassView(cls, self.space, self.points, static, names=self.names)
            self._views[cls, avoided] = view
        return view

    def _static(self, cls: TaskClass, avoided: frozenset[str]) -> PredicateResult:
        verdict = self.verdict(cls)
        if not avoided:
            return verdict
        return _combined([verdict, _avoid(self.space, avoided)], len(self.space.nodes))

    def verdict(self, cls: TaskClass) -> PredicateResult:
        """Return what the predicates say of the class's signature."""
        key = cls if cls.example else cls.signature
        found = self._verdicts.get(key)
        if found is None:
            results = [predicate(cls) for predicate in self.points.predicate]
            found = _combined(results, len(self.space.nodes))
            self._verdicts[key] = found
        return found


def _combined(results: Sequence[PredicateResult], n: int) -> PredicateResult:
    """Return the nodes that pass everything, and all reasons of the others."""
    mask = np.ones(n, bool)
    for result in results:
        mask &= result.mask
    return PredicateResult(mask, tuple(r for result in results for r in result.reasons))


def _avoid(space: Workspace, avoided: Collection[str]) -> PredicateResult:
    """Return the verdict on nodes that kube-scheduler refused for a planned pod just now."""
    refused = np.zeros(len(space.nodes), bool)
    refused[[space.nodes.index[name] for name in avoided if name in space.nodes.index]] = True
    return PredicateResult(~refused, (Refusal(Code.UNRESOLVABLE, AVOIDED, refused),))
