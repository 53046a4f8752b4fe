"""The pages put together: health and figures, which everybody may see, and the debug API."""

from __future__ import annotations

import logging

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException

from extender.api import explaining, internals, listing, recording
from extender.api.answers import Problem, answer
from extender.api.desk import Asks, Desk
from extender.api.readers import Readers
from pumice.kube.errors import KubeError
from pumice.kube.metrics import CONTENT_TYPE

log = logging.getLogger(__name__)

DESCRIPTION = """
Why jobs wait, how far gangs have got, who holds what, and what the last sessions decided.
With a bearer token, and always where the listener is not on loopback, a page shows what the
Kubernetes rights of its reader allow.
"""


def make_app(desk: Desk, readers: Readers) -> FastAPI:
    """Return the app."""
    app = FastAPI(
        title="Pumice extender",
        summary="What the scheduler knows, and why.",
        description=DESCRIPTION,
        docs_url="/docs",
        redoc_url=None,
    )
    app.state.desk, app.state.readers = desk, readers
    _add_health(app)
    for part in (explaining, listing, internals, recording):
        # Not `include_router`: that would make every page anew, when the first reader comes.
        app.router.routes.extend(part.router.routes)
    app.exception_handler(RequestValidationError)(_senseless)
    app.exception_handler(HTTPException)(_refused)
    app.exception_handler(KubeError)(_not_asked)
    return app


def _add_health(app: FastAPI) -> None:
    @app.get("/healthz", tags=["health"], response_class=PlainTextResponse)
    async def healthz(desk: Asks) -> Response:
        """Tell whether the process should live on."""
        alive = desk.engine.alive()
        return Response("ok" if alive else "the engine has stopped", 200 if alive else 500)

    @app.get("/readyz", tags=["health"], response_class=PlainTextResponse)
    async def readyz(desk: Asks) -> Response:
        """Tell whether every cache is synced."""
        missing = desk.missing()
        return Response(missing or "ok", 503 if missing else 200)

    @app.get("/metrics", tags=["health"], response_class=PlainTextResponse)
    async def figures(desk: Asks, request: Request) -> Response:
        """Return the metrics in Prometheus' text form; of single pods to those who may list all."""
        readers: Readers = request.app.state.readers
        named = await readers.sees_all_pods(request.headers.getlist("authorization"))
        text = await desk.metrics.made.render(desk.card_figures(named=named))
        return Response(text, media_type=CONTENT_TYPE)


async def _senseless(_: Request, error: Exception) -> Response:
    """Answer a question that makes no sense, without repeating it."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - for the type checker
    parts = (f"{fault['loc'][-1]}: {fault['msg']}" for fault in error.errors())
    return answer(Problem("; ".join(parts)), 422)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - for the type checker
    return answer(Problem(str(error.detail)), error.status_code, error.headers)


async def _not_asked(_: Request, error: Exception) -> Response:
    """Answer where the API server could not say who reads, or what they may."""
    log.warning("a reader's rights: %s", error)
    return answer(Problem("the API server could not be asked for the reader's rights"), 503)
