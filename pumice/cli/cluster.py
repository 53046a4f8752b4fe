"""`pumice cluster`: a cluster on this machine with Pumice installed, to try things out."""

from __future__ import annotations

import shutil
from datetime import timedelta
from time import time
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from pumice.local.keeper import State

app = typer.Typer(
    help="A local cluster with Pumice in it: real control plane, fake nodes, no containers.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def up(
    nodes: Annotated[int, typer.Option(min=0, max=5000, help="fake nodes of 32 CPU")] = 20,
) -> None:
    """Start the cluster in the background; the first time, build its control plane."""
    from pumice.local import keeper
    from pumice.local.build import binaries
    from pumice.local.errors import LocalError

    directory = keeper.state_directory()
    state = keeper.current(directory)
    if state is not None:
        typer.echo("The cluster is up already.")
        return _describe(state)
    try:
        binaries(typer.echo)
        typer.echo(f"Starting the control plane, {nodes} nodes and Pumice ...")
        state = keeper.start(directory, nodes)
    except LocalError as error:
        _fail(str(error))
    typer.echo(f"The cluster is up: {state.nodes} nodes, Pumice installed.")
    _describe(state)


@app.command()
def down() -> None:
    """End the cluster; everything in it is lost."""
    from pumice.local import keeper
    from pumice.local.errors import LocalError

    try:
        ended = keeper.stop(keeper.state_directory())
    except LocalError as error:
        _fail(str(error))
    typer.echo("The cluster is down." if ended else "No cluster is up.")


@app.command()
def status() -> None:
    """Say whether the cluster is up, and which of its parts run; exit code 1 if it is not up."""
    from pumice.local import keeper

    state = keeper.current(keeper.state_directory())
    if state is None:
        typer.echo("No cluster is up. `pumice cluster up` starts one.")
        raise typer.Exit(1)
    age = timedelta(seconds=round(time() - state.started))
    typer.echo(f"The cluster has been up for {age}, with {state.nodes} nodes, at {state.server}")
    for name, pid in state.components.items():
        condition = f"running (process {pid})" if keeper.is_alive(pid) else "ended"
        typer.echo(f"  {name:24} {condition}")
    typer.echo(f"Logs: {state.logs}")
    _describe(state)


def _describe(state: State) -> None:
    """Print what to type next."""
    from pumice.local.paths import manifests
    from pumice.local.toolchain import find_kubectl

    name = "kubectl" if shutil.which("kubectl") else str(find_kubectl())
    lines = [
        f"export KUBECONFIG={state.kubeconfig}",
        f"{name} create -f {manifests() / 'examples' / 'job.yaml'}",
        f"{name} get vcjob,podgroup,queue",
        "pumice cluster down",
    ]
    typer.echo("\nNext:\n" + "\n".join(f"  {line}" for line in lines))


def _fail(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(1)
