"""Two merge patches as one: the same result, or not merged at all."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pumice.kube.patches import is_done, mergeable, merged
from tests.fakeapi.patching import merge

keys = st.sampled_from("abc")
values = st.recursive(
    st.none() | st.integers(0, 3) | st.lists(st.integers(0, 1), max_size=2),
    lambda inner: st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(keys, values.map(lambda v: {} if v is None else v), max_size=3)
patches = st.dictionaries(keys, values, max_size=3)


@given(documents, patches, patches)
def test_one_patch_does_what_two_do(doc: Any, first: Any, second: Any) -> None:
    if mergeable(first, second):
        assert merge(doc, merged(first, second)) == merge(merge(doc, first), second)


def test_what_must_not_be_merged() -> None:
    assert not mergeable({"a": None}, {"a": {"b": 1}})
    assert not mergeable({"a": {"b": 1}}, {"a": {"b": {"c": 1}}})
    assert mergeable({"a": {"b": 1}}, {"a": {"b": 2, "c": None}})
    assert mergeable({"a": {"b": 1}}, {"a": None})


def test_merging_changes_neither() -> None:
    first, second = {"a": {"b": 1}}, {"a": {"c": 2}}
    assert merged(first, second) == {"a": {"b": 1, "c": 2}}
    assert (first, second) == ({"a": {"b": 1}}, {"a": {"c": 2}})


@given(documents, patches)
def test_what_is_called_done_changes_nothing(doc: Any, patch: Any) -> None:
    if is_done(doc, patch):
        assert without_nulls(merge(doc, patch)) == without_nulls(doc)


@given(documents, patches)
def test_a_patch_that_was_applied_is_done(doc: Any, patch: Any) -> None:
    assert is_done(merge(doc, patch), patch)


def without_nulls(value: Any) -> Any:
    """Return a document without its null fields, which the API server doesn't keep."""
    if not isinstance(value, dict):
        return value
    return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
