"""Names that a question is about, and that the history may not have."""

from typing import Final

from sooner.history.reading import Where
from sooner.history.store import History
from sooner.history.tables import table_named
from sooner.model.errors import UsageError
from sooner.model.text import there_are

_ASKED: Final = ("repository", "workflow", "branch")
_MOST_NAMED: Final = 5


def unknown_name(history: History, where: Where) -> str:
    """Which repository, workflow or branch that is asked for no job has, beside those that there are; else empty."""
    for field in _ASKED:
        name = getattr(where, field)
        if not name:
            continue
        codes, names = history.columns("jobs", [field], ordered=False).text(field)
        known = {names[code] for code in set(codes.tolist()) if code >= 0}
        if name not in known:
            return f"no job of the history has the {field} {name!r}: {there_are(name, known)}"
    return ""


def check_named(history: History, where: Where) -> None:
    """Refuse a name that no job, test or commit has: what knows no branch would answer for it.

    Where nothing of the history knows a branch or a workflow, all of it may be of this one; no repository is none.

    Raises:
        UsageError: A repository, workflow or branch that is asked for, beside those that there are.
    """
    for field in _ASKED:
        name = getattr(where, field)
        known = _known(history, field, name) if name else set()
        is_of_any = not known and field != "repository"
        if name and name not in known and not is_of_any:
            raise UsageError(f"nothing of the history has the {field} {name!r}: {there_are(name, known)}")


def left_out(history: History, where: Where) -> list[str]:
    """A sentence for a workflow or branch that is asked for where no job tells its own: reports may answer, no job."""
    notes = []
    for field in ("workflow", "branch"):
        if getattr(where, field):
            codes, _ = history.columns("jobs", [field], Where(repository=where.repository), ordered=False).text(field)
            if len(codes) and (codes < 0).all():
                again = f"a new history, ingested with --set {field}={getattr(where, field)}, would have it"
                notes.append(f"no job of the history tells its {field}, so --{field} leaves all of them out ({again})")
    return notes


def _known(history: History, field: str, name: str) -> set[str]:
    """Names that jobs, commits and tests have; of the tests, of which there are most, only if the others lack this."""
    found: set[str] = set()
    for table in ("jobs", "commits", "tests"):
        if name in found or field not in table_named(table).columns:
            continue
        codes, names = history.columns(table, [field], ordered=False).text(field)
        found |= set(names)
        if table == "commits" and field == "branch" and (codes < 0).any():
            found.add(name)  # what knows no branch may be of any
    return found


def check_one_repository(history: History, where: Where, *tables: str) -> None:
    """Refuse to take the rows of several repositories for those of one.

    Raises:
        UsageError: Rows that are asked for are of several, and none was named.
    """
    found = {name for table in tables if not where.repository for name in history.repositories(table, where)}
    if len(found) > 1:
        some = ", ".join(sorted(found)[:_MOST_NAMED]) + (", ..." if len(found) > _MOST_NAMED else "")
        raise UsageError(f"the history holds several repositories, name one with --repository: {some}")
