"""The debug API of an extender, as a reader meets it."""

from __future__ import annotations

from typing import Any

import httpx
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.routing import Match

from extender.api import explaining, internals, listing
from extender.service import Service
from tests.fakeapi import eventually

Json = Any
PAGES = [
    route
    for part in (explaining, listing, internals)
    for route in part.router.routes
    if isinstance(route, APIRoute)
]


class Pages:
    """Asks for pages, and checks that every answer has the form that its page promises."""

    def __init__(self, service: Service, token: str = "") -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        transport = httpx.ASGITransport(app=service.app)
        self.client = httpx.AsyncClient(
            transport=transport, base_url="http://extender", headers=headers
        )

    async def answer(self, path: str, **query: object) -> httpx.Response:
        """Return whatever comes."""
        return await self.client.get(path, params={k: str(v) for k, v in query.items()} or None)

    async def get(self, path: str, **query: object) -> Json:
        """Return an answer that is a success, and of the right form."""
        answer = await self.answer(path, **query)
        assert answer.status_code == 200, answer.text
        TypeAdapter(_form(path)).validate_json(answer.content)
        return answer.json()

    async def refused(self, path: str, **query: object) -> tuple[int, str]:
        """Return status and text of an answer that is none."""
        answer = await self.answer(path, **query)
        assert answer.headers["content-type"] == "application/json"
        return answer.status_code, answer.json()["detail"]

    async def explain(self, kind: str, name: str, **query: object) -> Json:
        """Return the explanation of something in the namespace `ns`."""
        return await self.get(f"/debug/explain/{kind}/ns/{name}", **query)

    async def until_explained(self, kind: str, name: str, state: str) -> Json:
        """Wait until something is in a state, and return the explanation."""
        found: Json = {}

        async def is_so() -> bool:
            nonlocal found
            answer = await self.answer(f"/debug/explain/{kind}/ns/{name}")
            found = answer.json()
            return answer.status_code == 200 and found["state"] == state

        await eventually(is_so)
        return found


def _form(path: str) -> Any:
    """Return what a page says that it answers."""
    scope = {"type": "http", "method": "GET", "path": path, "headers": []}
    return next(page.response_model for page in PAGES if page.matches(scope)[0] is Match.FULL)
