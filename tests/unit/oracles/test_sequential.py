"""The engine decides as the rules do that place one task after the other."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.api.core import PodSpec
from tests.builders import (
    Thing,
    a_conf,
    a_group,
    a_node,
    a_plan,
    a_pod,
    a_priority_class,
    a_queue,
    placements,
)
from tests.effort import examples
from tests.unit.oracles.sequential import Amount, Job, Model, Node, Queue, Task

GIB = 2.0**30
CONF = a_conf(
    "enqueue allocate backfill",
    ["priority", "gang", "conformance"],
    ["overcommit", "drf", "predicates", "proportion", "binpack"],
)


def amounts(cpu: int, memory: int, pods: int = 1) -> st.SearchStrategy[Amount]:
    """Return up to so many whole cpus and GiB."""
    return st.tuples(
        st.integers(0, cpu).map(lambda n: n * 1000.0),
        st.integers(0, memory).map(lambda n: n * GIB),
        st.just(float(pods)),
    )


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Return up to four nodes, three queues and five jobs of up to six tasks."""
    nodes = {
        f"n{i}": Node((cpu * 1000.0, memory * GIB, float(pods)))
        for i, (cpu, memory, pods) in enumerate(
            draw(
                st.lists(
                    st.tuples(st.integers(1, 6), st.integers(1, 8), st.sampled_from([3, 5, 110])),
                    min_size=1,
                    max_size=4,
                )
            )
        )
    }
    limit = st.none() | st.integers(1, 8)
    queues = {
        f"q{i}": Queue(
            weight=draw(st.integers(1, 3)),
            priority=draw(st.sampled_from([0, 0, 1])),
            capability=(
                None if (cpu := draw(limit)) is None else cpu * 1000.0,
                None if (memory := draw(limit)) is None else memory * GIB,
            ),
            guarantee=(draw(st.sampled_from([0.0, 0.0, 2000.0])), 0.0, 0.0),
            is_open=draw(st.sampled_from([True, True, True, False])),
        )
        for i in range(draw(st.integers(1, 3)))
    }
    jobs = [
        _a_job(draw, f"j{k}", list(nodes), list(queues)) for k in range(draw(st.integers(1, 5)))
    ]
    return Model(nodes, queues, jobs)


def _a_job(draw: st.DrawFn, name: str, nodes: list[str], queues: list[str]) -> Job:
    roles = draw(st.sampled_from([[""], ["a"], ["a", "b"]]))
    runs = draw(st.booleans())
    tasks = []
    for i in range(draw(st.integers(1, 6))):
        task = Task(f"{name}-w-{i}", draw(amounts(3, 2)), draw(st.sampled_from(roles)))
        task.priority = draw(st.sampled_from([1, 1, 5]))
        if runs and draw(st.booleans()):
            task.status = draw(st.sampled_from(["run", "run", "leaving", "succeeded"]))
            task.node = "" if task.status == "succeeded" else draw(st.sampled_from(nodes))
        else:
            task.gated = draw(st.sampled_from([False] * 9 + [True]))
            task.tied = draw(st.sampled_from([*[""] * 6, *nodes]))
        tasks.append(task)
    with_roles = roles != [""] and draw(st.booleans())
    return Job(
        name,
        draw(st.sampled_from(queues)),
        draw(st.integers(0, len(tasks))),
        tasks,
        phase=draw(st.sampled_from(["Inqueue", "Running"] if runs else ["Pending", "Inqueue"])),
        roles={role: draw(st.integers(0, 2)) for role in roles} if with_roles else {},
        priority=draw(st.sampled_from([0, 0, 10])),
        minimum=draw(st.none() | amounts(4, 1, 0)),
    )


def things(model: Model) -> list[Thing]:
    """Return the same as API objects."""
    made: list[Thing] = [a_priority_class("p10", 10)]
    made += [
        a_node(name, f"{_text(node.offers)} pods={node.offers[2]:.0f}")
        for name, node in model.nodes.items()
    ]
    for name, queue in model.queues.items():
        limits = zip(("cpu={:.0f}m", "memory={:.0f}"), queue.capability, strict=True)
        made.append(
            a_queue(
                name,
                weight=queue.weight,
                priority=queue.priority,
                capability=" ".join(text.format(n) for text, n in limits if n is not None),
                guarantee=_text(queue.guarantee),
                state="Open" if queue.is_open else "Closed",
            )
        )
    for job in model.jobs:
        made.append(
            a_group(
                job.name,
                least=job.least,
                queue=job.queue,
                phase=job.phase,
                roles=job.roles,
                resources=None if job.minimum is None else _text(job.minimum),
                priority="p10" if job.priority else "",
            )
        )
        made += [
            a_pod(
                task.name,
                _text(task.asks),
                job=job.name,
                node=task.node,
                phase="Succeeded" if task.status == "succeeded" else "",
                role=task.role,
                priority=task.priority,
                gates=["example.com/hold"] if task.gated else (),
                deleting=task.status == "leaving",
                spec=PodSpec(
                    node_selector={"kubernetes.io/hostname": task.tied} if task.tied else None
                ),
            )
            for task in job.tasks
        ]
    return made


def _text(amount: Amount) -> str:
    return f"{amount[0]:.0f}m {amount[1]:.0f}"


@settings(max_examples=examples(150), derandomize=True)
@given(models())
def test_the_engine_decides_as_the_rules_are_written(model: Model) -> None:
    plan = a_plan(CONF, things(model))
    assert placements(plan) == model.run()
