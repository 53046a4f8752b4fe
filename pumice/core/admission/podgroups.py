"""
Defaults and validation of a PodGroup.

The queue need not be a leaf here, as in Volcano: PodGroups are made by controllers too, and one
that is refused leaves pods without a group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from pumice.core import names
from pumice.core.admission import views
from pumice.core.admission.errors import FieldError
from pumice.core.admission.job_tasks import TWO_TIERS, names_two_tiers
from pumice.core.admission.views import Queues
from pumice.core.api.scheduling import PodGroup


def defaults(group: PodGroup, namespace_annotations: Mapping[str, str]) -> PodGroup:
    """Return the group in the queue that its namespace names, where it asks for none itself."""
    queue = namespace_annotations.get(names.QUEUE_NAME, "")
    if group.spec.queue != names.DEFAULT_QUEUE or not queue:
        return group
    return msgspec.structs.replace(group, spec=msgspec.structs.replace(group.spec, queue=queue))


def check_create(group: PodGroup, queues: Queues) -> list[FieldError]:
    """Return what is wrong with a new PodGroup."""
    return [*_queue(group.spec.queue, queues), *_topology(group)]


def _queue(name: str, queues: Queues) -> Iterator[FieldError]:
    if not name:
        return
    queue = queues.get(name)
    if queue is None:
        yield FieldError("spec.queue", f"unable to find queue: {views.not_found(name)}")
    elif queue.status.state != "Open":
        text = f"can only submit PodGroup to queue with state `Open`, queue `{name}` status is"
        yield FieldError("spec.queue", f"{text} `{queue.status.state}`.")


def _topology(group: PodGroup) -> Iterator[FieldError]:
    if names_two_tiers(group.spec.network_topology):
        yield FieldError("spec.networkTopology", f"{TWO_TIERS}.")
    for index, policy in enumerate(group.spec.sub_group_policy or ()):
        if names_two_tiers(policy.network_topology):
            text = f"in subGroupPolicy '{policy.name}': {TWO_TIERS}."
            yield FieldError(f"spec.subGroupPolicy[{index}].networkTopology", text)
