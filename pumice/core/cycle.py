"""
One scheduling cycle over one snapshot.

1. A workspace is made of the snapshot, and plugins register at the extension points.
2. The configured actions run one after the other; each sees what the former ones changed.
3. Closing writes down what became of each group, its pods and the queues.

Jobs that `pumice.core.recall` knows to be refused again take no part in any of it.

A cycle is a pure function of snapshot, configuration, time and id, and of what somebody outside
answers where a plugin asks.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from pumice.core.catalog import action_named
from pumice.core.conf import Configuration
from pumice.core.model.snapshots import Snapshot
from pumice.core.outside import Ask, nobody
from pumice.core.plan import Plan
from pumice.core.recall import Former, recalled
from pumice.core.session import Session


def run_session(
    snapshot: Snapshot,
    conf: Configuration,
    now: float,
    session_id: str,
    *,
    ask: Ask = nobody,
    former: Former | None = None,
) -> Plan:
    """
    Run one cycle and return its plan. Pure: same arguments and answers, same plan.

    With the `former` cycle at hand it takes less time; the plan is the same without.
    """
    with _collector_paused():
        known = recalled(former, snapshot, conf)
        if known:
            with Session(snapshot, conf, now, session_id, ask=ask, recalled=known) as ssn:
                plan = _run(ssn)
            if plan.steady:
                return plan
        with Session(snapshot, conf, now, session_id, ask=ask) as ssn:
            return _run(ssn)


def _run(ssn: Session) -> Plan:
    for name in ssn.conf.actions:
        build = action_named(name)
        if build is None:
            ssn.findings.warnings.append(f"action {name} is not available, it is left out")
            continue
        build().execute(ssn)
    return ssn.close()


@contextmanager
def _collector_paused() -> Iterator[None]:
    """
    Keep the garbage collector from running.

    A session makes many objects and leaves no cycles behind once it has ended; looking for some in
    the middle of a large one takes as long as the session itself.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
