"""What `history export` wrote is a source that loses nothing."""

import typing

import msgspec
import pytest
from rows_by_hand import AT

from sooner.history import History
from sooner.history.export import export
from sooner.history.ingest.intake import Options
from sooner.history.ingest.take import ingest
from sooner.history.outcomes import HistoryOutcome
from sooner.history.tables import TABLES, Epoch

ODD: typing.Final = ("plain", 'with "quotes", and; more', "two\nlines", "Grüße ✓", "'[1]'", "NULL", " spaces ")


def row_of(table, number):
    """A row with something in each column."""
    values = {}
    for name, hint in typing.get_type_hints(table.row).items():
        text = f"{name} {ODD[number % len(ODD)]} {number}"
        for kind, value in (
            (HistoryOutcome, HistoryOutcome.FAILED),
            (Epoch, AT + number + 0.125),
            (tuple, (text, "virtual:0")),
            (bool, False),
            (int, number + 1),
            (float, number + 0.25),
            (str, text),
        ):
            parts = typing.get_args(hint) or (hint,)
            if kind in parts or kind in (hint, typing.get_origin(hint)):
                values[name] = value
                break
    return values


def rows_of(table, count=7):
    rows = [msgspec.convert(row_of(table, number), table.row, strict=False) for number in range(count)]
    # and one that tells nothing but what it must
    least = {name: value for name, value in row_of(table, count).items() if name in table.required}
    return [*rows, msgspec.convert(least, table.row, strict=False)]


def told(root, name):
    with History(root) as history:
        return sorted(map(repr, getattr(history, name)()))


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_that_was_exported_comes_back_as_it_was(tmp_path, name, kind):
    path = tmp_path / f"{name}.{kind}"
    with History(tmp_path / "one") as one:
        assert one.add(name, rows_of(TABLES[name])).added == 8
        assert export(one, name, str(path)) == 8
    with History(tmp_path / "two") as two:
        report = ingest(two, [str(path)], Options()).as_json()
        again = ingest(two, [str(path)], Options()).as_json()
    assert (report["added"], report["rejected_count"], report["notes"]) == (8, 0, [])
    assert (again["added"], again["duplicates"]) == (0, 8)
    assert told(tmp_path / "two", name) == told(tmp_path / "one", name)


def test_an_exported_table_that_somebody_broke_is_refused_whole_with_what_is_wrong(tmp_path):
    path = tmp_path / "tests.csv"
    with History(tmp_path / "one") as one:
        one.add("tests", rows_of(TABLES["tests"]))
        export(one, "tests", str(path))
    path.write_text(path.read_text(encoding="utf-8").replace("3.25", "three"), encoding="utf-8")
    with History(tmp_path / "two") as two:
        report = ingest(two, [str(path)], Options()).as_json()
        assert two.tests() == []
    (refused,) = report["rejected"]
    assert "it has the columns of the table tests" in refused["reason"]
    assert "three" in refused["reason"]


def test_columns_that_are_said_are_read_as_said(tmp_path):
    path = tmp_path / "tests.csv"
    with History(tmp_path / "one") as one:
        one.add("tests", rows_of(TABLES["tests"]))
        export(one, "tests", str(path))
    with History(tmp_path / "two") as two:
        report = ingest(two, [str(path)], Options(mapping={"worker": "variant"})).as_json()
    assert report["notes"]
