"""PyTorch's `test-times.json`: build environment -> test configuration -> test file -> average seconds."""

import hashlib
import json
import math
import re
from pathlib import Path
from typing import Final

from sooner.history.errors import IngestError
from sooner.history.ingest.intake import Intake
from sooner.history.ingest.json_facts import as_mapping
from sooner.history.ingest.opening import opened
from sooner.history.outcomes import HistoryOutcome
from sooner.history.tables import Epoch, TestRow

_TEXT: Final = rb'"(?:[^"\\]|\\.)*"\s*:\s*'
SHAPE: Final = re.compile(rb"\s*\{\s*" + _TEXT + rb"\{\s*" + _TEXT + rb"\{\s*" + _TEXT + rb"-?\d")
"""How such a file begins."""


def take_test_times(path: Path, intake: Intake) -> None:
    """Read such a file; it is one snapshot, as old as the file.

    Raises:
        IngestError: It is no such file.
    """
    with opened(path) as stream:
        data = stream.read()
    try:
        times = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise IngestError(str(path), f"no JSON: {error}", line=getattr(error, "lineno", 0)) from None
    run = intake.options.constants.get("run") or f"test-times-{hashlib.sha256(data).hexdigest()[:16]}"
    as_of = Epoch(path.stat().st_mtime)
    for environment, configurations in as_mapping(times).items():
        for configuration, files in as_mapping(configurations).items():
            for index, (file, seconds) in enumerate(as_mapping(files).items(), 1):
                if not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds < 0:
                    place = f"{environment} / {configuration} / {file}"
                    intake.report.reject(str(path), index, f"{place}: {seconds!r} is no duration")
                    continue
                intake.add(
                    TestRow(
                        run=run,
                        unit=file,
                        variant=f"{environment} / {configuration}",
                        kind="summary",
                        outcome=HistoryOutcome.PASSED,
                        seconds=float(seconds),
                        started=as_of,
                        source=f"test-times:{path.name}",
                        as_of=as_of,
                    )
                )
