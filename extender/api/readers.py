"""
Who reads, and what they may see.

On loopback whoever presents nothing sees everything: they could read the process's memory as
well. Somebody who presents a bearer token, and everybody elsewhere, is known by a TokenReview, and
sees of each kind what a SubjectAccessReview lets them read in the API itself. What is not theirs
is left out or summed up, and a page of which that would leave nothing is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, HTTPException, Request

from pumice.core.explain.answers import Explanation
from pumice.core.explain.holders import veil
from pumice.kube.errors import KubeError
from pumice.kube.resources import POD_GROUPS, PODS, QUEUES, AnyResource
from pumice.kube.rights import Question, Rights, User, Verb

MAX_TOKEN = 16_384


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who reads; one without a user sees everything."""

    rights: Rights
    user: User | None = None

    async def may(
        self, verb: Verb, resource: AnyResource, namespace: str = "", name: str = ""
    ) -> bool:
        """Tell whether they may read something; without a namespace, in all of them."""
        question = Question(verb, resource, namespace, name)
        return self.user is None or await self.rights.may(self.user, question)

    async def require(
        self, verb: Verb, resource: AnyResource, namespace: str = "", name: str = ""
    ) -> None:
        """Refuse those who may not."""
        if self.user is not None and not await self.may(verb, resource, namespace, name):
            question = Question(verb, resource, namespace, name)
            raise HTTPException(403, f'user "{self.user.name}" may not {question}')

    async def veiled(self, found: Explanation) -> Explanation:
        """Return an explanation without what is not theirs to see."""
        if self.user is None:
            return found
        namespaces = {h.namespace for h in found.holders if h.kind == "job"}
        seen = await self._visible(namespaces)
        sees_queues = await self.may("list", QUEUES)
        return veil(found, seen.__contains__, sees_queues=sees_queues)

    async def sees_pods(self, namespace: str) -> bool:
        """Tell whether they may see what is said of single pods."""
        return await self.may("list", PODS, namespace)

    async def _visible(self, namespaces: Iterable[str]) -> frozenset[str]:
        if await self.may("list", POD_GROUPS):
            return frozenset(namespaces)
        return frozenset([n for n in namespaces if await self.may("list", POD_GROUPS, n)])


@dataclass(frozen=True, slots=True)
class Readers:
    """Finds out who somebody is."""

    rights: Rights
    #: whoever presents nothing is trusted, as only this machine's own processes come this way
    on_loopback: bool

    async def reader(self, headers: Iterable[str]) -> Reader:
        """Return who presents these `Authorization` headers; refuse those who cannot be known."""
        given = list(headers)
        if not given and self.on_loopback:
            return Reader(self.rights)
        if not given:
            raise _unknown("a bearer token is required")
        scheme, _, token = given[0].partition(" ")
        token = token.strip()
        if len(given) > 1 or scheme.lower() != "bearer" or not 0 < len(token) <= MAX_TOKEN:
            raise _unknown("one bearer token is required, and nothing else")
        user = await self.rights.user(token)
        if user is None:
            raise _unknown("the API server does not accept the token")
        return Reader(self.rights, user)

    async def sees_all_pods(self, headers: Iterable[str]) -> bool:
        """Tell whether who presents these may list all pods; not where nobody can say."""
        try:
            return await (await self.reader(headers)).sees_pods("")
        except (HTTPException, KubeError):
            return False


def _unknown(why: str) -> HTTPException:
    return HTTPException(401, why, {"WWW-Authenticate": "Bearer"})


async def _reader(request: Request) -> Reader:
    readers: Readers = request.app.state.readers
    return await readers.reader(request.headers.getlist("authorization"))


Reads = Annotated[Reader, Depends(_reader)]
"""The parameter of a page that wants to know who reads it."""
