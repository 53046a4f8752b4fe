"""
An API server in memory, for quick tests: an ASGI application with the rules that we rely on.

    api = FakeApi()
    client = api.client()

What it knows of Kubernetes is checked by `test_contract.py`, which runs against a real
kube-apiserver as well. It knows the kinds of `pumice.kube.resources`; it has no admission, no
defaults beyond a pod's, and its owner garbage collection is immediate. Faults are injected with
`fail`, `lose`, `delay` and the watch hooks; everything that takes time takes it from the clock
given.
"""

from tests.fakeapi.app import FakeApi
from tests.fakeapi.clock import ManualClock, eventually, settle, until

__all__ = ["FakeApi", "ManualClock", "eventually", "settle", "until"]
