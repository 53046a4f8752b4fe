"""
What kube-scheduler believes is on the nodes, as it writes it into its log on SIGUSR2.

A pod that was assumed and never shown bound stays in that cache for ever, and takes room there;
and what the API says of an assumed pod is ignored, so its phase stands still. Both differ from
the API server's account, whose form here is the same: uid to node and phase.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.acceptance.bed import Bed
from tests.acceptance.pages import LogMark

NODE = re.compile(r"^\t? *Node name: (?P<name>\S+)$")
POD = re.compile(r"uid: (?P<uid>\S+), phase: (?P<phase>\S+), nominated node:")
FIRST_LINE, LAST_LINE = "Dump of cached NodeInfo", "Dump of scheduling queue"
DUMP_S = 10.0

Placed = Mapping[str, tuple[str, str]]
"""Pod uid -> (node, phase)."""


async def cached(bed: Bed) -> Placed:
    """Return what kube-scheduler has on the nodes."""
    scheduler = bed.cluster.scheduler
    assert scheduler is not None
    log = LogMark(bed.plane.processes, scheduler.name)
    await bed.aside(scheduler.dump_cache)
    text = await log.shows(lambda text: LAST_LINE in text, DUMP_S, "the dump of the cache")
    return parse(text)


def shown(bed: Bed) -> Placed:
    """Return what the API server has on the nodes; finished pods are on none."""
    return {
        pod["metadata"]["uid"]: (pod["spec"]["nodeName"], pod["status"]["phase"])
        for pod in bed.pods.values()
        if pod["spec"].get("nodeName") and pod["status"]["phase"] not in ("Succeeded", "Failed")
    }


def parse(log: str) -> Placed:
    """Read a dump; pods that are merely nominated for a node are not on it."""
    found: dict[str, tuple[str, str]] = {}
    node, counts = "", False
    for line in log.partition(FIRST_LINE)[2].partition(LAST_LINE)[0].splitlines():
        if match := NODE.match(line):
            node = match["name"]
        elif "Pods(number: " in line:
            counts = "Scheduled Pods" in line
        elif counts and (match := POD.search(line)):
            found[match["uid"]] = (node, match["phase"])
    return found
