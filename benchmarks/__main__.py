"""`python -m benchmarks`: measure everything, print the table, write build/bench.json."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks import admission, cards, controllers, decisions, growth, large, paths
from benchmarks.figures import table, write

PARTS = ("decisions", "cards", "growth", "controllers", "admission", "paths", "large")


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
    if args.only in (None, "decisions"):
        say("decisions of the engine ...")
        figures += decisions.measure()
    if args.only in (None, "cards"):
        say("pods on cards ...")
        figures += cards.measure()
    if args.only in (None, "growth"):
        say("sessions and memory on growing clusters ...")
        figures += growth.measure()
    if args.only in (None, "controllers"):
        say("controllers beside many pods ...")
        figures += controllers.measure()
    if args.only in (None, "admission"):
        say("what admission costs ...")
        figures += admission.measure(say)
    if args.only in (None, "paths"):
        say("paths on a real control plane with 1,000 simulated nodes ...")
        figures += paths.measure(say)
    if args.only in (None, "large"):
        say("a Job of 5,000 pods on 1,000 simulated nodes ...")
        figures += large.measure(say)
    say("done\n")
    print(table(figures))
    write(figures, args.output)
    print(f"\nwritten to {args.output}")


main()
