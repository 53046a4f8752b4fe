"""
The pages beside the hot path: health, metrics, the ledger and the last sessions.

They are served on the same loopback port as the verbs. `/healthz` stands for both containers of
the pod: it fails when the engine loop has stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import FastAPI, Response

from extender.barrier import Barrier
from extender.engine import Engine
from extender.metrics import Metrics
from extender.model import Model
from pumice.kube.clock import Clock
from pumice.kube.metrics import CONTENT_TYPE


def make_app(
    model: Model,
    engine: Engine,
    barrier: Barrier,
    metrics: Metrics,
    ready: Callable[[], str],
    clock: Clock,
) -> FastAPI:
    """Return the app; `ready` says what is still missing, "" when nothing is."""
    app = FastAPI(title="Pumice extender", docs_url="/docs", redoc_url=None)

    @app.get("/healthz")
    async def healthz() -> Response:
        """Tell whether the process should live on."""
        return Response("ok" if engine.alive() else "the engine has stopped", _status(engine))

    @app.get("/readyz")
    async def readyz() -> Response:
        """Tell whether every cache is synced."""
        missing = ready()
        return Response(missing or "ok", 503 if missing else 200)

    @app.get("/metrics")
    async def figures() -> Response:
        """Return the metrics in Prometheus' text form."""
        return Response(await metrics.made.render(), media_type=CONTENT_TYPE)

    @app.get("/debug/ledger")
    async def ledger() -> Response:
        """Return every entry of the ledger."""
        entries = [
            {
                "uid": e.uid,
                "namespace": e.namespace,
                "name": e.name,
                "job": e.job,
                "node": e.node,
                "state": e.state.value,
                "since": clock.now() - (clock.monotonic() - e.since),
            }
            for e in model.ledger
        ]
        counts = {
            # What was written down here and is still on its way to the API server.
            "unanswered": len(engine.statuses.outbox) + len(barrier.commits),
            "parked": len(barrier.parked),
            "calls": barrier.calls,
            "errors": barrier.errors,
        }
        return _json({"entries": entries, **counts})

    @app.get("/debug/sessions")
    async def sessions() -> Response:
        """Return the last sessions that decided something, newest last."""
        return _json(
            [
                {
                    "plan": msgspec.to_builtins(past.plan, enc_hook=str),
                    "placed": past.applied.placed,
                    "dropped": past.applied.dropped,
                    "why": past.applied.why,
                    "seconds": past.seconds,
                }
                for past in engine.past
            ]
        )

    @app.get("/debug/check")
    async def check() -> Response:
        """Return what the cache's tables and a count from scratch disagree on; empty when well."""
        return _json({"faults": model.cluster.check(), "objects": model.cluster.faults})

    return app


def _status(engine: Engine) -> int:
    return 200 if engine.alive() else 500


def _json(content: Any) -> Response:
    return Response(msgspec.json.encode(content), media_type="application/json")
