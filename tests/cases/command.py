"""The command line: run the files in turn, a line for each, and count."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pumice.local.build import binaries
from tests.cases.runner import run


def cases(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files, and those of directories in the order of their names."""
    for path in paths:
        yield from sorted(path.rglob("*.yaml")) if path.is_dir() else (path,)


def main(argv: Sequence[str] | None = None) -> int:
    """Run case files; return 0 when none failed, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.cases", description=__doc__)
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="a case, or a directory of cases"
    )
    parser.add_argument("--logs", type=Path, metavar="DIR", help="keep the logs of all cases there")
    args = parser.parse_args(argv)
    binaries(say=lambda text: print(text, file=sys.stderr, flush=True))
    results: Counter[str] = Counter()
    for file in cases(args.files):
        verdict = run(file, args.logs)
        results[verdict.result] += 1
        print(verdict, flush=True)
    print(f"{results['PASS']} passed, {results['FAIL']} failed, {results['SKIP']} skipped")
    return 1 if results["FAIL"] else 0
