"""
Kinds and where the API server serves them, as it says itself.

A kind in a reference is that of the object which the case lists under it, or a batch kind, or
else the first that the server's discovery offers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pumice.core import names
from pumice.local.api import Api, Object
from pumice.local.errors import ApiError
from tests.cases.errors import LackingError, MalformedError
from tests.cases.moment import is_group, parse

FLOW_API = "flow.volcano.sh/v1alpha1"
BATCH_KINDS: Mapping[str, str] = {
    "job": names.BATCH_API,
    "cronjob": names.BATCH_API,
    "jobflow": FLOW_API,
    "jobtemplate": FLOW_API,
    "command": names.BUS_API,
    "podgroup": names.SCHEDULING_API,
    "queue": names.SCHEDULING_API,
    "hypernode": "topology.volcano.sh/v1alpha1",
    "numatopology": "nodeinfo.volcano.sh/v1alpha1",
}
"""Kinds that a reference means although another group may have one of that name."""
RECORDED = frozenset(
    {
        "/api/v1/pods",
        "/api/v1/nodes",
        f"/apis/{names.BATCH_API}/jobs",
        f"/apis/{names.SCHEDULING_API}/podgroups",
        f"/apis/{names.SCHEDULING_API}/queues",
    }
)
"""The collections that every moment holds whole."""


@dataclass(frozen=True, slots=True)
class Resource:
    """Where objects of a kind are served."""

    root: str
    plural: str
    namespaced: bool

    @property
    def everywhere(self) -> str:
        """The path of the collection over all namespaces."""
        return f"{self.root}/{self.plural}"

    def collection(self, namespace: str) -> str:
        """Return the path of the collection that an object of the namespace belongs to."""
        if not self.namespaced:
            return self.everywhere
        return f"{self.root}/namespaces/{namespace or 'default'}/{self.plural}"


class Kinds:
    """What an API server serves; `listed` are the objects of a case by reference."""

    def __init__(self, api: Api, listed: Mapping[str, Object]) -> None:
        self._api = api
        self._listed = listed
        self._served: dict[str, dict[str, Resource]] = {}

    def of(self, body: Object) -> Resource:
        """Return where objects like this one are served; raise LackingError if they are not."""
        return self._resource(body["apiVersion"], body["kind"].lower())

    def named(self, ref: str) -> Resource:
        """Return where the object is served that is referred to."""
        kind = "podgroup" if is_group(ref) else parse(ref).kind
        if ref in self._listed:
            return self.of(self._listed[ref])
        if kind in BATCH_KINDS:
            return self._resource(BATCH_KINDS[kind], kind)
        for version in self._versions():
            if kind in self._kinds(version):
                return self._kinds(version)[kind]
        raise MalformedError(f"{ref}: the API server knows no kind {kind}, nor does the case")

    def path(self, ref: str) -> str:
        """Return the path of the object that is referred to by kind and name."""
        _, namespace, name = parse(ref)
        return f"{self.named(ref).collection(namespace)}/{name}"

    def path_of(self, body: Object) -> str:
        """Return the path of an object."""
        meta = body["metadata"]
        return f"{self.of(body).collection(meta.get('namespace', ''))}/{meta['name']}"

    def _resource(self, version: str, kind: str) -> Resource:
        found = self._kinds(version).get(kind)
        if found is None:
            raise LackingError(f"not available yet: kind {kind} of {version} is not served")
        return found

    def _versions(self) -> Iterator[str]:
        """Yield the API versions that the server prefers, the core's first."""
        yield "v1"
        for group in self._api.get("/apis")["groups"]:
            yield group["preferredVersion"]["groupVersion"]

    def _kinds(self, version: str) -> dict[str, Resource]:
        if version not in self._served:
            root = f"/apis/{version}" if "/" in version else f"/api/{version}"
            try:
                resources = self._api.get(root)["resources"]
            except ApiError as error:
                if error.status != 404:
                    raise
                resources = []
            self._served[version] = {
                r["kind"].lower(): Resource(root, r["name"], r["namespaced"])
                for r in resources
                if "/" not in r["name"]
            }
        return self._served[version]
