"""CronJobs, JobTemplates and Commands."""

from __future__ import annotations

from typing import Any

from pumice.core import names
from tests.unit.admission.rows import jobs
from tests.unit.admission.rows.row import Object, Row, an_object


def a_cron_job(schedule: str = "* * * * *", *, job: Object | None = None, **spec: Any) -> Object:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": (job or jobs.a_job())["spec"]}
    spec = {"schedule": schedule, "jobTemplate": template, **spec}
    return an_object(names.BATCH_API, "CronJob", spec)


def a_template(job: Object) -> Object:
    return an_object(names.FLOW_API, "JobTemplate", job["spec"])


def a_command(action: str, kind: str = "Job", api: str = names.BATCH_API) -> Object:
    target = {"apiVersion": api, "kind": kind, "name": "j", "uid": "u"}
    return {**an_object(names.BUS_API, "Command"), "action": action, "target": target}


NO_CRON = ("schedule is not a valid cron expression",)
WRONG_JOB = jobs.a_job(jobs.a_task(template=jobs.a_template()))

CRON_JOBS = {
    "every minute": Row(
        a_cron_job(),
        stored={
            "spec.concurrencyPolicy": "Allow",
            "spec.suspend": False,
            "spec.successfulJobsHistoryLimit": 3,
            "spec.failedJobsHistoryLimit": 1,
            "spec.jobTemplate.metadata.labels": {"a": "b"},
        },
    ),
    "lists, ranges, steps and names": Row(a_cron_job("*/5,58 0-6/2 1,15 JAN-mar mon-fri")),
    "a word for a schedule": Row(a_cron_job("@hourly")),
    "every so often": Row(a_cron_job("@every 1h30m")),
    "a zone": Row(a_cron_job(timeZone="Europe/Lisbon")),
    "no schedule": Row(a_cron_job(""), ("schedule is required, but got empty",)),
    "a zone in the schedule": Row(
        a_cron_job("CRON_TZ=UTC * * * * *"), ("schedule should not contain TZ or CRON_TZ",)
    ),
    "four fields": Row(a_cron_job("* * * *"), NO_CRON),
    "a minute that there is not": Row(a_cron_job("60 * * * *"), NO_CRON),
    "a day that there is not": Row(a_cron_job("* * * * 7"), NO_CRON),
    "a step of nothing": Row(a_cron_job("*/0 * * * *"), NO_CRON),
    "an empty zone": Row(
        a_cron_job(timeZone=""), ("timeZone must be nil or non-empty string, got empty string",)
    ),
    "a zone that hangs on the machine": Row(
        a_cron_job(timeZone="Local"), ("timeZone can't be Local",)
    ),
    "a zone that cannot be": Row(a_cron_job(timeZone="Europe/../x"), ("unknown timeZone",)),
    "a zone that there is not": Row(a_cron_job(timeZone="Mars/Olympus"), ("invalid timeZone",)),
    "a way to run together that there is not": Row(
        a_cron_job(concurrencyPolicy="Sometimes"), ("spec.concurrencyPolicy", "supported values")
    ),
    "a job that would be refused": Row(
        a_cron_job(job=WRONG_JOB),
        ("spec.task[0].template.spec.containers[0].image: Required value",),
    ),
    "a name without room for the minute": Row(
        {**a_cron_job(), "metadata": {"name": "x" * 53}},
        ("cronJob name must be no more than 52 characters",),
    ),
    "another schedule": Row(a_cron_job(), change=a_cron_job("0 0 * * *")),
    "another schedule that is none": Row(a_cron_job(), NO_CRON, change=a_cron_job("soon")),
}

TEMPLATES = {
    "one in order": Row(a_template(jobs.a_job())),
    "one whose queue is not looked at": Row(a_template(jobs.a_job(queue="later"))),
    "two tasks of a name": Row(
        a_template(jobs.a_job(jobs.a_task(), jobs.a_task())), ("duplicated task name",)
    ),
    "a container without an image": Row(
        a_template(WRONG_JOB), ("spec.task[0].template.spec.containers[0].image: Required value",)
    ),
    "tasks that wait for each other": Row(
        a_template(jobs.waiting("a < b", "b < a")), jobs.NO_ORDER
    ),
}

QUEUE = ("Queue", names.SCHEDULING_API)
COMMANDS = {
    "a job is suspended": Row(a_command("AbortJob")),
    "a queue is closed": Row(a_command("CloseQueue", *QUEUE)),
    "a job is closed": Row(a_command("CloseQueue"), ("invalid action, a Job takes AbortJob",)),
    "a queue is suspended": Row(
        a_command("AbortJob", *QUEUE), ("invalid action, a Queue takes OpenQueue",)
    ),
    "a task that nobody names is restarted": Row(a_command("RestartTask"), ("invalid action",)),
    "a pod is suspended": Row(a_command("AbortJob", "Pod", "v1"), ("target must be one of",)),
    "nobody is suspended": Row(
        {**an_object(names.BUS_API, "Command"), "action": "AbortJob"},
        ("a command must have a target",),
    ),
}
