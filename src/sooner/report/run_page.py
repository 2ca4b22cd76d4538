"""A run as one HTML page that opens offline: when which device ran what, every unit, the logs of what did not pass.

Names, causes and output are data: escaped, and the page may load and send nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Final
from urllib.parse import quote

from sooner.model.devices import Device
from sooner.model.events import Attempt, Verdict
from sooner.model.outcomes import ExitCode, Outcome
from sooner.model.text import terminal_text, xml_text
from sooner.report.summary import Figures
from sooner.report.wording import WORDS, counted, device_label, seconds, unit_label

MOST_LOGS: Final = 200
"""Logs of units that did not pass which are shown; all are in the folder."""
_WIDTH: Final = 1000
_ROW: Final = 20
_LABEL: Final = 150
_LETTER: Final = 6
"""Of a label, at most in the mean."""
_TICKS: Final = 5
_HOST: Final = "the host"
_STYLE: Final = """
:root{color-scheme:light dark;--line:#8884;--soft:#8882}
body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1200px;padding:0 1em}
h1{font-size:1.4em;margin:0}h2{font-size:1.1em;margin:2em 0 .5em}
.chip{display:inline-block;padding:.1em .6em;border-radius:1em;color:#fff;margin-right:.4em;white-space:nowrap}
.passed{background:#2e7d32;fill:#2e7d32}.failed{background:#c62828;fill:#c62828}.crashed{background:#8e1b4f;fill:#8e1b4f}
.timed_out{background:#b85c00;fill:#b85c00}.out_of_memory{background:#6a1b9a;fill:#6a1b9a}
.worker_lost{background:#37474f;fill:#37474f}.hole,.skipped,.not_run{background:#757575;fill:#757575}
svg{width:100%;height:auto;font:11px system-ui,sans-serif}svg text{fill:currentColor}svg line{stroke:var(--line)}
svg line.cut{stroke:currentColor;stroke-width:2;stroke-dasharray:4 3}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25em .6em;border-bottom:1px solid var(--line)}
td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td:first-child,td:nth-child(2),td:last-child,summary,h1{overflow-wrap:anywhere}td:first-child{min-width:16em}
td:nth-child(2){min-width:9em}td:last-child{min-width:8em}
pre{overflow:auto;max-height:30em;background:var(--soft);padding:.7em;font-size:12px}
.only tr[data-passed]{display:none}
summary{cursor:pointer}input[type=search]{padding:.3em .6em;width:20em;margin-right:1em}.quiet{opacity:.7}
"""
_SCRIPT: Final = """
const words=document.getElementById('words'),only=document.getElementById('only');
const table=document.querySelector('table'),rows=[...document.querySelectorAll('tbody tr')];
function choose(){table.className=only.checked?'only':''}
words.oninput=()=>{const wanted=words.value.toLowerCase();
for(const row of rows)row.hidden=!row.textContent.toLowerCase().includes(wanted)};
only.onchange=choose;choose();if(words.value)words.oninput();
"""
_SAFETY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def run_page(
    verdicts: Sequence[Verdict],
    figures: Figures,
    devices: Sequence[Device],
    *,
    name: str,
    code: ExitCode,
    notes: Iterable[str],
    pauses: Sequence[tuple[float, float]] = (),
    logs_at: str,
    log_of: Callable[[Verdict], str],
) -> str:
    """The page.

    Args:
        verdicts: In plan order.
        figures: How long it took.
        devices: Of the run.
        name: What the run is called.
        code: How it ended.
        notes: What a reader should know, a line each.
        pauses: From when until when nobody ran it, before it was resumed.
        logs_at: The run's folder, as the page links to it.
        log_of: The end of a unit's output; asked for what did not pass.
    """
    known: dict[str, Device] = {device.id: device for device in devices}
    broken = [verdict for verdict in verdicts if verdict.outcome is not Outcome.PASSED]
    said = [f"exit code {code.value}: {code.words}", f"{counted(len(devices), 'device')}", *_times(figures)]
    return "".join(
        [
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(name)}</title>\n',
            '<meta name="viewport" content="width=device-width,initial-scale=1">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{_SAFETY}">\n<style>{_STYLE}</style></head><body>\n',
            f"<h1>{_text(name)}</h1>\n<p>{_counts(verdicts)}</p>\n<p>{_text(', '.join(said))}</p>\n",
            *(f'<p class="quiet">note: {_text(note)}</p>\n' for note in notes),
            f"<h2>Devices over time</h2>\n{timeline(verdicts, devices, pauses)}",
            f"<h2>{_text(counted(len(verdicts), 'unit'))}</h2>\n",
            '<p><input type="search" id="words" placeholder="filter" aria-label="filter units">',
            f'<label><input type="checkbox" id="only"{" checked" if broken else ""}> only what did not pass</label>',
            "</p>\n",
            f"<table{' class=only' if broken else ''}>",
            "<thead><tr><th>Unit<th>Outcome<th>Time<th>On<th>Attempts<th>Log</tr></thead><tbody>\n",
            *(_row(verdict, known, logs_at) for verdict in verdicts),
            "</tbody></table>\n",
            _logs(broken, log_of),
            f"<script>{_SCRIPT}</script></body></html>\n",
        ]
    )


def timeline(verdicts: Sequence[Verdict], devices: Sequence[Device], pauses: Sequence[tuple[float, float]] = ()) -> str:
    """When each device ran what: SVG, a row a device, a bar an attempt; pauses are cut out, and marked."""

    def since(at: float) -> float:
        return at - begin - sum(max(0.0, min(at, until) - left_off) for left_off, until in pauses)

    ran = [(verdict, attempt) for verdict in verdicts for attempt in verdict.attempts]
    if not ran:
        return '<p class="quiet">nothing ran</p>\n'
    rows: dict[str, int] = {device.id: i for i, device in enumerate(devices)}
    has_host = any(not attempt.devices for _, attempt in ran)
    labels = [device.label for device in devices] + [_HOST] * has_host
    begin, end = min(attempt.started_at for _, attempt in ran), max(attempt.ended_at for _, attempt in ran)
    left = max(_LABEL, min(_WIDTH // 3, 16 + _LETTER * max(map(len, labels))))
    scale = (_WIDTH - left) / max(since(end), 1e-6)
    height = _ROW * len(labels) + 18
    parts = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img"><title>When each device ran what</title>']
    for tick in range(_TICKS + 1):
        x = left + (_WIDTH - left) * tick / _TICKS
        anchor = "end" if tick == _TICKS else "middle"
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 16}"/>')
        told = _text(seconds(since(end) * tick / _TICKS)) if tick else "0"
        parts.append(f'<text x="{x:.1f}" y="{height - 4}" text-anchor="{anchor}">{told}</text>')
    for i, label in enumerate(labels):
        parts.append(f'<text x="{left - 8}" y="{i * _ROW + 14}" text-anchor="end">{_text(label)}</text>')
    for left_off, until in pauses:
        x = left + since(until) * scale
        told = f"<title>resumed after {_text(seconds(until - left_off))}</title>"
        parts.append(f'<line class="cut" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 16}">{told}</line>')
    is_drawn: set[tuple[int, int]] = set()
    for verdict, attempt in sorted(ran, key=lambda one: one[1].outcome is not Outcome.PASSED):  # these last, and on top
        places = [rows[device] for device in attempt.devices if device in rows] if attempt.devices else [len(devices)]
        x, width = left + since(attempt.started_at) * scale, (attempt.ended_at - attempt.started_at) * scale
        for row in places:
            if attempt.outcome is Outcome.PASSED and width < 1:  # of those in one pixel only one can be seen
                if (row, int(x)) in is_drawn:
                    continue
                is_drawn.add((row, int(x)))
            parts.append(_bar(verdict, attempt, row, x, max(1.0, width - 0.5)))
    kinds = {attempt.outcome for _, attempt in ran}
    named = "".join(_chip(one, WORDS[one]) for one in Outcome if one in kinds)
    return "".join([*parts, "</svg>\n", f"<p>{named}</p>\n" if len(kinds) > 1 else ""])


def _bar(verdict: Verdict, attempt: Attempt, row: int, x: float, width: float) -> str:
    place = f'x="{x:.1f}" y="{row * _ROW + 2}" width="{width:.1f}" height="{_ROW - 4}" rx="2"'
    took = seconds(attempt.ended_at - attempt.started_at)
    said = f"{unit_label(verdict.unit, verdict.variant)}: {_outcome(attempt.outcome, attempt.cause)} in {took}"
    return f'<rect class="{attempt.outcome.value}" {place}><title>{_text(said)}</title></rect>'


def _times(figures: Figures) -> list[str]:
    if figures.makespan_s <= 0:
        return []
    at_once = figures.sequential_s / figures.makespan_s
    return [
        f"{seconds(figures.makespan_s)} for {seconds(figures.sequential_s)} of units ({at_once:.1f} at once)",
        f"no schedule under {seconds(figures.bound_s)}",
    ]


def _counts(verdicts: Sequence[Verdict]) -> str:
    counts = {outcome: sum(verdict.outcome is outcome for verdict in verdicts) for outcome in Outcome}
    chips = [_chip(one, f"{count} {WORDS[one]}") for one, count in counts.items() if count]
    flaky = sum(verdict.flaky for verdict in verdicts)
    return "".join(chips) + (f"{flaky} of them flaky" if flaky else "")


def _chip(outcome: Outcome, said: str) -> str:
    return f'<span class="chip {outcome.value}">{_text(said)}</span>'


def _outcome(outcome: Outcome, cause: str) -> str:
    return WORDS[outcome] + (f" ({cause})" if cause else "")


def _row(verdict: Verdict, known: dict[str, Device], logs_at: str) -> str:
    on = device_label(verdict.attempts[-1].devices, known) if verdict.attempts else ""
    link = quote(f"{logs_at}/{verdict.log}".encode("utf-8", "surrogateescape"))
    log = f'<a href="{_text(link)}">{_text(verdict.log)}</a>' if verdict.log else ""
    more = ", flaky" * verdict.flaky + ", quarantined" * verdict.is_excused
    cells = [
        f"<td>{_text(unit_label(verdict.unit, verdict.variant))}",
        f"<td>{_chip(verdict.outcome, WORDS[verdict.outcome])}{_text(verdict.cause + more)}",
        f'<td class="n">{_text(seconds(verdict.duration_s)) if verdict.attempts else ""}',
        f"<td>{_text(on)}",
        f'<td class="n">{len(verdict.attempts)}',
        f"<td>{log}",
    ]
    passed = " data-passed" if verdict.outcome is Outcome.PASSED and not verdict.flaky else ""
    return f"<tr{passed}>{''.join(cells)}</tr>\n"


def _logs(broken: Sequence[Verdict], log_of: Callable[[Verdict], str]) -> str:
    shown = [verdict for verdict in broken if verdict.log][:MOST_LOGS]
    if not shown:
        return ""
    parts = ["<h2>Output of what did not pass</h2>\n"]
    for verdict in shown:
        title = f"{unit_label(verdict.unit, verdict.variant)}: {_outcome(verdict.outcome, verdict.cause)}"
        output = terminal_text(log_of(verdict), colour=False)
        parts.append(f"<details><summary>{_text(title)}</summary><pre>{_text(output)}</pre></details>\n")
    left = sum(bool(verdict.log) for verdict in broken) - len(shown)
    if left:
        parts.append(f'<p class="quiet">and {left} more, in the folder\'s logs</p>\n')
    return "".join(parts)


def _text(text: str) -> str:
    return escape(xml_text(text), quote=True)
