"""`python -m benchmarks`: measure everything, print the table, write build/bench.json."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import admission, cards, controllers, decisions, growth, large, paths
from benchmarks.figures import Figure, table, write

Say = Callable[[str], None]
PARTS: dict[str, tuple[str, Callable[[Say], list[Figure]]]] = {
    "decisions": ("decisions of the engine", lambda say: decisions.measure()),
    "cards": ("pods on cards", lambda say: cards.measure()),
    "growth": ("sessions and memory on growing clusters", lambda say: growth.measure()),
    "controllers": ("controllers beside many pods", lambda say: controllers.measure()),
    "admission": ("what admission costs", admission.measure),
    "paths": ("paths on a real control plane with 1,000 simulated nodes", paths.measure),
    "large": ("a Job of 5,000 pods on 1,000 simulated nodes", large.measure),
}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="measure a part")
    parser.add_argument("--output", type=Path, default=Path("build/bench.json"))
    args = parser.parse_args()
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:6.1f} s] {text}", flush=True)

    figures = []
    for name, (what, measure) in PARTS.items():
        if args.only in (None, name):
            say(f"{what} ...")
            figures += measure(say)
    say("done\n")
    print(table(figures))
    write(figures, args.output)
    print(f"\nwritten to {args.output}")


main()
