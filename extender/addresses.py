"""Addresses to listen on, and whether others than this machine's own processes reach them."""

from __future__ import annotations

import ipaddress


def split(address: str) -> tuple[str, int]:
    """Return host and port of `host:port`; raise ValueError where it is none."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Tell whether only processes of this machine reach a host; none means every address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
