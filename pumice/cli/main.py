"""
`pumice`: the command line.

Commands import what they need when they run, so that `--help` and completion are quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

from pumice.cli import cluster, explain, manifests, replay

app = typer.Typer(
    name="pumice",
    help="Volcano's batch API on the stock kube-scheduler.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Plain help: importing rich for it takes longer than all the rest.
    rich_markup_mode=None,
)
app.add_typer(cluster.app, name="cluster")


@app.command()
def demo(
    nodes: Annotated[int | None, typer.Option(min=1, help="at scale: simulated nodes")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="at scale: Jobs, each a gang")] = None,
    replicas: Annotated[int | None, typer.Option(min=1, help="at scale: pods of each Job")] = None,
) -> None:
    """Show the main job: two gangs and a small Job share a cluster; or many gangs at scale."""
    if nodes is None and jobs is None and replicas is None:
        from pumice.cli.demo import run

        run()
        return
    from pumice.cli import scale

    wanted = scale.Scale(nodes=nodes or 1_000, jobs=jobs or 20, replicas=replicas or 100)
    if refusal := wanted.refusal():
        raise typer.BadParameter(refusal)
    scale.run(wanted)


@app.command()
def release(
    every: Annotated[bool, typer.Option("--all", help="release every held pod")] = False,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="of this one alone")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only list them")] = False,
    kubeconfig: Annotated[str | None, typer.Option(help="default: as kubectl has it")] = None,
) -> None:
    """Let pods go that Pumice holds: when it is uninstalled, or on the way back to Volcano."""
    if not every:
        raise typer.BadParameter("say --all: every pod that is held will be released")
    from pumice.cli.release import run

    raise typer.Exit(run(namespace, dry_run, kubeconfig))


app.command("explain")(explain.command)
app.command("manifests")(manifests.command)
app.command("replay")(replay.command)


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
