"""Copies of a template."""

from __future__ import annotations

from pumice.local.api import Object
from tests.cases.writer import numbered


def test_a_copy_bears_its_number_wherever_the_template_has_a_place_for_it() -> None:
    template: Object = {
        "metadata": {"name": "t-0", "labels": {"rank": "r{i}"}},
        "spec": {"args": ["--rank={i}", "{j}"], "replicas": 2},
    }
    assert numbered(template, "t-{i}", 7) == {
        "metadata": {"name": "t-7", "labels": {"rank": "r7"}},
        "spec": {"args": ["--rank=7", "{j}"], "replicas": 2},
    }
    assert template["metadata"]["name"] == "t-0"
