"""`sooner submit`."""

import os

import click


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--name", metavar="NAME", help="Name of the unit; else derived from the command.")
@click.option("--devices", metavar="N", type=click.IntRange(min=0), help="How many devices it needs.")
@click.option("--timeout", "timeout_s", metavar="S", default=0.0, help="Seconds from its start to its end.")
@click.option(
    "--queue", metavar="NAME", envvar="SOONER_QUEUE", default="", help="A queue to share; else the script's own."
)
@click.argument("command", metavar="-- COMMAND...", nargs=-1, required=True)
def submit(name: str | None, devices: int | None, timeout_s: float, queue: str, command: tuple[str, ...]) -> int:
    """In a shell script: leave a command, with environment and directory as they are now, to `sooner wait`."""
    from sooner.cli.recorded import report_dropped
    from sooner.model.errors import UsageError
    from sooner.plan import checking
    from sooner.run.submissions import submit as store

    if name is not None and (problem := checking.name(name)):
        raise UsageError(f"--name: {problem}")
    dropped = store(
        command,
        cwd=os.getcwd(),  # noqa: PTH109 - the directory as the shell spells it
        env=os.environ,
        name=name or "",
        devices=devices,
        timeout_s=timeout_s,
        queue=queue,
    )
    report_dropped(dropped)
    return 0
