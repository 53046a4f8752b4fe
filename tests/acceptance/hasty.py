"""
The controllers with a clock for CronJobs that runs fast: a minute takes little more than a second.

    PUMICE_SINCE=1767225600 python tests/acceptance/hasty.py ARGUMENTS OF THE CONTROLLERS

The variable says when the clock showed the right time, in seconds since 1970: it goes on where it
was when the controllers are started again.
"""

from __future__ import annotations

import asyncio
import os
import time

from controllers import main
from controllers.cron import CronJobController

SINCE = "PUMICE_SINCE"
SPEED = 45
MINUTE_S = 60 / SPEED


class FastClock:
    """A clock on which time passes `SPEED` times as fast."""

    def __init__(self, since: float) -> None:
        self._since = since

    def now(self) -> float:
        return self._since + (time.time() - self._since) * SPEED

    def monotonic(self) -> float:
        return time.monotonic() * SPEED

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / SPEED)


class HastyCronJobs(CronJobController):
    """The CronJob controller, whatever clock it is given."""

    def __init__(self, *given: object, clock: object = None, **named: object) -> None:
        fast = FastClock(float(os.environ[SINCE]))
        super().__init__(*given, clock=fast, **named)  # type: ignore[arg-type]


if __name__ == "__main__":
    vars(main)["CronJobController"] = HastyCronJobs
    main.main()
