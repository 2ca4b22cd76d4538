"""Small histories and sources, built by hand."""

import json

import pytest

from sooner.history import History
from sooner.history.ingest.intake import Options
from sooner.history.ingest.take import ingest


@pytest.fixture
def root(tmp_path):
    return tmp_path / "history"


@pytest.fixture
def history(root):
    with History(root) as opened:
        yield opened


@pytest.fixture
def write(tmp_path):
    """Write a source; lists of objects become JSON lines."""

    def write(name, content):
        path = tmp_path / "sources" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        else:
            path.write_text("".join(json.dumps(item) + "\n" for item in content), encoding="utf-8")
        return path

    return write


@pytest.fixture
def take(history):
    """Take sources in; the report as the command line's JSON has it."""

    def take(*paths, strict=False, **options):
        return ingest(history, [str(path) for path in paths], Options(**options), strict=strict).as_json()

    return take
