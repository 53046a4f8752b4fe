"""
What is admitted and what is refused, as users would write it: one table, asked in three ways.

The functions of `pumice.core.admission` are asked directly; a real API server is asked with the
webhooks behind it, and with the admission policies instead. All must give the same answers.
"""

from __future__ import annotations

from tests.unit.admission.rows import groups, hypernodes, jobflows, jobs, pods, queues, schedules
from tests.unit.admission.rows.row import Row

ROWS: dict[str, Row] = {
    f"{kind}: {name}": row
    for kind, rows in {
        "hypernode": hypernodes.ROWS,
        "job defaults": jobs.DEFAULTS,
        "job": jobs.ROWS,
        "jobflow": jobflows.ROWS,
        "pod defaults": pods.DEFAULTS,
        "pod": pods.ROWS,
        "podgroup": groups.ROWS,
        "queue defaults": queues.DEFAULTS,
        "queue": queues.ROWS,
        "cronjob": schedules.CRON_JOBS,
        "jobtemplate": schedules.TEMPLATES,
        "command": schedules.COMMANDS,
    }.items()
    for name, row in rows.items()
}
