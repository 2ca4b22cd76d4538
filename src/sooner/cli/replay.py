"""`sooner replay`."""

from pathlib import Path

import click


@click.command()
@click.argument("run", metavar="[RUN]", default=".sooner/runs/latest", type=click.Path(file_okay=False))
@click.option("--replay", "which", type=click.Choice(["all", "failed", "none"]), help="Which logs to print.")
@click.option(
    "--html", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write the run as a page."
)
@click.option("--json", "as_json", is_flag=True, help="The summary as JSON on stdout; all else on stderr.")
def replay(run: str, which: str | None, html: Path | None, *, as_json: bool) -> int:
    """Print the logs and the summary of a run again; RUN is the last one where not given.

    A run whose runner died is completed first: every unit gets its verdict, junit.xml and results.jsonl are written.
    """
    from sooner.cli.replaying import replay_run

    return replay_run(Path(run), which=which, html=html, as_json=as_json)
