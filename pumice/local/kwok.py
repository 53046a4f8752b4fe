"""
KWOK, the fake kubelet: nodes that are Ready and pods that run without containers.

What pods do is written down in `stages/*.yaml`, each file with its rules at the top. Here those
files become one configuration, with the options that fit a small machine under load.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import yaml

NODE_LABEL = "type"
NODE_LABEL_VALUE = "kwok"

OPTIONS: dict[str, object] = {
    "manageAllNodes": False,
    # Pods on nodes without the label (or on no node at all) are left alone.
    "manageNodesWithLabelSelector": f"{NODE_LABEL}={NODE_LABEL_VALUE}",
    "cidr": "10.128.0.0/9",
    "nodeIP": "10.127.0.1",
    "nodeLeaseDurationSeconds": 0,
    "podPlayStageParallelism": 32,
    "nodePlayStageParallelism": 16,
    "podsOnNodeSyncParallelism": 4,
    "enablePodsOnNodeSyncStreamWatch": False,
    "enableDebuggingHandlers": False,
}

ENVIRONMENT = {"KUBE_FEATURE_WatchListClient": "false"}
"""
KWOK lists the pods of each node that appears. As a watch that takes half a second: with 1,000
nodes it goes on for minutes, and every pod bound meanwhile is made to run twice.
"""


def stages() -> list[dict[str, object]]:
    """Return the stages, in the order of their files' names."""
    directory = files("pumice.local") / "stages"
    found = sorted(directory.iterdir(), key=lambda file: file.name)
    return [
        document
        for file in found
        if file.name.endswith(".yaml")
        for document in yaml.safe_load_all(file.read_text())
    ]


def write_config(path: Path) -> Path:
    """Write KWOK's configuration file and return its path."""
    options = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "options": OPTIONS,
    }
    path.write_text(yaml.safe_dump_all([options, *stages()], sort_keys=False))
    return path
