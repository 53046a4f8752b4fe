"""
`pumice replay`: run a recorded session again, and show what comes out differently.

A record holds all that a session was made of, so nothing is asked of any cluster. Without another
configuration the decisions must be the same, byte for byte. Ends with 0 where they are, with 1
where they differ, with 2 where a file is of no use.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Annotated

import typer

_SAME = "the same decisions, byte for byte"


def command(
    file: Annotated[Path, typer.Argument(help="record of a session, gzip or plain")],
    configuration: Annotated[
        Path | None, typer.Option(help="scheduler configuration to run it under instead")
    ] = None,
) -> None:
    """Run a recorded session again, and show what comes out differently."""
    raise typer.Exit(run(file, configuration))


def run(file: Path, configuration: Path | None) -> int:
    """Replay a file; return the exit code."""
    from pumice.core.conf import ConfigurationError, parse
    from pumice.core.replay.differences import differences, summary
    from pumice.core.replay.record import RecordError, read
    from pumice.core.replay.run import rerun
    from pumice.installed import add_installed_plugins

    add_installed_plugins()
    try:
        record = read(_content(file))
        text = configuration.read_text("utf-8") if configuration else record.configuration
        conf = parse(text)
    except (OSError, EOFError, UnicodeDecodeError, RecordError, ConfigurationError) as error:
        print(f"pumice replay: {error}", file=sys.stderr)
        return 2
    print(summary(record))
    done = rerun(record, conf)
    lines = differences(record, done.decisions, text)
    if done.unknown:
        print(f"{done.unknown} questions to a policy server were not asked then: no answer")
    for line in lines or [_SAME]:
        print(line)
    return 1 if lines else 0


def _content(file: Path) -> bytes:
    content = file.read_bytes()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
