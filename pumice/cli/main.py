"""
`pumice`: the command line.

Commands import what they need when they run, so that `--help` and completion are quick.
"""

from __future__ import annotations

import typer

from pumice.cli import cluster

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
def demo() -> None:
    """Show the main job in under a minute: two gangs and a small Job share a cluster."""
    from pumice.cli.demo import run

    run()


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
