"""
`python -m tests.auditor`: watch a cluster until SIGTERM, then judge.

Exit code 0: nothing to object to; 1: violations, printed and in the report; 2: wrong usage.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from tests.auditor.history import Settings
from tests.auditor.program import Options, Program
from tests.auditor.rules import JUDGES


def parser() -> argparse.ArgumentParser:
    """Return the command line's grammar."""
    default = Settings(extender_user="")
    p = argparse.ArgumentParser(prog="python -m tests.auditor", description=__doc__)
    p.add_argument("--kubeconfig", type=Path, required=True, help="may read pods, nodes, PodGroups")
    p.add_argument("--audit-log", type=Path, required=True, help="JSON lines, with answers")
    p.add_argument("--report", type=Path, required=True, help="where to write the report")
    p.add_argument("--extender-user", required=True, help="the only user that may bind")
    p.add_argument("--extender-url", default="", help="where its debug endpoints are (rule E)")
    p.add_argument("--own-user", action="append", default=[], help="another component of ours")
    p.add_argument("--scheduler-user", action="append", default=[], help="counted, not judged")
    p.add_argument("--scheduler-name", action="append", default=[], help="pods of ours name it")
    p.add_argument(
        "--rules", type=rules, default=default.rules, help="letters, default %(default)s"
    )
    p.add_argument("--gang-limit-s", type=float, default=default.limit_s)
    p.add_argument("--quiet-s", type=float, default=default.quiet_s)
    p.add_argument("--settle-s", type=float, default=20.0, help="wait for quiet at the end")
    p.add_argument("--shared-nodes", action="store_true", help="another scheduler places pods too")
    p.add_argument("--control-port", type=int, default=0, help="0: any free port")
    return p


def rules(text: str) -> str:
    """Return the letters of the rules to apply, each once."""
    unknown = set(text) - JUDGES.keys()
    if unknown or not text:
        raise argparse.ArgumentTypeError(f"rules are letters of {''.join(JUDGES)}, not {text!r}")
    return "".join(sorted(set(text)))


def main() -> int:
    """Run the program that the command line describes."""
    p = parser()
    args = p.parse_args()
    if "E" in args.rules and not args.extender_url:
        p.error("rule E needs --extender-url")
    settings = Settings(
        extender_user=args.extender_user,
        own_users=frozenset(args.own_user),
        scheduler_users=frozenset(args.scheduler_user),
        schedulers=frozenset(args.scheduler_name) or frozenset({"volcano"}),
        rules=args.rules,
        limit_s=args.gang_limit_s,
        quiet_s=args.quiet_s,
        shared_nodes=args.shared_nodes,
    )
    options = Options(
        kubeconfig=args.kubeconfig,
        audit_log=args.audit_log,
        report=args.report,
        extender_url=args.extender_url,
        settle_s=args.settle_s,
        control_port=args.control_port,
    )
    return asyncio.run(Program(options, settings).run())


if __name__ == "__main__":
    sys.exit(main())
