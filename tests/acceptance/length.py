"""Two lengths of the acceptance tests: short for every change, full before a release."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

VARIABLE = "PUMICE_LENGTH"
SOAK_S = "PUMICE_SOAK_S"
"""Seconds of the soak test, where they should be other than the length has them."""


@dataclass(frozen=True, slots=True)
class Length:
    """How often a test repeats itself and how long it goes on."""

    name: str
    contention_rounds: int
    kills: int
    #: how many Jobs of each kind live while their controllers are killed
    lives: int
    backlog_gangs: int
    pending_gangs: int
    #: for how long other pods come and go on the same nodes, and how many of them a second
    foreign_scheduler_s: float
    foreign_per_s: float
    api_server_away_s: float
    soak_s: float
    #: how often a Deployment is rolled over
    revisions: int
    #: how often the leading controllers are killed
    leaders: int
    #: how many cards there are for pods to race for
    cards: int
    #: how long nothing may be written where nothing changes
    quiet_s: float
    #: how long somebody takes to make a volume
    volume_s: float
    #: how many certificates of the webhooks are made one after the other
    certificates: int
    #: by how much times that depend on the machine's load may be longer: the short form runs
    #: on every change, beside whatever else the machine does; the full one holds the figures
    slack: float


SHORT = Length(
    "short",
    contention_rounds=2,
    kills=5,
    lives=1,
    backlog_gangs=30,
    pending_gangs=100,
    foreign_scheduler_s=20,
    foreign_per_s=10,
    api_server_away_s=10,
    soak_s=20,
    revisions=3,
    leaders=2,
    cards=8,
    quiet_s=10,
    volume_s=8,
    certificates=4,
    slack=5,
)
FULL = Length(
    "full",
    contention_rounds=20,
    kills=50,
    lives=19,
    backlog_gangs=100,
    pending_gangs=500,
    foreign_scheduler_s=300,
    foreign_per_s=20,
    api_server_away_s=30,
    soak_s=1800,
    revisions=20,
    leaders=20,
    cards=20,
    quiet_s=300,
    volume_s=45,
    certificates=10,
    slack=1,
)
LENGTHS = {length.name: length for length in (SHORT, FULL)}


def patient(seconds: float) -> float:
    """Return how long something that takes so long at most may take on this machine's load."""
    return seconds * chosen_length().slack


def chosen_length() -> Length:
    """Return the length that the environment asks for; short where it does not."""
    name = os.environ.get(VARIABLE, SHORT.name)
    if name not in LENGTHS:
        raise ValueError(f"{VARIABLE} is one of {', '.join(LENGTHS)}, not {name!r}")
    chosen = LENGTHS[name]
    return replace(chosen, soak_s=float(os.environ.get(SOAK_S, chosen.soak_s)))
