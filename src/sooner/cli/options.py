"""Options that several verbs share."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import click


class Range(click.FloatRange):
    """Numbers between two; what is no number is none of them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or one clear error."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a valid float.", param, ctx)
        return number


_RUN_OPTIONS: Final[Sequence[Callable[[Any], Any]]] = (
    click.option("--devices", metavar="SPEC", help="auto, N, virtual:N, cpu:N, 0,1 or UUIDs."),
    click.option(
        "--out", metavar="DIR", type=click.Path(file_okay=False), help="Run folder (else below .sooner/runs)."
    ),
    click.option("--policy", type=click.Choice(["packed", "waves", "sequential"]), help="How units are placed."),
    click.option("--retries", metavar="N", type=int, help="Further attempts for what did not pass."),
    click.option("--grace", "grace_s", metavar="S", type=float, help="Seconds from SIGTERM to SIGKILL."),
    click.option("--timeout", "timeout_s", metavar="S", type=float, help="Limit for units that have none."),
    click.option(
        "--on-missing", type=click.Choice(["fail", "hole"]), help="When a unit needs more devices than there are."
    ),
    click.option("--shard", metavar="I/N", help="Run the I-th of N parts, balanced by duration."),
    click.option("--durations", metavar="PATH", type=click.Path(exists=True), help="JSON file or run folder."),
    click.option("--history", metavar="DIR", help="Where the run's record goes and durations come from, or none."),
    click.option("--quarantine", metavar="FILE", help="What it names runs as always and fails no run; or none."),
    click.option("--backend", type=click.Choice(["local", "ray"]), help="Run on this machine, or on a Ray cluster."),
    click.option("--replay", type=click.Choice(["all", "failed", "none"]), help="Which logs to print at the end."),
    click.option("--json", "as_json", is_flag=True, help="The summary as JSON on stdout; all else on stderr."),
)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of everything that runs units."""
    for option in reversed(_RUN_OPTIONS):
        command = option(command)
    return command
