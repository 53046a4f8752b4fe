"""capacity: whatever the tree, no queue gets more than it, or any queue above it, may have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pumice.core.actions.allocate import Allocate
from pumice.core.api.core import Pod
from pumice.core.api.scheduling import PodGroup, Queue
from tests.builders import (
    ALL_FLAGS,
    a_cluster,
    a_conf,
    a_job,
    a_node,
    a_plugin,
    a_queue,
    a_session,
    placements,
)

NAMES = tuple("abcdef")
Groups = list[list[PodGroup | Pod]]


@st.composite
def trees(draw: st.DrawFn) -> list[Queue]:
    """Return queues whose parent, if not the root, stands before them."""
    queues = []
    for i, name in enumerate(NAMES):
        parent = draw(st.sampled_from(("root", *NAMES[:i])))
        cpu, kept = draw(st.integers(0, 8)), draw(st.integers(0, 2))
        queues.append(
            a_queue(
                name, parent=parent, capability=f"{cpu} 0" if cpu else None, guarantee=f"{kept} 0"
            )
        )
    return queues


@st.composite
def jobs(draw: st.DrawFn) -> Groups:
    made = []
    for i in range(draw(st.integers(1, 6))):
        n, cpu = draw(st.integers(1, 4)), draw(st.integers(1, 3))
        queue, gang = draw(st.sampled_from(NAMES)), draw(st.integers(1, n))
        made.append([*a_job(f"j{i}", n, f"{cpu} 1Gi", gang=gang, queue=queue, created=i)])
    return made


@given(trees(), jobs())
def test_no_queue_exceeds_what_it_may_have(queues: list[Queue], groups: Groups) -> None:
    conf = a_conf("allocate", [a_plugin("capacity", *ALL_FLAGS), "gang"])
    ssn = a_session(conf, a_cluster(a_node("n", "64 64Gi"), queues, *groups))
    Allocate().execute(ssn)
    placed = placements(ssn.close())
    parents = {queue.metadata.name: queue.spec.parent for queue in queues}
    held = dict.fromkeys(NAMES, 0.0)
    for job in ssn.active:
        own = sum(t.cls.req[0] for t in job.tasks.values() if t.uid in placed)
        if own:
            assert job.queue not in parents.values()
        queue = job.queue
        while queue != "root":
            held[queue] += own
            queue = parents[queue]
    for queue_ in queues:
        limit = (queue_.spec.capability or {}).get("cpu")
        if limit is not None:
            assert held[queue_.metadata.name] <= float(limit) * 1000
