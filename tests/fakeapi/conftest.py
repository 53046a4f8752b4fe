"""The two API servers that the contract is tested on: the fake, and a real one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from pumice.kube.client import Client
from pumice.kube.config import connect
from pumice.kube.errors import NotFound
from pumice.kube.resources import (
    COMMANDS,
    JOBS,
    NAMESPACES,
    POD_GROUPS,
    QUEUES,
    SERVICE_ACCOUNTS,
    AnyResource,
)
from pumice.local import install
from pumice.local.controlplane import ControlPlane
from pumice.local.paths import manifests
from tests.fakeapi import FakeApi, eventually

CUSTOM: tuple[AnyResource, ...] = (JOBS, POD_GROUPS, QUEUES, COMMANDS)

_serial = count(1)


@dataclass(frozen=True, slots=True)
class Server:
    """A client, a namespace that nobody else uses, and how long a watch must last to be ended."""

    client: Client
    namespace: str
    watch_s: int


@pytest.fixture(scope="session")
def kubeconfig() -> Iterator[Path]:
    """Start a control plane with the CRDs, for all tests of the session."""
    with ControlPlane() as plane:
        for file in sorted((manifests() / "crds").glob("*.yaml")):
            for definition in install.documents(file):
                install.apply(plane.api, definition)
        yield plane.kubeconfig()


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.cluster)])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    if request.param == "fake":
        async with FakeApi(namespaces=("default", "mine")).client() as client:
            yield Server(client, "mine", watch_s=1)
        return
    async with await connect(str(request.getfixturevalue("kubeconfig"))) as client:
        name = f"contract-{next(_serial)}"
        await client.create(NAMESPACES, "", {"metadata": {"name": name}})

        async def is_ready() -> bool:
            try:
                # Pods are refused until the namespace's service account is there.
                await client.get(SERVICE_ACCOUNTS, name, "default")
                for kind in CUSTOM:
                    await client.list(kind)
            except NotFound:
                return False
            return True

        await eventually(is_ready)
        yield Server(client, name, watch_s=6)
