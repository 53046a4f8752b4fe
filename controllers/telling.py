"""Events about what a pass over an object finds, told once while it stays so."""

from __future__ import annotations

from typing import Protocol

from pumice.core.api.meta import ObjectMeta
from pumice.kube.errors import ApiError, KubeError
from pumice.kube.events import EventType, Recorder
from pumice.kube.resources import AnyResource


class Tellable(Protocol):
    """An event in the words of a controller; those that are equal are the same news."""

    @property
    def type(self) -> EventType: ...
    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...


class Teller:
    """Tells the owners of one kind of object; a warning that the last pass gave is not repeated."""

    def __init__(self, events: Recorder, resource: AnyResource) -> None:
        self._events = events
        self._resource = resource
        #: by object, the warnings of this pass and of the one before
        self.warned: dict[str, set[Tellable]] = {}
        self.before: dict[str, set[Tellable]] = {}

    def begin(self, key: str) -> None:
        """Begin a pass over an object."""
        self.before[key] = self.warned.pop(key, set())

    def forget(self, key: str) -> None:
        """Keep nothing about an object that is gone."""
        self.warned.pop(key, None)
        self.before.pop(key, None)

    def tell(self, meta: ObjectMeta, event: Tellable) -> None:
        """Record an event about an object."""
        if event.type == "Warning":
            self.warned.setdefault(meta.key, set()).add(event)
            if event in self.before.get(meta.key, ()):
                return
        self._events.record(self._resource, meta, event.type, event.reason, event.message)


def said(error: KubeError) -> str:
    """Return an error in the words of the API server, where it gave any."""
    return (error.message if isinstance(error, ApiError) else "") or str(error)
