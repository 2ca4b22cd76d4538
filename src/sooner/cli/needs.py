"""`sooner needs`."""

import click


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--dry", is_flag=True, help="Import the tests with a faked device count; bodies are not run.")
@click.option("--real", is_flag=True, help="Run the tests at each number of visible devices.")
@click.option("--diff", is_flag=True, help="Compare what is declared, what is needed and where CI runs it.")
@click.option(
    "--placement",
    "placements",
    multiple=True,
    metavar="FILE",
    help="Where CI runs what, for --diff (TOML, workflow or folder of them, pipeline, BUILD).",
)
@click.option("--rules", multiple=True, metavar="FILE", help="Further rules, looked at before the shipped ones (TOML).")
@click.option("--python", default="", metavar="EXE", help="The project's interpreter, for --dry and --real.")
@click.option("--devices", default="auto", show_default=True, help="The devices of --real (auto, N, virtual:N).")
@click.option(
    "--jobs", type=click.IntRange(min=0), default=0, metavar="N", help="Processes (default: as many as there are CPUs)."
)
@click.option("--no-cache", is_flag=True, help="Evaluate every file anew, and keep nothing.")
@click.option(
    "--min",
    "least",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Show only tests that need at least N devices.",
)
@click.option("--why", is_flag=True, help="Below each test: the lines that decide.")
@click.option("--limit", type=click.IntRange(min=0), default=200, show_default=True, metavar="N", help="How many rows.")
@click.option("--plan", "as_plan", is_flag=True, help="A plan for `sooner run`: a unit for each file and width.")
@click.option("--most", type=int, default=0, metavar="N", help="Devices that there are, for tests that adapt (--plan).")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def needs(**options: object) -> int:
    """Say how many devices each test needs, and why.

    Without a PATH it looks where pytest would: at its testpaths, else in the current folder. A PATH may name a test, as
    pytest's do: tests/test_it.py::test_two.

    Nothing of the project is imported or run, unless --dry or --real asks for it. What the columns mean:
    docs/reference/needs.md.
    """
    from sooner.cli.needs_answer import Question, show

    return show(Question.of(options))
