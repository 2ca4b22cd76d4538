"""`sooner jobs backtest`."""

from typing import Any

import click

from sooner.cli.jobs_options import goal_options, history_options, printed_json, trunk_of
from sooner.model.errors import UsageError
from sooner.model.outcomes import ExitCode


@click.command()
@history_options
@goal_options
@click.option("--train", default=0.7, show_default=True, metavar="SHARE", help="Commits that are only learned from.")
@click.option("--retrain-every", default=25, show_default=True, metavar="N", help="Commits after which it learns anew.")
@click.option("--full-every", default=0, show_default=True, metavar="N", help="Every N-th commit runs all (0: none).")
@click.option("--full-nightly", is_flag=True, help="The first commit of each day (UTC) runs all.")
@click.option("--json", "as_json", is_flag=True, help='{"commits": [{"sha", "selected"}], "summary"} on stdout.')
def backtest(
    *, train: float, retrain_every: int, full_every: int, full_nightly: bool, as_json: bool, **options: Any
) -> int:
    """Replay the history: what would have been chosen for each commit, what caught, missed and spent.

    Each commit is decided with what was known when its first job was asked for. Without --recall and --budget: what
    [tool.sooner.jobs] says, else 97 % of the breakages for at most 60 % of the cost.
    """
    if not 0.0 <= train < 1.0:
        raise UsageError(f"--train {train:g}: a share of at least 0 and below 1 is needed")
    if retrain_every < 1 or full_every < 0:
        raise UsageError("--retrain-every must be at least 1, --full-every at least 0")
    from sooner.cli.jobs_change import aim, by_number, files_of, quiet_commits
    from sooner.cli.jobs_project import project_settings, tell_of_idle
    from sooner.cli.progress import progress

    settings = project_settings()
    wanted = aim(options, settings)
    facts, where = trunk_of(options)
    tell_of_idle(facts, settings)
    from sooner.analysis.selection.backtest import Backtest, Plan
    from sooner.analysis.selection.names import known_lineage
    from sooner.analysis.selection.settings import terms

    plan = Plan(goal=wanted, train=train, every=retrain_every, full_every=full_every, full_nightly=full_nightly)
    files = files_of(options["root"], where)
    quiet = quiet_commits(facts, files, settings)
    lineage = known_lineage(facts)
    with progress() as tell:
        done = Backtest.run(
            facts, plan, terms=terms(facts, settings), lineage=lineage, quiet=quiet,
            files=by_number(facts, files),
            progress=lambda step, whole: tell("commits decided", step, whole),
        )  # fmt: skip
    if as_json:
        commits = [
            {
                "sha": facts.commits[step.commit],
                "selected": sorted(facts.jobs[job] for job in step.selected),
                "level": step.level,
                "stated": step.stated,
            }
            for step in done.steps
        ]
        click.echo(printed_json({"commits": commits, "summary": done.summary}))
    else:
        from sooner.report.selection import backtest_text

        click.echo(backtest_text(done.summary, recall=wanted.recall, budget=wanted.budget))
    return int(ExitCode.ALL_PASSED if done.steps else ExitCode.NOTHING_TO_RUN)
