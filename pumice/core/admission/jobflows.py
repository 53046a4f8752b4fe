"""
A JobFlow: its flows can be run one after the other.

Two flows may have the same name; the later one counts. Whether there are JobTemplates of these
names is not asked: they may come later.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Final

from pumice.core.admission.errors import FieldError
from pumice.core.api.flow import JobFlow

NO_ORDER: Final = "jobflow Flow is not DAG"
NO_VERTEX: Final = f"{NO_ORDER}: vertex is not defined"


def check(flow: JobFlow) -> list[FieldError]:
    """Return what is wrong with a new or changed JobFlow."""
    steps = flow.spec.flows or []
    targets = {
        step.name: (step.depends_on.targets or []) if step.depends_on else [] for step in steps
    }
    unknown = [
        FieldError(f"spec.flows[{index}].dependsOn.targets", f"{NO_VERTEX}: {target}")
        for index, step in enumerate(steps)
        for target in targets[step.name]
        if target not in targets
    ]
    try:
        TopologicalSorter(targets).prepare()
    except CycleError:
        return [*unknown, FieldError("spec.flows", NO_ORDER)]
    return unknown
