"""The Command of bus.volcano.sh/v1alpha1: an order to a Job or a Queue, carried out once."""

from __future__ import annotations

import msgspec

from pumice.core.api.meta import ObjectMeta, Struct


class Target(Struct):
    """The object that a command is meant for, found by kind and name; its uid is not compared."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Command(Struct):
    """An action and the object it is meant for. The controller deletes it before it obeys."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    #: AbortJob or ResumeJob and the like for a Job; OpenQueue or CloseQueue for a Queue.
    action: str = ""
    target: Target | None = None
    #: For people; nothing reads it.
    reason: str = ""
    #: For people; nothing reads it.
    message: str = ""
