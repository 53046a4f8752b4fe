"""The webhooks under load: certificates are replaced, the process is killed, or hangs."""

from __future__ import annotations

import base64
import re
import signal
import socket
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic

import pytest

from pumice.core import names
from pumice.local.services import Webhooks
from tests.acceptance.admission import SECRET, configurations, tried, wait_until
from tests.acceptance.bed import Bed
from tests.acceptance.length import Length
from tests.acceptance.load import Load
from tests.acceptance.objects import Object, a_job, a_pod, a_pod_group, a_queue

pytestmark = pytest.mark.cluster

REPLACED_S = 60.0
HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def has_webhooks() -> bool:
    """Jobs, queues and PodGroups meet the webhooks."""
    return True


# Certificates.


def test_certificates_replaced_one_after_the_other_cost_no_request(
    bed: Bed, webhooks: Webhooks, length: Length
) -> None:
    """A new authority takes 20 s: the API server trusts it before, and the old one after."""
    authorities = length.certificates if length.name == "full" else 1
    calls: Mapping[str, Callable[[], object]] = {
        "a job": partial(tried, bed, a_job("x")),
        "another job": partial(tried, bed, a_job("x")),
        "a queue": partial(tried, bed, a_queue("x")),
        "a group": partial(tried, bed, a_pod_group("x", min_member=1)),
        "a new connection": partial(connect, bed, webhooks),
    }
    served = set()
    with Load(calls) as load:
        for number in range(length.certificates):
            load.wait_for_more(10)
            served.add(replace(bed, webhooks, authority=number < authorities))
        load.wait_for_more(10)
    asked = sum(len(made) for made in load.outcomes.values())
    print(f"\n{length.certificates} certificates, {authorities} authorities, {asked} requests")
    assert load.failures == {}
    assert len(served) == length.certificates


def replace(bed: Bed, webhooks: Webhooks, *, authority: bool) -> str:
    """Have a new certificate made; return it once it is served."""
    old = bed.api.get(SECRET)["data"]
    if authority:
        bed.api.delete(SECRET)
    else:
        bed.api.patch(SECRET, {"data": {"tls.crt": base64.b64encode(b"spoilt").decode()}})

    def is_replaced() -> bool:
        new = (bed.api.get(SECRET) if bed.api.exists(SECRET) else {}).get("data") or old
        return (
            authority == (new["ca.crt"] != old["ca.crt"])
            and presented(webhooks) == base64.b64decode(new["tls.crt"]).decode().strip()
            and trusted(bed) == {new["ca.crt"]}
        )

    wait_until(is_replaced, REPLACED_S)
    return presented(webhooks)


def trusted(bed: Bed) -> set[str]:
    """Return what the API server trusts."""
    return {
        webhook["clientConfig"]["caBundle"]
        for body in configurations(bed)
        for webhook in body["webhooks"]
    }


def connect(bed: Bed, webhooks: Webhooks) -> None:
    """Connect, trusting what the API server trusts at this moment."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for bundle in trusted(bed):
        context.load_verify_locations(cadata=base64.b64decode(bundle).decode())
    with (
        socket.create_connection((HOST, webhooks.tls_port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=HOST),
    ):
        pass


def presented(webhooks: Webhooks) -> str:
    """Return the certificate that a new connection is shown, as PEM."""
    return ssl.get_server_certificate((HOST, webhooks.tls_port)).strip()


# While they are away.

A_JOB = "a Job"
OTHERS: dict[str, Object] = {
    "a pod of another scheduler": a_pod("x", scheduler="default-scheduler"),
    "a pod of ours": a_pod("x"),
    "a pod of the cluster itself": a_pod(
        "x", scheduler="default-scheduler", namespace="kube-system"
    ),
    "a Deployment": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    },
    "a Job of Kubernetes": {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "x"},
        "spec": {
            "template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
            }
        },
    },
}
#: the webhooks are asked about these, and they pass where no answer comes
ASKED: dict[str, Object] = {
    "a pod of ours with a budget": a_pod("x", annotations={names.JDB_MIN_AVAILABLE: "1"}),
    "a PodGroup": a_pod_group("x", min_member=1),
}
STORED = "a pod of another scheduler that is stored"


def calls_of_all(bed: Bed) -> dict[str, Callable[[], object]]:
    """Return the creation of a Job, and of all that must not depend on the webhooks."""
    kept: Object = {**OTHERS["a pod of another scheduler"], "metadata": {"generateName": "x-"}}
    bodies = {A_JOB: a_job("x"), **OTHERS, **ASKED}
    calls: dict[str, Callable[[], object]] = {
        name: partial(tried, bed, body) for name, body in bodies.items()
    }
    return {**calls, STORED: partial(bed.create, kept)}


def test_while_they_are_killed_jobs_are_refused_in_words_and_nobody_else_notices(
    bed: Bed, webhooks: Webhooks
) -> None:
    with Load(calls_of_all(bed)) as load:
        load.wait_for_more(20)
        webhooks.kill()
        killed = monotonic()
        load.wait_for_more(50)
        started = monotonic()
        webhooks.start()
        ready = monotonic()
        load.wait_for_more(20)

    assert load.failures.keys() == {A_JOB}
    for said in load.failures[A_JOB]:
        assert "500 Internal error occurred: failed calling webhook" in said
    away = load.between(A_JOB, killed, started)
    pods = len(load.between(STORED, killed, started))
    print(f"\nwithin {started - killed:.1f} s {len(away)} Jobs refused, {pods} pods created")
    assert len(away) >= 50
    for outcome in away:
        assert 'failed calling webhook "mutatejob.volcano.sh"' in outcome.error
        assert "connection refused" in outcome.error
    assert not any(outcome.error for outcome in load.between(A_JOB, ready))


def test_while_they_hang_jobs_are_refused_in_words_and_what_is_not_theirs_goes_on(
    bed: Bed, webhooks: Webhooks
) -> None:
    with Load(calls_of_all(bed)) as load:
        load.wait_for_more(20)
        webhooks.kill(signal.SIGSTOP)
        stopped = monotonic()
        try:
            load.wait_for_more(1)
        finally:
            awake = monotonic()
            webhooks.kill(signal.SIGCONT)
        load.wait_for_more(5)

    assert load.failures.keys() == {A_JOB}
    away = load.between(A_JOB, stopped, awake)
    assert away
    for outcome in away:
        assert 'failed calling webhook "mutatejob.volcano.sh"' in outcome.error
        assert re.search("context deadline exceeded|TLS handshake timeout", outcome.error)
    assert not any(outcome.error for outcome in load.between(A_JOB, awake))
    # Whoever was asked about would have waited for 2 s and more each time.
    made = {name: len(load.between(name, stopped, awake)) for name in (*OTHERS, STORED)}
    assert min(made.values()) >= 20, made


def test_while_they_are_away_what_is_there_can_be_looked_after(
    bed: Bed, webhooks: Webhooks
) -> None:
    bed.create(a_job("before"))
    bed.wait_for(lambda: bed.pod_group("before"), 20, "the Job has its group")
    webhooks.kill()

    bed.kubectl("label", "jobs.batch.volcano.sh/before", "a=b")
    bed.kubectl("delete", "jobs.batch.volcano.sh/before", "--timeout=30s")

    webhooks.start()
    bed.create(a_job("after"))
