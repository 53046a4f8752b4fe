"""
Read a case file: its form, and that names and references in it lead somewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import yaml

from tests.cases import schema, shorthand
from tests.cases.checks import AnyCheck
from tests.cases.errors import MalformedError
from tests.cases.moment import is_group, parse
from tests.cases.record import END
from tests.cases.schema import Case, created_by
from tests.cases.selection import Selection


def load(path: Path) -> Case:
    """Return the case in a file; raise MalformedError where it is none."""
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
        if shorthand.is_short(tree):
            tree = shorthand.expanded(tree, path.stem)
        case = msgspec.convert(tree, Case)
        faults = list(_faults(case))
    except OSError as error:
        raise MalformedError(f"cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise MalformedError(f"not YAML: {' '.join(str(error).split())}") from error
    except msgspec.ValidationError as error:
        raise MalformedError(str(error)) from error
    except (KeyError, AttributeError, TypeError, UnicodeDecodeError) as error:
        raise MalformedError(f"an object has no kind or no name: {error!r}") from error
    if faults:
        raise MalformedError("; ".join(faults))
    return case


def identity(path: Path) -> str:
    """Return the id that a file gives itself, or its name where it gives none."""
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return path.stem
    found = tree.get("id") if isinstance(tree, dict) else None
    return found if isinstance(found, str) and found else path.stem


def _faults(case: Case) -> Iterator[str]:
    """Yield what the form alone does not show."""
    objects = case.objects()
    for ref in created_by(case.steps):
        if ref not in objects:
            yield f"a step creates {ref}, which is not listed"
    if not case.expect:
        yield "nothing is expected"
    yield from _wrong_steps(case)
    known = Names(case)
    for number, check in enumerate(case.expect):
        yield from (f"expect[{number}]: {fault}" for fault in known.faults(check))
        yield from (
            f"expect[{number}]: {fault}"
            for selection in check.selections
            for fault in _wrong_selection(selection)
        )


def _wrong_steps(case: Case) -> Iterator[str]:
    for number, step in enumerate(case.steps):
        where = f"steps[{number}]"
        match step:
            case schema.Delete(refs=refs):
                yield from (f"{where}: {f}" for ref in refs for f in wrong_reference(ref))
            case schema.ApplyPatch(ref=ref) | schema.TryPatch(ref=ref) | schema.TryDelete(ref=ref):
                yield from (f"{where}: {fault}" for fault in wrong_reference(ref))
            case schema.SetNode(ref=ref) if not ref.startswith("node/"):
                yield f"{where}: {ref} is no node"
            case schema.SetPodPhase(select=select) | schema.SetKubelet(select=select):
                if select.object:
                    yield f"{where}: `object` is for checks of uids"
                if select.is_for_steps and isinstance(step, schema.SetKubelet):
                    yield f"{where}: winnerOf and anyBoundOf are for setPodPhase"
            case schema.Snapshot(name=name) | schema.Watch(name=name) if name == END:
                yield f"{where}: {END} is the moment after the last step"


def _wrong_selection(selection: Selection) -> Iterator[str]:
    if selection.object:
        yield "`object` is for checks of uids"
    if selection.is_for_steps:
        yield "winnerOf and anyBoundOf are for setPodPhase"
    if selection.bound_pods_of:
        yield from _wrong_selection(selection.bound_pods_of)


def wrong_reference(text: str) -> Iterator[str]:
    """Yield what is wrong with a reference to an object."""
    if is_group(text):
        return
    try:
        parse(text)
    except ValueError as error:
        yield str(error)


class Names:
    """The names that the steps give to moments, windows and answers."""

    def __init__(self, case: Case) -> None:
        self.moments = {END}
        self.windows: set[str] = set()
        self.answers: set[str] = set()
        for step in case.steps:
            match step:
                case schema.Snapshot(name=name):
                    self.moments.add(name)
                case schema.Watch(name=name):
                    self.windows.add(name)
                case (
                    schema.TryApply(answer=name)
                    | schema.TryDelete(answer=name)
                    | schema.TryPatch(answer=name)
                ):
                    self.answers.add(name)

    def faults(self, check: AnyCheck) -> Iterator[str]:
        """Yield the names in a check that no step gives, and references that are none."""
        for key, known, what in (
            ("at", self.moments, "snapshot"),
            ("since", self.moments, "snapshot"),
            ("window", self.windows, "watch"),
            ("step", self.answers, "try step"),
        ):
            name = getattr(check, key, None)
            if name is not None and name not in known:
                yield f"no {what} is named {name!r}"
        for ref in check.refers_to:
            yield from wrong_reference(ref)
