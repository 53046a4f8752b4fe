"""What holds for every test: how many examples a property gets, and that none has a deadline."""

from __future__ import annotations

from hypothesis import settings

from tests.effort import examples

# The machine may be busy: what takes its time is no failure.
settings.register_profile("pumice", max_examples=examples(100), deadline=None)
settings.load_profile("pumice")
