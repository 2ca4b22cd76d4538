"""`sooner trunk revert`."""

import click


@click.command()
@click.argument("document", metavar="[FILE]", default="-")
@click.option("--execute", is_flag=True, help="Make the reverts; without it they are only proposed.")
@click.option("--repo", default="", metavar="DIR|URL", help="Repository to clone, examine and push to.")
@click.option("--github", default="", metavar="OWNER/NAME", help="Also open pull requests there (GITHUB_TOKEN).")
@click.option("--branch", "trunk", default="main", show_default=True, help="Trunk's name.")
@click.option("--journal", default=".sooner/reverts.jsonl", show_default=True, metavar="FILE", help="What was done.")
@click.option("--kill-switch", "switch", metavar="WHERE", help="A file, URL or github:OWNER/NAME#ISSUE.")
@click.option("--a-day", default=3, show_default=True, metavar="N", help="Most reverts within 24 h.")
@click.option("--oldest", default="2d", show_default=True, metavar="AGE", help="Oldest culprit (36h, 2d).")
@click.option("--opt-out-label", "opt_out", default="no-auto-revert", show_default=True, metavar="LABEL")
@click.option("--api", default="", metavar="URL", help="GitHub's API (default: GITHUB_API_URL).")
@click.option(
    "--patience", "patience_s", default=120.0, show_default=True, metavar="S", help="To wait for GitHub in all."
)
@click.option(
    "--pause", "pause_s", default=1.0, show_default=True, metavar="S", help="Before GitHub is first asked again."
)
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def revert(**options: object) -> int:
    """Propose the reverts of a decision document (FILE or stdin); with --execute make them, each once.

    The document is what `sooner trunk decide` or `sooner trunk verdicts --json` printed. Exit codes: 0 proposed or
    done, 5 nothing to revert, 11 something failed (mend what is printed and call it again: nothing is done twice), 12
    something was refused.
    """
    from sooner.cli.reverting import show

    return show(options)
