"""
The controllers with a clock for CronJobs that runs fast: a minute takes little more than a second.

    PUMICE_SINCE=1767225600 python tests/acceptance/hasty.py ARGUMENTS OF THE CONTROLLERS

The variable says when the clock showed the right time, in seconds since 1970: it goes on where it
was when the controllers are started again. PUMICE_SPEED is how many times as fast it runs.
"""

from __future__ import annotations

import asyncio
import os
import time

from controllers import main
from controllers.cron import CronJobController

SINCE, SPEED = "PUMICE_SINCE", "PUMICE_SPEED"
USUAL_SPEED = 45
MINUTE_S = 60 / USUAL_SPEED


class FastClock:
    """A clock on which time passes `speed` times as fast."""

    def __init__(self, since: float, speed: float) -> None:
        self._since = since
        self._speed = speed

    def now(self) -> float:
        return self._since + (time.time() - self._since) * self._speed

    def monotonic(self) -> float:
        return time.monotonic() * self._speed

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self._speed)


class HastyCronJobs(CronJobController):
    """The CronJob controller, whatever clock it is given."""

    def __init__(self, *given: object, clock: object = None, **named: object) -> None:
        fast = FastClock(float(os.environ[SINCE]), float(os.environ.get(SPEED, USUAL_SPEED)))
        super().__init__(*given, clock=fast, **named)  # type: ignore[arg-type]


if __name__ == "__main__":
    vars(main)["CronJobController"] = HastyCronJobs
    main.main()
