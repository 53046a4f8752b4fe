"""
Create, patch and delete the objects of a case.

A refusal is a StepError, but for `attempt`, which returns the answer whatever it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any

from pumice.local.api import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Object
from pumice.local.errors import ApiError
from tests.cases import podfacts, schema
from tests.cases.errors import StepError
from tests.cases.moment import is_group, reference
from tests.cases.record import Answer
from tests.cases.world import World

GONE_TIMEOUT_S = 120.0
ACCOUNT_TIMEOUT_S = 30.0
WRITERS = 32
PATCHES = {"json": JSON_PATCH, "merge": MERGE_PATCH, "strategic": STRATEGIC_PATCH}


class Writer:
    """Writes as the administrator; `objects` are those of the case by reference."""

    def __init__(self, world: World, objects: Mapping[str, Object]) -> None:
        self._world = world
        self._api = world.api
        self._objects = objects

    def establish(self, body: Object) -> None:
        """Create an object, or give one that is there already (queue `default`) these fields."""
        path = self._world.kinds.path_of(body)
        if self._world.get_path(path) is None:
            self.create(body)
        else:
            accepted(reference(body), lambda: self._api.apply(path, body))

    def apply(self, ref: str) -> None:
        """Create an object of the case."""
        self.create(self._objects[ref])

    def apply_many(self, step: schema.ApplyMany) -> None:
        """Create copies of an object of the case."""
        template = self._objects[step.template]
        copies = [numbered(template, step.names, i) for i in range(step.first, step.last + 1)]
        with ThreadPoolExecutor(WRITERS if step.parallel else 1) as pool:
            list(pool.map(self.create, copies))

    def create(self, body: Object) -> None:
        """Create an object; an old one of its name that is still going is waited for."""
        path, deadline = self._world.kinds.path_of(body), monotonic() + GONE_TIMEOUT_S
        while not self._created(body):
            old = self._world.get_path(path)
            if old is not None and "deletionTimestamp" not in old["metadata"]:
                raise StepError(f"{reference(body)} is there already")
            if monotonic() > deadline:
                raise StepError(f"the old {reference(body)} stays for {GONE_TIMEOUT_S:g} s")
            self._world.tick()
        if body["kind"] == "Namespace":
            account = f"serviceaccount/{body['metadata']['name']}/default"
            self._world.must(lambda: self._world.get(account), ACCOUNT_TIMEOUT_S, account)

    def attempt(self, step: schema.TryApply | schema.TryDelete | schema.TryPatch) -> Answer:
        """Send one request and return how it was answered."""
        try:
            match step:
                case schema.TryApply(ref=ref):
                    self._post(self._objects[ref])
                case schema.TryDelete(ref=ref):
                    self._api.request("DELETE", self.path(ref))
                case schema.TryPatch(ref=ref, patch=patch, type=kind):
                    self._api.patch(self.path(ref), patch, PATCHES[kind])
        except ApiError as error:
            return Answer(error.status, error.message)
        return Answer(200)

    def patch(self, what: str, path: str, patch: Any, kind: str = MERGE_PATCH) -> None:
        """Patch what is at a path."""
        accepted(what, lambda: self._api.patch(path, patch, kind))

    def delete(self, step: schema.Delete) -> None:
        """Delete objects, those gone already aside, and wait for their end if that is wanted."""
        going: dict[str, str] = {}
        for ref in step.refs:
            path = self.path(ref)
            found = self._world.get_path(path)
            if found is None:
                continue
            going[path] = found["metadata"]["uid"]
            accepted(ref, lambda path=path: self._api.delete(path))  # type: ignore[misc]
            if step.pods_too:
                self._drop_pods(found["metadata"]["name"])
        if step.wait:
            names = ", ".join(step.refs)
            self._world.must(lambda: self._are_gone(going), GONE_TIMEOUT_S, f"{names} gone")

    def path(self, ref: str) -> str:
        """Return the path of an object that is referred to in any way."""
        if not is_group(ref):
            return self._world.kinds.path(ref)
        key = self._world.moment().group_key(ref)
        if key is None:
            raise StepError(f"there is no {ref}")
        return self._world.kinds.path(f"podgroup/{key}")

    def _created(self, body: Object) -> bool:
        """Send the request; return False where the name is taken."""
        try:
            self._post(body)
        except ApiError as error:
            if error.status != 409:
                raise refused(reference(body), error) from error
            return False
        return True

    def _post(self, body: Object) -> None:
        sent = self._addressed(body) if body["kind"] == "Command" else body
        namespace = body["metadata"].get("namespace", "")
        self._api.post(self._world.kinds.of(body).collection(namespace), sent)

    def _addressed(self, command: Object) -> Object:
        """Return a Command with the uid that the object of its target's name has now."""
        target = command["target"]
        meta = {"name": target["name"], "namespace": command["metadata"].get("namespace", "")}
        found = self._world.get_path(self._world.kinds.path_of({**target, "metadata": meta}))
        if found is None:
            raise StepError(f"{reference(command)}: its target {target['name']} is not there")
        return {**command, "target": {**target, "uid": found["metadata"]["uid"]}}

    def _drop_pods(self, node: str) -> None:
        """Remove a node's pods at once; there is no kubelet any more that could."""
        for pod in self._world.moment().pods.values():
            if podfacts.node(pod) == node:
                self._api.delete(podfacts.path(pod), {"gracePeriodSeconds": 0})

    def _are_gone(self, uids: Mapping[str, str]) -> bool:
        found = {path: self._world.get_path(path) for path in uids}
        return all(
            body is None or body["metadata"]["uid"] != uids[path] for path, body in found.items()
        )


def numbered(template: Object, names: str, number: int) -> Object:
    """Return a copy under its own name, `{i}` replaced by the number wherever it stands."""
    copy: Object = _replaced(template, str(number))
    name = names.replace("{i}", str(number))
    return {**copy, "metadata": {**copy["metadata"], "name": name}}


def _replaced(value: Any, number: str) -> Any:
    if isinstance(value, str):
        return value.replace("{i}", number)
    if isinstance(value, list):
        return [_replaced(item, number) for item in value]
    if isinstance(value, dict):
        return {key: _replaced(item, number) for key, item in value.items()}
    return value


def accepted(what: str, call: Callable[[], object]) -> None:
    """Make a request that must not be refused."""
    try:
        call()
    except ApiError as error:
        raise refused(what, error) from error


def refused(what: str, error: ApiError) -> StepError:
    """Return the error of a step whose request was refused."""
    return StepError(f"{what} is refused: {error.status} {error.message}")
