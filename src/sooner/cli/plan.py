"""`sooner plan`."""

import os
from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("plan_file", metavar="PLAN.toml", type=click.Path())
@click.option("--devices", metavar="SPEC", help="auto, N, virtual:N, cpu:N, 0,1 or UUIDs.")
@click.option("--policy", type=click.Choice(["packed", "waves", "sequential"]), help="How units are placed.")
@click.option(
    "--on-missing", type=click.Choice(["fail", "hole"]), help="When a unit needs more devices than there are."
)
@click.option("--shard", metavar="I/N", help="Only the I-th of N parts, balanced by duration.")
@click.option("--durations", metavar="PATH", type=click.Path(exists=True), help="JSON file or run folder.")
@click.option("--history", metavar="DIR", help="Where durations come from that the last runs do not tell.")
@click.option("--json", "as_json", is_flag=True, help='{"order": [...], "makespan_s", "bound_s"} on stdout.')
def plan(plan_file: str, *, as_json: bool, **cli: Any) -> int:
    """Predict in which order, when and where the units would run; start nothing.

    Durations come from --durations, or the last runs and the history; units that nothing is known of count as the
    median of the others, and as 1 s if nothing is known of any.
    """
    import msgspec

    from sooner.cli.preparing import host_slots, prepare
    from sooner.cli.run import plan_text
    from sooner.plan.toml_plan import read_plan
    from sooner.report.prediction import prediction, prediction_text
    from sooner.schedule.bounds import lower_bound
    from sooner.schedule.order import assumed_seconds, ranks
    from sooner.schedule.simulate import simulate

    text = plan_text(Path(plan_file))
    prepared = prepare(read_plan(text, source=plan_file, env=os.environ), cli, text=text)
    seconds = assumed_seconds(prepared.works)
    placements = simulate(
        prepared.works,
        seconds,
        prepared.devices,
        ranks=ranks(prepared.works, prepared.devices, host_slots=host_slots()),
        policy=prepared.settings.policy,
        host_slots=host_slots(),
    )
    bound = lower_bound(prepared.works, seconds, prepared.devices)
    document = prediction(placements, prepared.plan, prepared.devices, bound)
    if as_json:
        click.echo(msgspec.json.encode(document).decode())
    else:
        unknown = sum(work.seconds is None for work in prepared.works)
        click.echo(prediction_text(document, unknown=unknown, units=len(prepared.works), notes=prepared.notes))
    return 0
