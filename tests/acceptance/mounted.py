"""
Run a module as if a directory were the root of its files: `... mounted ROOT MODULE ARGUMENT...`.

It is for what no argument says: where a pod's account is found is compiled into the client.
"""

from __future__ import annotations

import runpy
import sys

from kubernetes.aio.config import incluster_config


def main(root: str, module: str, *arguments: str) -> None:
    """Move the account's files below the root, then be the module."""
    for name in ("SERVICE_TOKEN_FILENAME", "SERVICE_CERT_FILENAME"):
        setattr(incluster_config, name, root + getattr(incluster_config, name))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
