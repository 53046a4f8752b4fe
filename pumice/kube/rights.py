"""
Who asks, and what they may read: TokenReview and SubjectAccessReview.

Whoever serves what others may not see asks the API server, with the token that the reader has
presented, who that is, and then whether they may read objects of a kind. Answers are kept for a
few seconds, so that a page that is loaded again and again costs nothing; of tokens only a digest
is kept. The API server must let us make both reviews.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Generic, Literal, TypeVar

import msgspec

from pumice.core.api.meta import Struct
from pumice.kube.client import Client
from pumice.kube.clock import Clock
from pumice.kube.errors import Undecodable
from pumice.kube.resources import AnyResource

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
KEPT_S = 5.0
REMEMBERED = 1_024
REVIEW_S = 5.0
AT_ONCE = 8
"""Reviews in flight: a crowd of readers must not take the connections of those who work."""

Verb = Literal["get", "list"]
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class User:
    """Somebody as the API server knows them."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody wants to read; without a namespace, in all of them; without a name, any."""

    verb: Verb
    resource: AnyResource
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        what = f"{self.verb} {self.resource}" + (f" {self.name}" if self.name else "")
        if self.namespace:
            return f"{what} in namespace {self.namespace}"
        return f"{what} in all namespaces" if self.resource.namespaced else what


class Rights:
    """Asks the API server; raises KubeError where it cannot be asked."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._users: _Kept[bytes, User | None] = _Kept(clock)
        self._answers: _Kept[tuple[User, Question], bool] = _Kept(clock)

    async def user(self, token: str) -> User | None:
        """Return whose token it is; None for one that the API server does not accept."""
        digest = sha256(token.encode()).digest()
        return await self._users.get(digest, lambda: self._review_token(token))

    async def may(self, user: User, question: Question) -> bool:
        """Tell whether somebody may read something."""
        return await self._answers.get(
            (user, question), lambda: self._review_access(user, question)
        )

    async def _review_token(self, token: str) -> User | None:
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        status = (await self._post(TOKEN_REVIEWS, body, _TokenReview)).status
        if not status.authenticated:
            return None
        user = status.user
        extra = {key: tuple(values) for key, values in (user.extra or {}).items()}
        return User(user.username, user.uid, tuple(user.groups or ()), tuple(sorted(extra.items())))

    async def _review_access(self, user: User, question: Question) -> bool:
        attributes = {
            "verb": question.verb,
            "group": question.resource.group,
            "resource": question.resource.plural,
            "namespace": question.namespace,
            "name": question.name,
        }
        spec = {
            "user": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra},
            "resourceAttributes": attributes,
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": spec,
        }
        return (await self._post(ACCESS_REVIEWS, body, _AccessReview)).status.allowed

    async def _post(self, path: str, body: object, answer: type[V]) -> V:
        payload = msgspec.json.encode(body)
        async with self._slots:
            found = await self._client.call("POST", path, payload, total_s=REVIEW_S)
        try:
            return msgspec.json.decode(found, type=answer)
        except msgspec.DecodeError as error:
            raise Undecodable(f"{path}: {error}") from error


class _UserInfo(Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _TokenStatus(Struct):
    authenticated: bool = False
    user: _UserInfo = msgspec.field(default_factory=_UserInfo)


class _TokenReview(Struct):
    status: _TokenStatus = msgspec.field(default_factory=_TokenStatus)


class _AccessStatus(Struct):
    allowed: bool = False


class _AccessReview(Struct):
    status: _AccessStatus = msgspec.field(default_factory=_AccessStatus)


class _Kept(Generic[K, V]):
    """Answers that are good for `KEPT_S`; when there are too many, the oldest go."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[K, tuple[float, V]] = OrderedDict()

    async def get(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        """Return the answer that is kept, or ask."""
        found = self._kept.get(key)
        if found is not None and self._clock.monotonic() < found[0]:
            return found[1]
        answer = await ask()
        self._kept[key] = (self._clock.monotonic() + KEPT_S, answer)
        self._kept.move_to_end(key)
        while len(self._kept) > REMEMBERED:
            self._kept.popitem(last=False)
        return answer
