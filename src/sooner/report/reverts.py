"""Reverts on a terminal: what is proposed, made or refused, with its evidence and the commands."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sooner.model.text import one_line, terminal_text

_MOST_SIGNALS: Final = 10


def results_text(results: Sequence[Mapping[str, Any]]) -> str:
    """A block for each revert.

    Args:
        results: `culprit`, `state`, `reason`, `detail`, `branch`, `url`, `title`, `message`, `commands`, `signals`.
    """
    if not results:
        return "nothing to revert"
    return "\n\n".join("\n".join(_block(result)) for result in results)


def _block(result: Mapping[str, Any]) -> list[str]:
    why = f" ({result['reason']}): {one_line(result['detail'])}" if result["reason"] else ""
    if not why and result["detail"]:
        why = f": {one_line(result['detail'])}"
    lines = [f"{result['state']}: {result['culprit']}{why}"]
    if result["url"]:
        lines.append(f"  {one_line(result['url'])}")
    elif result["branch"] and result["state"] in ("reverted", "already"):
        lines.append(f"  branch {one_line(result['branch'])}")
    if result["state"] == "refused":
        lines += [f"  signal: {one_line(signal)}" for signal in result["signals"][:_MOST_SIGNALS]]
    if result["state"] == "proposed":
        text = terminal_text(result["message"], colour=False).rstrip("\n")
        lines += ["", *(f"    {line}".rstrip() for line in text.split("\n")), ""]
        lines += [f"  $ {one_line(command)}" for command in result["commands"]]
    return lines
