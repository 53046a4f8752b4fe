"""
The CRD manifests of Pumice's kinds, made from their structs.

`python -m pumice.core.api.crd DIRECTORY` writes them. What a struct cannot say stands in the
table below: names, scope, printer columns, and whether status is a subresource. PodGroup and
Command have none, as in Volcano: status is written with the object, a status given on create is
kept, and `/status` is not found. Helm keeps the CRDs when the chart is removed, since with a CRD
go all its objects.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from pumice.core import names
from pumice.core.api.batch import Job
from pumice.core.api.bus import Command
from pumice.core.api.cron import CronJob
from pumice.core.api.flow import JobFlow, JobTemplate
from pumice.core.api.numatopology import Numatopology
from pumice.core.api.rules import RULES
from pumice.core.api.scheduling import PodGroup, Queue
from pumice.core.api.schema import object_schema
from pumice.core.api.topology import HyperNode

AGE = ("AGE", "date", ".metadata.creationTimestamp")
QUEUE = ("QUEUE", "string", ".spec.queue", 1)


@dataclass(frozen=True, slots=True)
class Kind:
    """What the manifest says beside the schema."""

    struct: type[msgspec.Struct]
    api: str
    plural: str
    short: tuple[str, ...] = ()
    namespaced: bool = True
    status: bool = False
    #: name, type, JSON path and, where it shows with `-o wide` alone, priority 1
    columns: tuple[tuple[str, str, str] | tuple[str, str, str, int], ...] = ()

    @property
    def group(self) -> str:
        """Return the API group, without the version."""
        return self.api.partition("/")[0]


KINDS = (
    Kind(
        Job,
        names.BATCH_API,
        "jobs",
        short=("vcjob", "vj"),
        status=True,
        columns=(
            ("STATUS", "string", ".status.state.phase"),
            ("minAvailable", "integer", ".status.minAvailable"),
            ("RUNNINGS", "integer", ".status.running"),
            AGE,
            QUEUE,
        ),
    ),
    Kind(
        PodGroup,
        names.SCHEDULING_API,
        "podgroups",
        short=("pg", "podgroup-v1beta1"),
        columns=(
            ("STATUS", "string", ".status.phase"),
            ("minMember", "integer", ".spec.minMember"),
            ("RUNNINGS", "integer", ".status.running"),
            AGE,
            QUEUE,
        ),
    ),
    Kind(
        Queue,
        names.SCHEDULING_API,
        "queues",
        short=("q", "queue-v1beta1"),
        namespaced=False,
        status=True,
        columns=(("PARENT", "string", ".spec.parent"),),
    ),
    Kind(Command, names.BUS_API, "commands"),
    Kind(CronJob, names.BATCH_API, "cronjobs", short=("cronvcjob", "cronvj"), status=True),
    Kind(
        JobFlow,
        names.FLOW_API,
        "jobflows",
        short=("jf",),
        status=True,
        columns=(
            ("Status", "string", ".status.state.phase"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
    ),
    Kind(JobTemplate, names.FLOW_API, "jobtemplates", short=("jt",), status=True),
    Kind(
        HyperNode,
        names.TOPOLOGY_API,
        "hypernodes",
        short=("hn",),
        namespaced=False,
        status=True,
        columns=(
            ("Tier", "string", ".spec.tier"),
            ("TierName", "string", ".spec.tierName"),
            ("NodeCount", "integer", ".status.nodeCount"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ),
    ),
    Kind(
        Numatopology,
        names.NODE_INFO_API,
        "numatopologies",
        short=("numatopo",),
        namespaced=False,
    ),
)


def manifest(kind: Kind) -> dict[str, Any]:
    """Return the CustomResourceDefinition of one kind."""
    name = kind.struct.__name__
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            "annotations": {"helm.sh/resource-policy": "keep"},
        },
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {
                "kind": name,
                "listKind": f"{name}List",
                "plural": kind.plural,
                "singular": name.lower(),
            }
            | ({"shortNames": list(kind.short)} if kind.short else {}),
            "versions": [_version(kind)],
        },
    }


def _version(kind: Kind) -> dict[str, Any]:
    version: dict[str, Any] = {
        "name": kind.api.partition("/")[2],
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": object_schema(kind.struct, RULES)},
    }
    if kind.columns:
        version["additionalPrinterColumns"] = [_column(*column) for column in kind.columns]
    if kind.status:
        version["subresources"] = {"status": {}}
    return version


def _column(name: str, kind: str, path: str, priority: int = 0) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": kind, "jsonPath": path}
    return column | ({"priority": priority} if priority else {})


class _Dumper(yaml.SafeDumper):
    """Writes each value in full: `kubectl apply` and readers know no anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def manifests() -> dict[str, str]:
    """Return file name -> YAML for all kinds; the same structs always give the same text."""
    return {
        f"{kind.group}_{kind.plural}.yaml": yaml.dump(
            manifest(kind), Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True
        )
        for kind in KINDS
    }


def main(directory: str) -> None:
    """Write the manifests into `directory`."""
    target = Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    for name, text in manifests().items():
        (target / name).write_text(text)


if __name__ == "__main__":
    main(sys.argv[1])
