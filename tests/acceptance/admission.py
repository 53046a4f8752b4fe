"""What a real API server admits and refuses: the table, put to it through kubectl."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from pumice.local.errors import ApiError
from pumice.local.install import collection_of, path_of
from tests.acceptance.bed import STANDING_QUEUES, Bed
from tests.acceptance.length import patient
from tests.acceptance.objects import Object
from tests.unit.admission.rows import ROWS, groups, jobs, queues
from tests.unit.admission.rows.row import Row, at, merged

OPEN_S = 20.0
CLIENTS = 8
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/pumice-webhooks"
SECRET = "/api/v1/namespaces/pumice-system/secrets/pumice-webhooks-tls"
EXAMPLES = Path(__file__).parents[2] / "manifests" / "examples"


def tried(bed: Bed, body: Object) -> Object:
    """Return the object as it would be stored."""
    answer: Object = bed.api.post(collection_of(body, bed.namespace) + "?dryRun=All", body)
    return answer


def configurations(bed: Bed) -> list[Object]:
    """Return the objects that register the webhooks."""
    return [bed.api.get(CONFIGURATIONS.format(kind)) for kind in ("mutating", "validating")]


def wait_until(condition: Callable[[], object], timeout_s: float) -> None:
    """Wait for something that no watch of the bed shows."""
    deadline = monotonic() + patient(timeout_s)
    while not condition():
        assert monotonic() < deadline, "it never came true"
        sleep(0.05)


def rows_of(kind: str) -> dict[str, Row]:
    """Return the rows of one kind."""
    return {name: row for name, row in ROWS.items() if name.partition(":")[0] == kind}


KINDS = tuple(dict.fromkeys(name.partition(":")[0] for name in ROWS))


def differences(bed: Bed, rows: Mapping[str, Row]) -> dict[str, object]:
    """Return what came out otherwise than the table says, by row."""
    found = {}
    for name, row in rows.items():
        if (got := difference(bed, row)) is not None:
            found[name] = got
    return found


def difference(bed: Bed, row: Row) -> object:
    """Return what came out otherwise than a row says; None where nothing did."""
    with _set(bed, row):
        try:
            stored = _deed(bed, row)
        except AssertionError as refused:
            said = str(refused)
            return None if row.refused and all(word in said for word in row.refused) else said
    if row.refused:
        return "it was admitted"
    got = {path: at(stored, path) for path in row.stored}
    return None if got == dict(row.stored) else got


@contextmanager
def _set(bed: Bed, row: Row) -> Iterator[None]:
    """Have the queues and the namespace that a row asks for; take all away afterwards."""
    namespace = f"/api/v1/namespaces/{bed.namespace}"
    # A queue below the row's own one can only come after it.
    first = [q for q in row.queues if q["spec"].get("parent") != row.body["metadata"]["name"]]
    if row.notes:
        bed.api.patch(namespace, {"metadata": {"annotations": dict(row.notes)}})
    bed.create(*first)
    try:
        _wait_open(bed, first)
        yield
    finally:
        for body in [*reversed(row.queues), row.body]:
            if body["metadata"]["name"] not in STANDING_QUEUES:
                _remove(bed, body)
        if row.notes:
            bed.api.patch(namespace, {"metadata": {"annotations": dict.fromkeys(row.notes)}})


def _remove(bed: Bed, body: Object) -> None:
    """Delete an object where it is there; one above others goes once they are known to be gone."""
    deadline = monotonic() + patient(OPEN_S)
    while bed.api.exists(path_of(body, bed.namespace)):
        with suppress(ApiError):
            bed.delete(body)
        assert monotonic() < deadline, f"{path_of(body)} cannot be deleted"
        sleep(0.05)


def _deed(bed: Bed, row: Row) -> Object:
    """Do what a row says; return what is stored then, or raise with what kubectl says."""
    if not (row.change or row.deleted):
        return _kubectl(bed, "create", row.body, "--dry-run=server")
    name = row.body["metadata"]["name"]
    stored: Object = {}
    if name not in STANDING_QUEUES:
        stored = _kubectl(bed, "create", row.body)
    if row.body["kind"] == "Queue":
        _wait_open(bed, [row.body])
    if below := [q for q in row.queues if q["spec"].get("parent") == name]:
        bed.create(*below)
        _wait_open(bed, below)
    if row.deleted:
        bed.kubectl("delete", "queues.scheduling.volcano.sh", name, "--timeout=20s")
        return {}
    assert row.change is not None
    body = merged(stored, row.change)
    body["metadata"] = {"name": name}
    return _kubectl(bed, "replace", body)


def _kubectl(bed: Bed, verb: str, body: Object, *options: str) -> Object:
    text = json.dumps(body)
    answer = bed.kubectl(verb, "--filename=-", "--output=json", *options, input_text=text)
    stored: Object = json.loads(answer)
    return stored


def _wait_open(bed: Bed, made: list[Object]) -> None:
    names = {body["metadata"]["name"] for body in made}
    bed.wait_for(
        lambda: all(bed.queues.get(n, {}).get("status", {}).get("state") == "Open" for n in names),
        OPEN_S,
        f"queues {names} are open",
    )


def wait_until_alike(bed: Bed, rows: Mapping[str, Row], timeout_s: float) -> None:
    """Wait until rows come out as the table says: policies take a moment to be in force."""
    deadline = monotonic() + patient(timeout_s)
    while found := differences(bed, rows):
        assert monotonic() < deadline, found
        sleep(0.2)


def create_examples(bed: Bed) -> None:
    """Create everything in the examples, as a user does; raise with what kubectl says."""
    for file in sorted(EXAMPLES.glob("*.yaml")):
        bed.kubectl("create", f"--filename={file}")


def named_by_the_api_server(bed: Bed) -> str:
    """Return the name that the API server gives a Job that leaves its name open."""
    body = {**jobs.a_job(), "metadata": {"generateName": "x-"}}
    name: str = _kubectl(bed, "create", body, "--dry-run=server")["metadata"]["name"]
    return name


def wait_until_a_closed_queue_takes_nothing(bed: Bed) -> None:
    """Close a queue, and wait until Jobs and groups are refused for that: by a watch they know."""
    shut = queues.a_queue("shut")
    bed.create(shut)
    _wait_open(bed, [shut])
    bed.api.patch(f"{path_of(shut)}/status", {"status": {"state": "Closed"}})
    bed.wait_for(lambda: bed.queues["shut"]["status"]["state"] == "Closed", OPEN_S, "it is closed")
    rows = {
        "a job": Row(
            jobs.a_job(queue="shut"),
            ("to queue with state `Open`, queue `shut` status is `Closed`",),
        ),
        "a group": Row(
            groups.a_group(queue="shut"),
            ("to queue with state `Open`, queue `shut` status is `Closed`",),
        ),
    }
    try:
        wait_until_alike(bed, rows, OPEN_S)
    finally:
        bed.delete(shut)


def creation_ms(bed: Bed, count: int) -> float:
    """Return what the creation of a Job takes, with eight clients at once; none is stored."""
    path = collection_of(jobs.a_job(), bed.namespace) + "?dryRun=All"
    began = monotonic()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda _: bed.api.post(path, jobs.a_job()), range(count)))
    return (monotonic() - began) / count * 1000
