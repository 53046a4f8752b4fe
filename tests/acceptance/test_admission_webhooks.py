"""What is admitted and refused on a real API server with the webhooks behind it."""

from __future__ import annotations

import pytest

from tests.acceptance.admission import (
    KINDS,
    create_examples,
    creation_ms,
    differences,
    named_by_the_api_server,
    rows_of,
    wait_until_a_closed_queue_takes_nothing,
)
from tests.acceptance.bed import Bed
from tests.acceptance.length import Length, patient

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def has_webhooks() -> bool:
    """Jobs, queues and PodGroups meet the webhooks."""
    return True


@pytest.mark.parametrize("kind", KINDS)
def test_with_webhooks_it_is_as_the_table_says(bed: Bed, kind: str) -> None:
    assert differences(bed, rows_of(kind)) == {}


def test_with_webhooks_a_name_may_be_left_to_the_api_server(bed: Bed) -> None:
    assert named_by_the_api_server(bed).startswith("x-")


def test_with_webhooks_the_examples_are_admitted(bed: Bed) -> None:
    create_examples(bed)


def test_with_webhooks_a_closed_queue_takes_nothing(bed: Bed) -> None:
    wait_until_a_closed_queue_takes_nothing(bed)


def test_what_webhooks_cost(bed: Bed, length: Length) -> None:
    """Against a cluster whose webhooks are registered for nothing that is a Job."""
    count = 2_000 if length.name == "full" else 200
    on = creation_ms(bed, count)
    webhooks = bed.cluster.webhooks
    assert webhooks is not None
    webhooks.start("--enabled-admission=/queues/validate")
    try:
        off = creation_ms(bed, count)
    finally:
        webhooks.start()
    print(f"\n{count} Jobs: {on:.1f} ms each with webhooks, {off:.1f} ms without")
    # Defaults, checks and two round trips over TLS.
    assert on - off < patient(50)
