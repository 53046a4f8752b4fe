"""What is admitted and refused on a real API server with the policies in place of webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pumice.local.cluster import Cluster
from pumice.local.install import apply, documents
from pumice.local.paths import manifests
from tests.acceptance.admission import (
    KINDS,
    create_examples,
    differences,
    named_by_the_api_server,
    rows_of,
    wait_until_a_closed_queue_takes_nothing,
    wait_until_alike,
)
from tests.acceptance.bed import Bed
from tests.unit.admission.rows import ROWS

pytestmark = pytest.mark.cluster

IN_FORCE_S = 30.0
#: one for each policy
FIRST = (
    "job defaults: a scheduler",
    "job: tasks that wait for each other",
    "job: it goes to another queue",
    "job: a job for a queue with others below",
    "jobflow: a flow after itself",
    "jobtemplate: a container without an image",
    "cronjob: a job that would be refused",
    "pod: a word",
    "podgroup: without a queue it goes to that of the namespace",
    "queue defaults: others may take back",
    "queue: a path without weights",
    "queue: a path that another one leads through",
    "queue: the default queue is deleted",
    "queue: one that is deleted, and has queues below",
)


@pytest.fixture(scope="module")
def cluster(binary_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with the policies; they are in force by the first test."""
    with Cluster(tmp_path_factory.mktemp("cluster"), nodes=0) as running:
        for file in sorted((manifests() / "admission" / "policies").glob("*.yaml")):
            for body in documents(file):
                apply(running.plane.api, body)
        bed = Bed(running)
        bed.open()
        try:
            wait_until_alike(bed, {name: ROWS[name] for name in FIRST}, IN_FORCE_S)
        finally:
            bed.close()
        yield running


@pytest.mark.parametrize("kind", KINDS)
def test_with_policies_it_is_as_the_table_says(bed: Bed, kind: str) -> None:
    assert differences(bed, rows_of(kind)) == {}


def test_with_policies_a_name_may_be_left_to_the_api_server(bed: Bed) -> None:
    assert named_by_the_api_server(bed).startswith("x-")


def test_with_policies_the_examples_are_admitted(bed: Bed) -> None:
    create_examples(bed)


def test_policies_that_are_applied_again_stay_as_they_are(bed: Bed) -> None:
    apply_all = ("apply", f"--filename={manifests() / 'admission' / 'policies'}")
    # As kubectl does without --server-side; it notes what it applied at the first time.
    bed.kubectl(*apply_all)
    printed = bed.kubectl(*apply_all).splitlines()
    assert {line.rpartition(" ")[2] for line in printed} == {"unchanged"}, printed


def test_with_policies_a_closed_queue_takes_nothing(bed: Bed) -> None:
    wait_until_a_closed_queue_takes_nothing(bed)
