"""Questions and answers: what each path says, and that nothing makes it say nonsense."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pumice.core import names
from pumice.core.admission.resource_groups import parse
from tests.adapters.webhooks.shapes import reviews
from tests.adapters.webhooks.world import (
    TABLE,
    FixedQueues,
    Object,
    a_job,
    an_app,
    as_json,
    asked,
    no_annotations,
    response,
)
from tests.builders import a_queue
from tests.effort import examples
from webhooks.metrics import Metrics
from webhooks.reviews import Options, Reviews
from webhooks.server import BODY_LIMIT, App
from webhooks.table import Webhook
from webhooks.wire import Request

EXAMPLES = examples(360, enduring=10_000)


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(an_app(a_queue("closed", state="Closed")))
    async with httpx.AsyncClient(transport=transport, base_url="https://webhooks") as client:
        yield client


async def post(client: httpx.AsyncClient, path: str, body: bytes, **headers: str) -> httpx.Response:
    return await client.post(
        path, content=body, headers={"Content-Type": "application/json", **headers}
    )


def denial(*causes: tuple[str, str]) -> Object:
    """Return the response that denies for these (field, message)."""
    return {
        "uid": "u-1",
        "allowed": False,
        "status": {
            "message": "; ".join(message for _, message in causes),
            "details": {
                "causes": [
                    {"reason": "FieldValueInvalid", "message": message, "field": field}
                    for field, message in causes
                ]
            },
        },
    }


def patched(*steps: tuple[str, Any]) -> Object:
    """Return the response that changes these (path, value)."""
    patch = [{"op": "add", "path": path, "value": value} for path, value in steps]
    return {"uid": "u-1", "allowed": True, "patch": patch}


ALLOWED: Object = {"uid": "u-1", "allowed": True}


@dataclass(frozen=True)
class Case:
    path: str
    want: Object
    obj: Object | None = None
    old: Object | None = None
    operation: str = "CREATE"
    name: str = "x"


A_CIRCLE: Object = {"name": "a", "dependsOn": {"targets": ["a"]}}

CASES = {
    "a job gets its defaults": Case(
        "/jobs/mutate",
        patched(
            ("/spec/schedulerName", "volcano"),
            ("/spec/minAvailable", 1),
            ("/spec/tasks/0/minAvailable", 1),
            ("/spec/tasks/0/maxRetry", 3),
        ),
        a_job(),
    ),
    "a job without a specification gets one": Case(
        "/jobs/mutate",
        patched(("/spec", {}), ("/spec/schedulerName", "volcano")),
        {"metadata": {"name": "j"}},
    ),
    "a job that the schema will refuse is left to it": Case(
        "/jobs/mutate", ALLOWED, a_job(minAvailable=-1)
    ),
    "a job in order": Case("/jobs/validate", ALLOWED, a_job()),
    "a job with two faults": Case(
        "/jobs/validate",
        denial(
            ("spec.plugins[x]", "unable to find job plugin: x"),
            (
                "spec.queue",
                "can only submit job to queue with state `Open`, queue `closed` status is `Closed`",
            ),
        ),
        a_job(plugins={"x": None}, queue="closed"),
    ),
    "a job that cannot be read": Case(
        "/jobs/validate",
        denial(("", "Job: Expected `int` >= 0 - at `$.spec.minAvailable`")),
        a_job(minAvailable=-1),
    ),
    "a job whose size changes": Case(
        "/jobs/validate", ALLOWED, a_job(minAvailable=0), a_job(minAvailable=1), "UPDATE"
    ),
    "a job whose queue changes": Case(
        "/jobs/validate",
        denial(
            (
                "spec.queue",
                "job updates may not change fields other than `minAvailable`,"
                " `tasks[*].replicas under spec` and `PriorityClassName`",
            )
        ),
        a_job(queue="other"),
        a_job(),
        "UPDATE",
    ),
    "a queue gets its defaults": Case(
        "/queues/mutate",
        patched(("/spec/weight", 1), ("/spec/reclaimable", True)),
        {"metadata": {"name": "q"}, "spec": {"weight": 0}},
    ),
    "a queue with everything": Case(
        "/queues/mutate",
        ALLOWED,
        {"metadata": {"name": "q"}, "spec": {"weight": 5, "reclaimable": False}},
    ),
    "a queue below nothing": Case(
        "/queues/validate",
        denial(
            (
                "spec.parent",
                "failed to get parent queue p of queue q:"
                ' queue.scheduling.volcano.sh "p" not found',
            )
        ),
        as_json(a_queue("q", parent="p")),
    ),
    "a queue whose weight changes": Case(
        "/queues/validate",
        ALLOWED,
        as_json(a_queue("q", weight=2)),
        as_json(a_queue("q")),
        "UPDATE",
    ),
    "the default queue stays": Case(
        "/queues/validate",
        denial(("metadata.name", "`default` queue can not be deleted")),
        None,
        as_json(a_queue("default")),
        "DELETE",
        name="default",
    ),
    "a cron job with two faults": Case(
        "/cronjobs/validate",
        denial(
            ("spec.schedule", "schedule is not a valid cron expression"),
            ("spec.timeZone", "invalid timeZone"),
        ),
        {
            "metadata": {"name": "c"},
            "spec": {
                "schedule": "soon",
                "timeZone": "Mars/Olympus",
                "jobTemplate": {"spec": a_job()["spec"]},
            },
        },
    ),
    "a flow with a circle": Case(
        "/jobflows/validate",
        denial(("spec.flows", "jobflow Flow is not DAG")),
        {"metadata": {"name": "f"}, "spec": {"flows": [A_CIRCLE]}},
    ),
    "a template of nothing": Case(
        "/jobtemplates/validate",
        denial(("spec.tasks", "No task specified in job spec")),
        {"metadata": {"name": "t"}, "spec": {}},
    ),
    "a hypernode by an expression that is none": Case(
        "/hypernodes/validate",
        denial(
            (
                "spec.members[0].selector.regexMatch.pattern",
                '.spec.members.selector.regexMatch.pattern: Invalid value: "(": member regexMatch'
                " pattern is invalid: error parsing regexp: missing ), unterminated subpattern at"
                " position 0",
            )
        ),
        {
            "metadata": {"name": "h"},
            "spec": {
                "tier": 1,
                "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "("}}}],
            },
        },
    ),
    "a group in a closed queue": Case(
        "/podgroups/validate",
        denial(
            (
                "spec.queue",
                "can only submit PodGroup to queue with state `Open`, queue `closed` status is"
                " `Closed`.",
            )
        ),
        {"metadata": {"name": "g"}, "spec": {"queue": "closed"}},
    ),
    "a group whose namespace names no queue": Case(
        "/podgroups/mutate", ALLOWED, {"metadata": {"name": "g"}, "spec": {"minMember": 1}}
    ),
    "a pod of ours is held": Case(
        "/pods/mutate",
        patched(("/spec/schedulingGates", [{"name": names.GATE_HELD}])),
        {"metadata": {"name": "p"}, "spec": {"schedulerName": "volcano", "containers": []}},
    ),
    "a pod of another scheduler is not": Case(
        "/pods/mutate",
        ALLOWED,
        {"metadata": {"name": "p"}, "spec": {"schedulerName": "default-scheduler"}},
    ),
    "a pod with a budget of nothing": Case(
        "/pods/validate",
        denial(
            (
                "metadata.annotations[volcano.sh/jdb-min-available]",
                'invalid value <"0"> for volcano.sh/jdb-min-available, it must be a positive'
                " integer",
            )
        ),
        {
            "metadata": {"annotations": {names.JDB_MIN_AVAILABLE: "0"}},
            "spec": {"schedulerName": "volcano"},
        },
    ),
    "an operation that nobody is asked about": Case(
        "/jobs/mutate",
        denial(("", "invalid operation `UPDATE`, expect operation to be 'CREATE'")),
        a_job(),
        a_job(),
        "UPDATE",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_answer(client: httpx.AsyncClient, case: Case) -> None:
    webhook = TABLE[case.path]
    body = asked(webhook, case.obj, case.old, operation=case.operation, name=case.name)

    answer = await post(client, case.path, body)

    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert response(answer.content) == case.want


async def test_where_kube_scheduler_is_shared_a_held_pod_is_marked() -> None:
    reviews = Reviews(FixedQueues(), no_annotations, Options(marker=True))
    webhook = TABLE["/pods/mutate"]
    pod = {"spec": {"schedulerName": "volcano", "containers": [{"name": "c"}]}}

    _, answer = await App([webhook], reviews, Metrics()).review(webhook, asked(webhook, pod))

    marks = dict.fromkeys(sorted(names.MARKERS), "1")
    assert response(answer) == patched(
        ("/spec/containers/0/resources", {"requests": marks, "limits": marks}),
        ("/spec/schedulingGates", [{"name": names.GATE_HELD}]),
    )


GROUP = """
resourceGroups:
- object: {key: namespace, value: [default]}
  schedulerName: volcano
  labels: {disk: ssd}
"""


async def test_a_pod_of_a_group_may_become_ours_and_is_held_then() -> None:
    reviews = Reviews(FixedQueues(), no_annotations, Options())
    reviews.groups = parse(GROUP)
    webhook = TABLE["/pods/mutate"]
    pod = {"spec": {"schedulerName": "default-scheduler"}}

    _, answer = await App([webhook], reviews, Metrics()).review(webhook, asked(webhook, pod))

    assert response(answer) == patched(
        ("/spec/nodeSelector", {"disk": "ssd"}),
        ("/spec/schedulerName", "volcano"),
        ("/spec/schedulingGates", [{"name": names.GATE_HELD}]),
    )


@pytest.mark.parametrize("wanted", [True, False])
async def test_volcanos_own_gate_is_put_on_where_both_ask_for_it(wanted: bool) -> None:
    reviews = Reviews(FixedQueues(), no_annotations, Options(queue_gate=wanted))
    webhook = TABLE["/pods/mutate"]
    notes = {"annotations": {names.QUEUE_ALLOCATION_GATE: "true"}}
    pod = {"metadata": notes, "spec": {"schedulerName": "volcano"}}

    _, answer = await App([webhook], reviews, Metrics()).review(webhook, asked(webhook, pod))

    gates = [{"name": names.QUEUE_ALLOCATION_GATE}]
    assert response(answer) == (patched(("/spec/schedulingGates", gates)) if wanted else ALLOWED)


async def test_another_resource_is_not_for_this_path(client: httpx.AsyncClient) -> None:
    answer = await post(client, "/jobs/validate", asked(TABLE["/pods/validate"], {}))
    want = denial(("", "expect resource to be {batch.volcano.sh v1alpha1 jobs}"))
    assert response(answer.content) == want


async def test_another_version_of_reviews_is_not_spoken(client: httpx.AsyncClient) -> None:
    body = json.loads(asked(TABLE["/jobs/validate"], a_job()))
    body["apiVersion"] = "admission.k8s.io/v1beta1"
    answer = await post(client, "/jobs/validate", json.dumps(body).encode())
    text = "expect admission.k8s.io/v1 AdmissionReview, got admission.k8s.io/v1beta1"
    assert response(answer.content) == denial(("", f"{text} AdmissionReview"))


async def test_a_body_over_the_limit_is_refused(client: httpx.AsyncClient) -> None:
    answer = await post(client, "/jobs/validate", b" " * (BODY_LIMIT + 1))
    assert (answer.status_code, answer.text) == (413, "request body too large")


async def test_only_json_is_read(client: httpx.AsyncClient) -> None:
    body = asked(TABLE["/jobs/validate"], a_job())
    texts = ("text/plain", "application/json; charset=utf-8")
    got = [
        (await post(client, "/jobs/validate", body, **{"Content-Type": t})).status_code
        for t in texts
    ]
    assert got == [415, 200]


async def test_other_paths_and_methods(client: httpx.AsyncClient) -> None:
    assert (await post(client, "/jobs", b"{}")).status_code == 404
    assert (await client.get("/jobs/validate")).status_code == 405


class Broken(Reviews):
    """A judge that fails on everything."""

    def __init__(self) -> None:
        pass

    async def answer(self, path: str, request: Request) -> Any:
        raise ZeroDivisionError


async def test_a_fault_of_ours_is_no_where_it_is_ours_and_yes_where_it_is_others() -> None:
    app = App(list(TABLE.values()), Broken(), Metrics())
    got = {
        path: response((await app.review(webhook, asked(webhook, {})))[1])["allowed"]
        for path, webhook in TABLE.items()
    }
    assert got == {
        "/jobs/mutate": False,
        "/jobs/validate": False,
        "/queues/mutate": False,
        "/queues/validate": False,
        "/cronjobs/validate": False,
        "/jobflows/validate": False,
        "/jobtemplates/validate": False,
        "/hypernodes/validate": True,
        "/podgroups/mutate": True,
        "/podgroups/validate": True,
        "/pods/mutate": True,
        "/pods/validate": True,
    }


async def test_answers_are_counted_by_path_and_outcome() -> None:
    metrics = Metrics()
    transport = httpx.ASGITransport(an_app(metrics=metrics))
    async with httpx.AsyncClient(transport=transport, base_url="https://webhooks") as client:
        await post(client, "/jobs/mutate", asked(TABLE["/jobs/mutate"], a_job()))
        await post(client, "/jobs/mutate", b"?")
    text = (await metrics.made.render()).decode()
    for outcome in ("patched", "unreadable"):
        assert f'requests_total{{outcome="{outcome}",path="/jobs/mutate"}} 1.0' in text


# Garbage.

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=15,
)
FIELDS = st.sampled_from(
    (
        "annotations",
        "capability",
        "containers",
        "dependsOn",
        "exactMatch",
        "flows",
        "deserved",
        "guarantee",
        "jobTemplate",
        "labels",
        "members",
        "metadata",
        "minAvailable",
        "name",
        "networkTopology",
        "parent",
        "pattern",
        "partitionPolicy",
        "plugins",
        "policies",
        "queue",
        "regexMatch",
        "replicas",
        "schedule",
        "schedulerName",
        "schedulingGates",
        "selector",
        "spec",
        "status",
        "targets",
        "tasks",
        "template",
        "tier",
        "timeZone",
        "volumes",
        "weight",
    )
)
KNOWN = st.recursive(
    SCALARS | st.sampled_from(("volcano", "default", "1", "-1", "1Gi", "*")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=5),
    max_leaves=25,
)
OBJECTS = st.fixed_dictionaries(
    {}, optional={"metadata": KNOWN, "spec": st.dictionaries(FIELDS, KNOWN), "status": KNOWN}
)
PATHS = st.sampled_from(sorted(TABLE))


async def answered(path: str, body: bytes) -> httpx.Response:
    transport = httpx.ASGITransport(an_app(a_queue("closed", state="Closed")))
    async with httpx.AsyncClient(transport=transport, base_url="https://webhooks") as client:
        return await post(client, path, body)


def is_verdict(answer: httpx.Response) -> bool:
    """Tell whether the API server could do something with the answer."""
    if answer.status_code != 200:
        return False
    found = response(answer.content)
    return found["allowed"] or bool(found["status"]["message"])


GARBAGE = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])


@GARBAGE
@given(PATHS, st.binary(max_size=200) | ANYTHING.map(lambda value: json.dumps(value).encode()))
async def test_any_body_is_answered_with_a_verdict(path: str, body: bytes) -> None:
    assert is_verdict(await answered(path, body))


@GARBAGE
@given(PATHS, OBJECTS | ANYTHING, OBJECTS | st.none(), st.sampled_from(("CREATE", "UPDATE")))
async def test_any_object_is_answered_with_a_verdict(
    path: str, obj: Any, old: Any, operation: str
) -> None:
    webhook = TABLE[path]
    app = an_app(a_queue("closed", state="Closed"))

    outcome, answer = await app.review(webhook, asked(webhook, obj, old, operation=operation))

    assert outcome != "failed"
    found = response(answer)
    assert found["allowed"] or found["status"]["message"]


@pytest.fixture(scope="module")
def seconds() -> Iterator[list[float]]:
    """What reviews took; told at the end."""
    taken: list[float] = []
    yield taken
    p99 = sorted(taken)[int(len(taken) * 0.99)]
    rate = len(taken) / sum(taken)
    print(f"\n{len(taken)} reviews: p99 {p99 * 1000:.2f} ms, {rate:.0f} a second")


@GARBAGE
@given(reviews())
async def test_any_object_of_the_right_shape_is_answered_with_a_verdict(
    seconds: list[float], review: tuple[Webhook, bytes]
) -> None:
    app = an_app(a_queue("a", parent="b"))
    began = time.perf_counter()
    outcome, answer = await app.review(*review)
    seconds.append(time.perf_counter() - began)

    assert outcome != "failed"
    found = response(answer)
    assert found["allowed"] or found["status"]["message"]


DEEP = {
    "a body of lists in lists": b"[" * 100_000,
    "an object of objects in objects": asked(TABLE["/jobs/validate"], {"spec": 0}).replace(
        b'"spec": 0', b'"spec":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000
    ),
    "a template of objects in objects": asked(
        TABLE["/jobs/validate"], a_job(tasks=[{"name": "w", "template": {"spec": "HERE"}}])
    ).replace(b'"HERE"', b'{"a":' * 900 + b"1" + b"}" * 900),
    "a number that is too large": asked(TABLE["/jobs/validate"], a_job()).replace(
        b'"replicas": 1', b'"replicas": 1e999'
    ),
    "no text at all": b"\xff\xfe\x00",
    "nothing": b"",
}


@pytest.mark.parametrize("path", sorted(TABLE))
@pytest.mark.parametrize("body", DEEP.values(), ids=DEEP.keys())
async def test_what_breaks_parsers_is_answered(path: str, body: bytes) -> None:
    assert is_verdict(await answered(path, body))
