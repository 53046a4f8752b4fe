"""
Reconcile one Job: look up what an action means in its present phase, and say what to do.

The controller passes what the caches hold, carries the effects out in their order, stops at the
first that fails, and asks again whenever something changed. The same input always gives the same
effects, so a lost or a doubled event does no harm.
"""

from __future__ import annotations

from pumice.core.api.batch import Job
from pumice.core.jobs import state
from pumice.core.jobs.kill import kill, kill_target
from pumice.core.jobs.policies import is_done
from pumice.core.jobs.sync import sync
from pumice.core.jobs.types import RESUME, SYNC, Decision, Effect, Observed, RecordEvent, Request

SYNCHRONISE = Decision(SYNC, Request())


def reconcile(seen: Observed, decision: Decision, now: float) -> list[Effect]:
    """Return the effects of an action; a Job that is being deleted is left to its owner's end."""
    job = seen.job
    if job.metadata.deletion_timestamp is not None:
        return []
    step = state.step(job.status.state.phase, decision.action)
    effects: list[Effect] = []
    if decision.action != SYNC:
        text = f"Start to execute action {decision.action} "
        effects.append(RecordEvent("Normal", "ExecuteAction", text))
    match step.do:
        case "sync":
            return effects + sync(seen, step, now)
        case "kill":
            return effects + kill(seen, step, decision, now)
        case "kill target":
            return effects + kill_target(seen, step, decision, now)


def remaining(decision: Decision, job: Job) -> Decision:
    """
    Return what is left to do of an action that failed on the way, as the Job is now.

    Most are simply done again. A resumed Job that restarts already would lose what it has kept,
    and of a restart that somebody else has carried out nothing is left.
    """
    is_resumed = decision.action == RESUME and job.status.state.phase == "Restarting"
    return SYNCHRONISE if is_resumed or is_done(decision.request, job) else decision
