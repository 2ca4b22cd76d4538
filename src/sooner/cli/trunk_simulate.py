"""`sooner trunk simulate`: policies beside each other on trunks whose culprits are known."""

import click


@click.command()
@click.option("--trunks", metavar="N", default=100, show_default=True, help="Simulated trunks a row.")
@click.option("--seed", metavar="N", default=0, show_default=True, help="Of the first trunk; the others count up.")
@click.option("--policy", "policies", multiple=True, type=click.Choice(["bayes", "rules"]), help="Default: both.")
@click.option(
    "--scenario",
    "names",
    multiple=True,
    metavar="TEXT",
    help="Only the scenario of this name, or those whose name holds it.",
)
@click.option("--jobs", type=click.IntRange(min=0), default=0, metavar="N", help="Processes (default: one a core).")
@click.option("--list", "lists", is_flag=True, help="Only name the scenarios.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def simulate(**options: object) -> int:
    """Let policies decide about simulated trunks whose culprits are known, and print what came of it."""
    from sooner.cli.trunk_simulating import Order, show

    return show(Order.of(options))
