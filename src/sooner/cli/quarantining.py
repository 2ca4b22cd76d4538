"""The quarantine file of a run: read before anything starts, kept in the run's folder, and what it named in vain."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from sooner.model.errors import RunFolderError
from sooner.model.events import Verdict
from sooner.model.quarantine import QuarantineError, read_quarantine, unknown_note
from sooner.model.units import Plan, UnitKey
from sooner.run.folder import RunFolder, write_atomically
from sooner.run.quarantined import Quarantined
from sooner.run.records import kept_junit_path


def quarantine_file(setting: str) -> str:
    """The text of the quarantine file; empty where there is none.

    Raises:
        QuarantineError: It cannot be read, or is broken.
    """
    if setting in ("", "none"):
        return ""
    try:
        text = Path(setting).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise QuarantineError(f"{setting} is not UTF-8 text (byte {error.start}): save it as UTF-8") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        hint = "`sooner trunk flaky --write FILE` makes one"
        raise QuarantineError(f"the quarantine {setting} cannot be read: {reason} ({hint})") from None
    read_quarantine(text, source=setting)
    return text


def keep_quarantine(folder: RunFolder, text: str) -> None:
    """Put the quarantine beside the run, so that whoever completes or replays it judges alike.

    Raises:
        RunFolderError: It cannot be written.
    """
    try:
        if text:
            write_atomically(folder.quarantine, text.encode())
        else:
            folder.quarantine.unlink(missing_ok=True)
    except OSError as error:
        raise RunFolderError(f"cannot write {folder.quarantine}: {error.strerror}") from error


def quarantine_notes(folder: RunFolder, plan: Plan, verdicts: Mapping[UnitKey, Verdict], source: str) -> Iterator[str]:
    """A note about entries that this run had nothing of."""
    quarantined = Quarantined(folder)
    if not quarantined.unknown():
        return
    for unit in plan.units:
        verdict = verdicts.get(unit.key)
        quarantined.knows(unit, kept_junit_path(folder, verdict.log) if verdict and verdict.log else None)
    if note := unknown_note(quarantined.unknown(), source):
        yield note
