"""
Credentials: a kubeconfig file, or the service account of the pod that we run in.

Reading them is left to the `kubernetes` package, which knows exec plugins, token files and the
rest; what comes out is our own small `Credentials`.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace

from kubernetes.aio import config as kubernetes_config
from kubernetes.aio.client import Configuration

from pumice.kube.client import Client
from pumice.kube.clock import Clock, SystemClock
from pumice.kube.transport import USER_AGENT, Credentials, HttpTransport, Token

REFRESH_S = 60.0


async def connect(
    kubeconfig: str | None = None, *, component: str = USER_AGENT, server: str | None = None
) -> Client:
    """
    Return a client for a kubeconfig file; without one, for the cluster that we run in.

    Outside a cluster the file is the one that kubectl would take. `server` is the address of the
    API server, instead of the one that is found there.
    """
    found = await credentials(kubeconfig)
    return Client(HttpTransport(replace(found, server=server) if server else found, component))


async def credentials(kubeconfig: str | None = None, clock: Clock | None = None) -> Credentials:
    """Read credentials; raises the `kubernetes` package's ConfigException where there are none."""
    configuration = Configuration()
    clock = clock or SystemClock()
    if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        kubernetes_config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        return _credentials(configuration, lambda: _header(configuration))

    # The package writes the file back unless told not to.
    loader = await kubernetes_config.load_kube_config(  # type: ignore[no-untyped-call]
        kubeconfig, client_configuration=configuration, persist_config=False
    )

    async def reload() -> None:
        await loader.load_and_set(configuration)

    return _credentials(configuration, _refreshed(configuration, reload, clock))


def _credentials(configuration: Configuration, token: Token) -> Credentials:
    return Credentials(
        server=configuration.host,
        tls=_tls(configuration) if configuration.host.startswith("https") else None,
        token=token if configuration.api_key else None,
        server_name=configuration.tls_server_name or None,
        proxy=configuration.proxy or None,
    )


def _tls(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    # Authorities made by older tools lack extensions that newer Pythons insist on by default.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


async def _header(configuration: Configuration) -> str:
    """Return the Authorization header; the package re-reads a service account's token."""
    settings = await configuration.auth_settings()
    return str(settings["BearerToken"]["value"]) if "BearerToken" in settings else ""


def _refreshed(
    configuration: Configuration, reload: Callable[[], Awaitable[None]], clock: Clock
) -> Token:
    """Return a token source that looks once a minute whether file or plugin has a newer one."""
    read = clock.monotonic()

    async def token() -> str:
        nonlocal read
        if clock.monotonic() - read > REFRESH_S:
            read = clock.monotonic()
            await reload()
        return await _header(configuration)

    return token
