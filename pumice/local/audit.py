"""
What kube-apiserver writes into its audit log.

Reads, Events and Leases are left out: the log is there to tell who *wrote* what, and when. At
level `RequestResponse` the objects that Pumice places are logged with their bodies, so a reader
can compare resource versions before and after a patch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

AuditLevel = Literal["Metadata", "RequestResponse"]

WITH_BODIES = {
    "": ["pods", "pods/status", "pods/binding", "pods/eviction"],
    "batch.volcano.sh": ["jobs", "jobs/status"],
    "scheduling.volcano.sh": ["podgroups", "podgroups/status", "queues", "queues/status"],
    "bus.volcano.sh": ["commands"],
}


def policy(level: AuditLevel) -> dict[str, object]:
    """Return the audit policy; one event for each finished request."""
    quiet = [
        {"level": "None", "verbs": ["get", "list", "watch"]},
        {"level": "None", "resources": [{"group": "", "resources": ["events"]}]},
        {"level": "None", "resources": [{"group": "events.k8s.io"}]},
        {"level": "None", "resources": [{"group": "coordination.k8s.io"}]},
    ]
    bodies = {
        "level": "RequestResponse",
        "resources": [{"group": g, "resources": r} for g, r in WITH_BODIES.items()],
    }
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "omitManagedFields": True,
        "rules": [*quiet, *([bodies] if level == "RequestResponse" else []), {"level": "Metadata"}],
    }


def arguments(level: AuditLevel, directory: Path, log: Path) -> list[str]:
    """Write the policy; return the arguments that make kube-apiserver follow it."""
    file = directory / "audit-policy.json"
    file.write_text(json.dumps(policy(level)))
    return [
        f"--audit-policy-file={file}",
        f"--audit-log-path={log}",
        # An answer is sent after its event is written: the log never lags behind a client.
        "--audit-log-mode=blocking",
        "--audit-log-maxsize=4096",
    ]
