"""
`pumice manifests`: everything that a cluster needs to have Pumice, as one file for kubectl.

The file is made of the texts in `manifests/`, comments and all, in an order in which each object
finds what it refers to. It has the default layout: a kube-scheduler of Pumice's own, with the
extender in its pod. Jobs and queues are checked by webhooks, or by policies in their place. The
queues that always exist are made by the controllers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from textwrap import indent
from typing import Annotated, Final

import typer

from pumice.core import names
from pumice.local import paths


class Admission(StrEnum):
    """Who checks Jobs and queues, and gives them defaults."""

    webhooks = "webhooks"
    policies = "policies"


IMAGE: Final = "pumice:0.1.0"
"""What the image of this version is called where it was built."""
PARTS: Final = (
    "namespace.yaml",
    "crds/*.yaml",
    "rbac/controllers.yaml",
    "rbac/extender.yaml",
    "rbac/scheduler.yaml",
    "rbac/webhooks.yaml",
    "scheduler-config.yaml",
    "deploy/volcano-scheduler.conf",
    "deploy/*.yaml",
    "admission/policies/*.yaml",
    "admission/*.yaml",
)
LEFT_OUT: Final = {
    Admission.webhooks: ("admission/policies/*.yaml",),
    Admission.policies: ("rbac/webhooks.yaml", "deploy/webhooks.yaml"),
}
"""What is not there with each kind of admission."""
CONFIG_MAPS: Final = {
    "scheduler-config.yaml": "pumice-kube-scheduler",
    "volcano-scheduler.conf": "pumice-scheduler",
}
"""Files that pods mount, and the ConfigMap that each of them is in."""
CONFIG_MAP: Final = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  namespace: {namespace}
  labels: {{app.kubernetes.io/part-of: pumice}}
data:
  {key}: |
{content}"""

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_IMAGE: Final = re.compile(r"[\w.-]+(:\d+)?(/[\w.-]+)*(:[\w.-]+)?(@sha256:[0-9a-f]{64})?")
_OUR_IMAGE: Final = re.compile(r"image: pumice$", re.MULTILINE)


def command(
    image: Annotated[str, typer.Option(help="Pumice's image, as the nodes pull it")] = IMAGE,
    namespace: Annotated[str, typer.Option(help="for Pumice alone")] = names.NAMESPACE,
    admission: Annotated[
        Admission, typer.Option(help="who checks Jobs and queues, and gives them defaults")
    ] = Admission.webhooks,
) -> None:
    """Print what `kubectl apply -f` needs to install Pumice in a cluster."""
    try:
        typer.echo(render(image, namespace, admission), nl=False)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def render(
    image: str, namespace: str = names.NAMESPACE, admission: Admission = Admission.webhooks
) -> str:
    """Return the file; raise ValueError where the image or the namespace cannot be one."""
    if not _IMAGE.fullmatch(image):
        raise ValueError(f"{image!r} is not the name of an image")
    if not _NAMESPACE.fullmatch(namespace):
        raise ValueError(f"{namespace!r} is not the name of a namespace")
    if namespace == "default" or namespace.startswith("kube-"):
        raise ValueError(f"{namespace} is not for Pumice alone, and would be deleted with it")
    text = "---\n".join(_texts(paths.manifests(), admission))
    return _OUR_IMAGE.sub(f"image: {image}", text).replace(names.NAMESPACE, namespace)


def _texts(root: Path, admission: Admission) -> Iterator[str]:
    left_out = {file for part in LEFT_OUT[admission] for file in root.glob(part)}
    for part in PARTS:
        for file in sorted({*root.glob(part)} - left_out):
            yield _config_map(file) if file.name in CONFIG_MAPS else file.read_text()


def _config_map(file: Path) -> str:
    return CONFIG_MAP.format(
        name=CONFIG_MAPS[file.name],
        namespace=names.NAMESPACE,
        key=file.name,
        content=indent(file.read_text(), "    "),
    )
