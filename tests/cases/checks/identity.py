"""Checks of who is who: uids kept or changed, owners."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pumice.local.api import Object
from tests.cases.checks.check import Check
from tests.cases.moment import Moment, owners, parse
from tests.cases.record import Record
from tests.cases.selection import Selection, key_of


class Identity(Check, frozen=True, kw_only=True):
    """A check of the uids that the selected pods, or one object, had at an earlier moment."""

    select: Selection
    since: str

    @property
    def subject(self) -> str:
        return str(self.select)

    @property
    def refers_to(self) -> tuple[str, ...]:
        return (self.select.object,) if self.select.object else ()

    @property
    def selections(self) -> tuple[Selection, ...]:
        return () if self.select.object or self.select.pod_group else (self.select,)

    def uids(self, record: Record, moment: Moment) -> dict[str, tuple[str, str | None]]:
        """Return the uid then and the one now, None where it is gone, by name."""
        before = self._found(record.moments[self.since], None)
        now = self._found(moment, before)
        return {name: (uid, now.get(name)) for name, uid in before.items()}

    def _found(self, moment: Moment, known: Mapping[str, str] | None) -> dict[str, str]:
        """Return uids by name: of an object, of a PodGroup itself, or of pods."""
        select = self.select
        if select.object or select.pod_group:
            found = moment.find(select.object) if select.object else moment.group(select.pod_group)
            name = select.object or select.pod_group
            return {name: found["metadata"]["uid"]} if found else {}
        pods = select.of(moment) if known is None else moment.pods.values()
        return {key_of(pod): pod["metadata"]["uid"] for pod in pods}


class SameUid(Identity, frozen=True, kw_only=True, tag="sameUID"):
    """Each of them is still the same."""

    def fault(self, record: Record, moment: Moment) -> str:
        uids = self.uids(record, moment)
        if not uids:
            return f"there was none at {self.since}"
        changed = [name for name, (before, now) in uids.items() if before != now]
        return f"gone or another one: {', '.join(changed)}" if changed else ""


class NewUid(Identity, frozen=True, kw_only=True, tag="newUID"):
    """Each of them is there again under its name, and is another one."""

    def fault(self, record: Record, moment: Moment) -> str:
        uids = self.uids(record, moment)
        if not uids:
            return f"there was none at {self.since}"
        kept = [name for name, (before, now) in uids.items() if now in (None, before)]
        return f"still the same, or gone: {', '.join(kept)}" if kept else ""


class OwnedBy(Check, frozen=True, kw_only=True, tag="ownedBy"):
    """Each selected pod has an owner reference to the owner that there is now."""

    select: Selection
    owner: str
    #: false: the owner's kind and name are enough
    same_uid: bool = msgspec.field(name="sameUID", default=True)

    @property
    def subject(self) -> str:
        return str(self.select)

    @property
    def refers_to(self) -> tuple[str, ...]:
        return (self.owner,)

    @property
    def selections(self) -> tuple[Selection, ...]:
        return (self.select,)

    def fault(self, record: Record, moment: Moment) -> str:
        owner, pods = moment.find(self.owner), self.select.of(moment)
        if owner is None or not pods:
            return "there is no such pod" if owner else f"there is no {self.owner}"
        others = [key_of(pod) for pod in pods if not self._owns(owner, pod)]
        return f"not owned by {self.owner}: {', '.join(others)}" if others else ""

    def _owns(self, owner: Object, pod: Object) -> bool:
        if self.same_uid:
            return owner["metadata"]["uid"] in owners(pod)
        kind, _, name = parse(self.owner)
        references = pod["metadata"].get("ownerReferences", ())
        return (kind, name) in [(r["kind"].lower(), r["name"]) for r in references]
