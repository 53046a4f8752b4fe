"""Files as people write them: Jobs whose programs end, or do not, come to their phase."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from textwrap import dedent, indent

import pytest

from tests.acceptance.bed import Bed, label
from tests.acceptance.lives import wait_phases

pytestmark = pytest.mark.cluster

PATIENCE_S = 60.0
SERVES = "exec serve --forever"
"""A program without an end."""


@dataclass(frozen=True)
class Case:
    """What a file says below `spec`, and what is to come of it."""

    spec: str
    phases: tuple[str, ...]
    #: the pods in the end: task and phase of each
    pods: dict[tuple[str, str], int]
    retries: int = 0


def task(name: str, replicas: int, program: str, more: str = "") -> str:
    """Return a task in YAML, an item of a list."""
    text = f"""\
        - name: {name}
          replicas: {replicas}
          template:
            spec:
              restartPolicy: Never
              containers:
              - name: main
                image: busybox
                command: [sh, -c, "{program}"]
                resources: {{requests: {{cpu: 500m, memory: 64Mi}}}}
        """
    return dedent(text) + indent(dedent(more), "  ")


ONCE_DONE = "policies: [{event: TaskCompleted, action: CompleteJob}]\n"
CASES = {
    "servers that may be fewer": Case(
        "minAvailable: 2\nplugins: {env: [], svc: [], ssh: []}\n"
        "policies: [{event: PodEvicted, action: RestartJob}]\nmaxRetry: 5\n"
        "tasks:\n" + task("server", 4, SERVES),
        ("Pending", "Running"),
        {("server", "Running"): 4},
    ),
    "a batch of programs": Case(
        "tasks:\n" + task("part", 5, "sleep 2"),
        ("Pending", "Running", "Completed"),
        {("part", "Succeeded"): 5},
    ),
    "a launcher that comes after its workers and ends the job": Case(
        "minAvailable: 2\nplugins: {ssh: [], svc: []}\ntasks:\n"
        + task("launcher", 1, "sleep 2", ONCE_DONE + "dependsOn: {name: [worker]}\n")
        + task("worker", 3, SERVES, "minAvailable: 2\n"),
        ("Pending", "Running", "Completing", "Completed"),
        {("launcher", "Succeeded"): 1},
    ),
    "workers that end the job of their parameter server": Case(
        "plugins: {tensorflow: [--ps=ps, --worker=worker], svc: []}\ntasks:\n"
        + task("ps", 1, SERVES)
        + task("worker", 2, "sleep 3", ONCE_DONE),
        ("Pending", "Running", "Completing", "Completed"),
        {("worker", "Succeeded"): 2},
    ),
    "steps that wait for each other": Case(
        "minAvailable: 1\ntasks:\n"
        + task("first", 1, SERVES)
        + task("second", 2, SERVES, "dependsOn: {name: [first]}\n")
        + task("third", 3, SERVES, "dependsOn: {name: [second]}\n"),
        ("Pending", "Running"),
        {("first", "Running"): 1, ("second", "Running"): 2, ("third", "Running"): 3},
    ),
    "a program that fails among others that do not": Case(
        "minAvailable: 3\ntasks:\n"
        + task("good", 2, "sleep 2")
        + task("bad", 1, "sleep 1 && exit 1"),
        ("Pending", "Running", "Failed"),
        {("good", "Succeeded"): 2, ("bad", "Failed"): 1},
    ),
    "a program that fails and is not needed": Case(
        "minAvailable: 2\ntasks:\n"
        + task("good", 2, "sleep 2")
        + task("bad", 1, "sleep 1 && exit 1"),
        ("Pending", "Running", "Completed"),
        {("good", "Succeeded"): 2, ("bad", "Failed"): 1},
    ),
    "a program that fails again and again": Case(
        "maxRetry: 2\npolicies: [{exitCode: 3, action: RestartJob}]\ntasks:\n"
        + task("steady", 1, SERVES)
        + task("bad", 1, "sleep 2 && exit 3"),
        ("Pending", "Running", "Restarting", "Pending", "Running", "Failed"),
        {("bad", "Failed"): 1},
        retries=2,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_file_comes_to_its_phase(bed: Bed, case: Case) -> None:
    bed.nodes(3, cpu=8)
    kind = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: job}\nspec:\n"
    spec = "schedulerName: volcano\nqueue: default\n" + case.spec
    bed.kubectl("create", "--filename=-", input_text=kind + indent(spec, "  "))

    wait_phases(bed, "job", *case.phases)

    bed.wait_for(lambda: pods(bed) == case.pods, PATIENCE_S, f"the pods are {case.pods}")
    assert (bed.job("job") or {})["status"].get("retryCount", 0) == case.retries


def pods(bed: Bed) -> Counter[tuple[str | None, str | None]]:
    """Count the pods of the Job by task and phase."""
    found = bed.pods_of("job")
    return Counter((label(p, "volcano.sh/task-spec"), p["status"].get("phase")) for p in found)
