"""
The older way to place a queue in a tree: a path and its weights, in two annotations.

    volcano.sh/hierarchy: root/sci/dev        volcano.sh/hierarchy-weights: 1/2/8

Each part of the path has a weight. A queue is a leaf: no other queue's path may lead through it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from pumice.core import names
from pumice.core.admission.errors import FieldError, invalid
from pumice.core.admission.views import Queues
from pumice.core.api.meta import ObjectMeta
from pumice.core.api.scheduling import Queue

SAME_LENGTH = f"{names.HIERARCHY} must have the same length with {names.HIERARCHY_WEIGHTS}"
_FIELD = "metadata.annotations"
_AT = f"requestBody.{_FIELD}"


def rooted(meta: ObjectMeta) -> ObjectMeta:
    """Return the metadata with a path that starts at root, where it has path and weights."""
    path, weights = _given(meta)
    if not path or not weights or path.startswith(names.ROOT_QUEUE):
        return meta
    notes = {names.HIERARCHY: f"{names.ROOT_QUEUE}/{path}", names.HIERARCHY_WEIGHTS: f"1/{weights}"}
    return msgspec.structs.replace(meta, annotations={**(meta.annotations or {}), **notes})


def check(queue: Queue, queues: Queues) -> Iterator[FieldError]:
    """Yield what is wrong with the annotations, where there are any."""
    path, weights = _given(queue.metadata)
    if not path and not weights:
        return
    if path.count("/") != weights.count("/"):
        yield FieldError(_FIELD, invalid(_AT, path, SAME_LENGTH))
    for weight in weights.split("/"):
        if why := _weight(weight, weights):
            yield FieldError(_FIELD, invalid(_AT, weights, why))
    for other in queues.by_name.values():
        theirs, _ = _given(other.metadata)
        if other.metadata.name != queue.metadata.name and theirs.startswith(f"{path}/"):
            why = f"{path} is not allowed to be in the sub path of {theirs} of queue "
            yield FieldError(_FIELD, invalid(_AT, path, why + other.metadata.name))


def _given(meta: ObjectMeta) -> tuple[str, str]:
    notes = meta.annotations or {}
    return notes.get(names.HIERARCHY, ""), notes.get(names.HIERARCHY_WEIGHTS, "")


def _weight(text: str, weights: str) -> str:
    """Return what is wrong with one weight; what Python alone reads as a number is none."""
    try:
        number = float(text if text.strip() == text and "_" not in text else "")
    except ValueError:
        why = f'strconv.ParseFloat: parsing "{text}": invalid syntax'
        return f"{text} in the {weights} is invalid number: {why}"
    if number <= 0 or math.isnan(number):
        return f"{text} in the {weights} must be larger than 0"
    return ""
