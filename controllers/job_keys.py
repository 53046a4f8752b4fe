"""
Key pairs for Jobs whose pods log in to each other: drawn aside, as it takes a while.

A key is 2048 bits of RSA in the formats that every OpenSSH reads: PKCS#1 in PEM, and the one line
of the public half. Drawing one keeps a core busy for some ten milliseconds, outside of Python's
lock: a thread is enough to keep the event loop going.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

_EXPONENT = 65537
_BITS = 2048


async def draw() -> dict[str, str]:
    """Return the data of a Secret with a new key pair, in base64."""
    private, public = await asyncio.to_thread(_pair)
    files = {"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public}
    return {name: b64encode(text).decode() for name, text in files.items()}


def _pair() -> tuple[bytes, bytes]:
    key = rsa.generate_private_key(_EXPONENT, _BITS)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return private, public + b"\n"
