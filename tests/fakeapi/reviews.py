"""Who somebody is and what they may do: TokenReview and SubjectAccessReview."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from tests.fakeapi.refusals import Json

EVERYWHERE = ""


@dataclass
class Reviews:
    """Tokens, and what their users may do; a test writes both down."""

    #: token -> user
    users: dict[str, str] = field(default_factory=dict)
    #: user -> what they may do, as `get pods.namespace`; `get pods.` stands for all namespaces
    grants: dict[str, set[str]] = field(default_factory=dict)

    def let(self, user: str, *what: str, namespace: str = EVERYWHERE) -> str:
        """Let a user read what is named as `get pods`; return their token."""
        granted = self.grants.setdefault(user, set())
        granted |= {f"{one}.{namespace}" for one in what}
        self.users[f"token-of-{user}"] = user
        return f"token-of-{user}"

    def answer(self, path: str, body: bytes) -> Json | None:
        """Return the answer to a review, None where a request is something else."""
        if path.endswith("/tokenreviews"):
            return self._who(msgspec.json.decode(body))
        if path.endswith("/subjectaccessreviews"):
            return self._may(msgspec.json.decode(body))
        return None

    def _who(self, review: Json) -> Json:
        user = self.users.get(review["spec"]["token"])
        if user is None:
            return {**review, "status": {"user": {}, "error": "invalid bearer token"}}
        known = {"username": user, "uid": f"uid-of-{user}", "groups": ["system:authenticated"]}
        return {**review, "status": {"authenticated": True, "user": known}}

    def _may(self, review: Json) -> Json:
        spec = review["spec"]
        asked = spec["resourceAttributes"]
        what = f"{asked['verb']} {asked['resource']}"
        granted = self.grants.get(spec["user"], set())
        allowed = bool({f"{what}.{asked['namespace']}", f"{what}."} & granted)
        return {**review, "status": {"allowed": allowed}}
