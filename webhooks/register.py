"""
The registration: which requests the API server brings to us, and whose signature it trusts.

Two objects, both ours alone: they are made where they are missing, and put right where somebody
changed what we need of them. They belong to our namespace and go with it, so that what is left
of an uninstalled Pumice refuses nobody's Jobs.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pumice.core.api.meta import Template
from pumice.kube.client import Client, Selector
from pumice.kube.clock import Clock
from pumice.kube.errors import KubeError, NotFound
from pumice.kube.informer import Event, Informer
from pumice.kube.patches import ApplyPatch, Json
from pumice.kube.resources import (
    MUTATING_POLICIES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    VALIDATING_WEBHOOKS,
    Resource,
    WebhookConfiguration,
)
from pumice.kube.workqueue import WorkQueue
from webhooks.metrics import Metrics
from webhooks.table import NAMES, Webhook, spared

log = logging.getLogger(__name__)

NAME: Final = "pumice-webhooks"
GATE_POLICY: Final = "pumice-gate"
CHECK_S: Final = 60.0
CHANGED_S: Final = 1.0
RETRY_CAP_S: Final = 10.0
KINDS: Final = {resource.kind: resource for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)}

Gate = Literal["auto", "on", "off"]
"""Whether we put the gate on pods: `auto` where the admission policy that does is not there."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the API server finds us: a Service, or a URL where one is given."""

    namespace: str
    service: str
    url: str = ""

    def client_config(self, path: str, bundle: bytes) -> Json:
        """Return where one webhook is."""
        trusted = {"caBundle": base64.b64encode(bundle).decode()}
        if self.url:
            return {"url": self.url.rstrip("/") + path, **trusted}
        service = {"namespace": self.namespace, "name": self.service, "path": path, "port": 443}
        return {"service": service, **trusted}


def entry(webhook: Webhook, endpoint: Endpoint, bundle: bytes) -> Json:
    """Return one webhook as it is to stand in its object."""
    group, version = webhook.group
    away = {"key": "kubernetes.io/metadata.name", "operator": "NotIn"}
    away_from = [{**away, "values": spared(endpoint.namespace)}]
    body: Json = {
        "name": webhook.name,
        "clientConfig": endpoint.client_config(webhook.path, bundle),
        "rules": [
            {
                "apiGroups": [group],
                "apiVersions": [version],
                "operations": list(webhook.operations),
                "resources": [webhook.resource],
                "scope": "*",
            }
        ],
        "failurePolicy": webhook.failure_policy,
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": away_from} if webhook.namespaced else {},
        "objectSelector": {},
        "sideEffects": "None",
        "timeoutSeconds": webhook.timeout_s,
        "admissionReviewVersions": ["v1"],
        "matchConditions": [
            {"name": condition.name, "expression": condition.expression}
            for condition in webhook.conditions
        ],
    }
    if webhook.mutates:
        body["reinvocationPolicy"] = "IfNeeded" if webhook.again else "Never"
    return body


def is_right(
    wanted: Sequence[Json], stored: WebhookConfiguration | None, all_names: Collection[str]
) -> bool:
    """
    Tell whether an object holds what is wanted.

    Fields that we do not set, which a newer API server may give defaults, and webhooks that are
    none of ours are left alone. So are further authorities: while they change, replicas may be
    of different minds about them.
    """
    have = {str(found.get("name")): found for found in (stored.webhooks or () if stored else ())}
    wanted_names = {body["name"] for body in wanted}
    left_over = (have.keys() & all_names) - wanted_names
    return not left_over and all(_holds(body, have.get(body["name"])) for body in wanted)


def _holds(wanted: Any, have: Any) -> bool:
    if isinstance(wanted, dict) and isinstance(have, dict):
        return all(
            _trusts(value, have.get(key)) if key == "caBundle" else _holds(value, have.get(key))
            for key, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(have, list):
        same = len(wanted) == len(have)
        return same and all(_holds(a, b) for a, b in zip(wanted, have, strict=True))
    return bool(wanted == have or (wanted in ([], {}) and have is None))


def _more(wanted: Sequence[Json], stored: WebhookConfiguration | None) -> bool:
    """Tell whether the API server trusts more authorities than these."""
    bundles = {body["clientConfig"]["caBundle"] for body in wanted}
    have = {found["clientConfig"].get("caBundle") for found in (stored and stored.webhooks) or ()}
    return not have <= bundles


def _trusts(wanted: str, have: object) -> bool:
    """Tell whether a caBundle holds at least the authorities of another."""
    try:
        return _authorities(wanted) <= _authorities(str(have))
    except (binascii.Error, ValueError):
        return wanted == have


def _authorities(bundle: str) -> set[bytes]:
    end = b"-----END CERTIFICATE-----"
    return {part.strip() for part in base64.b64decode(bundle).split(end)}


class Registrar:
    """Keeps both objects right; `run` works until it is cancelled."""

    def __init__(
        self,
        client: Client,
        webhooks: Sequence[Webhook],
        endpoint: Endpoint,
        metrics: Metrics,
        clock: Clock,
        *,
        gate: Gate = "auto",
    ) -> None:
        self._client = client
        self._webhooks = webhooks
        self._endpoint = endpoint
        self._metrics = metrics
        self._gate = gate
        self._bundle = b""
        self._right: dict[str, bytes] = {}
        #: objects from which authorities that we do not name are still to be removed
        self._alone: set[str] = set()
        self._news = asyncio.Event()
        self._queue: WorkQueue[str] = WorkQueue(
            "registration", self._look, workers=1, clock=clock, cap_s=RETRY_CAP_S
        )
        self._informers = {
            kind: Informer(
                client,
                resource,
                self._on_change(kind),
                select=Selector(fields=f"metadata.name={NAME}"),
                clock=clock,
            )
            for kind, resource in KINDS.items()
        }

    async def run(self) -> None:
        """Watch the objects and keep them right."""
        async with asyncio.TaskGroup() as group:
            for kind, informer in self._informers.items():
                group.create_task(informer.run(), name=f"informer: {kind}")
            for informer in self._informers.values():
                await informer.synced.wait()
            group.create_task(self._queue.run(), name="registration")
            self._look_at_all()

    def bring(self, webhooks: Sequence[Webhook]) -> None:
        """Have the API server bring other requests from now on."""
        self._webhooks = webhooks
        self._look_at_all()

    async def put(self, bundle: bytes, *, alone: bool = False) -> None:
        """
        Have the API server trust these authorities; return when it has been told.

        Others that it trusts stay, unless these shall be `alone`.
        """
        self._bundle = bundle
        self._alone.update(KINDS if alone else ())
        self._look_at_all()
        while not self.is_registered or self._alone:
            await self._news.wait()

    @property
    def is_registered(self) -> bool:
        """Whether both objects hold what is wanted, as far as we know."""
        return bool(self._bundle) and all(self._right.get(kind) == self._bundle for kind in KINDS)

    def _on_change(self, kind: str) -> Any:
        def changed(_: Event[WebhookConfiguration, WebhookConfiguration]) -> None:
            # Replicas of two versions may differ for the time of an upgrade: no hot dispute.
            self._queue.add_after(kind, CHANGED_S)

        return changed

    def _look_at_all(self) -> None:
        for kind in KINDS:
            self._queue.add(kind)

    async def _look(self, kind: str) -> None:
        """Put one object right where it is not."""
        bundle = self._bundle
        informer = self._informers[kind]
        if not bundle or not informer.synced.is_set():
            return
        mutates = kind == MUTATING_WEBHOOKS.kind
        mine = [webhook for webhook in self._webhooks if webhook.mutates == mutates]
        gate = mutates and await self._needs_gate()
        wanted = [
            entry(webhook, self._endpoint, bundle) for webhook in mine if not webhook.spare or gate
        ]
        stored = informer.store.get(NAME)
        if not is_right(wanted, stored, NAMES) or (kind in self._alone and _more(wanted, stored)):
            log.info("%s %s: putting it right", kind, NAME)
            self._metrics.registrations.inc()
            informer.observe(await self._apply(KINDS[kind], wanted))
        self._right[kind] = bundle
        self._alone.discard(kind)
        self._news.set()
        self._news = asyncio.Event()
        self._queue.add_after(kind, CHECK_S)

    async def _apply(
        self, resource: Resource[WebhookConfiguration], wanted: Sequence[Json]
    ) -> WebhookConfiguration:
        body: Json = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": NAME, **await self._owners()},
            "webhooks": list(wanted),
        }
        return await self._client.patch(resource, "", NAME, ApplyPatch(body))

    async def _owners(self) -> Template:
        """Return the reference to our namespace; without it the objects are nobody's."""
        try:
            home = await self._client.get(NAMESPACES, "", self._endpoint.namespace)
        except KubeError as error:
            log.warning("namespace %s: %s", self._endpoint.namespace, error)
            return {}
        owner = {
            "apiVersion": NAMESPACES.api_version,
            "kind": NAMESPACES.kind,
            "name": home.metadata.name,
            "uid": home.metadata.uid,
        }
        return {"ownerReferences": [owner]}

    async def _needs_gate(self) -> bool:
        if self._gate != "auto":
            return self._gate == "on"
        try:
            await self._client.get(MUTATING_POLICIES, "", GATE_POLICY)
        except NotFound:
            return True
        return False
