import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from sooner.model.text import file_name, one_line, printable, terminal_text, xml_text


@given(st.text())
def test_any_text_becomes_valid_xml(text):
    ET.fromstring(f"<a>{xml_text(text).replace('&', '&amp;').replace('<', '&lt;')}</a>")


@given(st.text(), st.booleans())
def test_no_text_moves_the_cursor(text, colour):
    shown = terminal_text(text + "\x1b[2J\x1b]0;title\x07\x9b1A", colour=colour)
    assert "\x1b[2J" not in shown
    assert "\x1b]" not in shown
    assert "\x9b" not in shown


def test_colours_stay_where_colours_are_wanted():
    assert terminal_text("\x1b[31mred\x1b[0m", colour=True) == "\x1b[31mred\x1b[0m"
    assert terminal_text("\x1b[31mred\x1b[0m", colour=False) == "red"


@given(st.text(min_size=1), st.text(min_size=1))
def test_different_names_get_different_files(one, other):
    assert (file_name(one) == file_name(other)) == (one == other)


@given(st.text())
def test_a_file_name_is_one_that_every_file_system_takes(text):
    name = file_name(text)
    assert name
    assert name not in (".", "..")
    assert "/" not in name
    assert len(name.encode()) < 200


def test_bytes_that_are_not_utf8_are_spelled_out():
    assert printable("a\udcff") == r"a\xff"


def test_a_progress_line_has_no_breaks():
    assert one_line("a\nb\t\x1b[1mc") == "a b c"


def test_one_line_holds_no_command_that_github_reads_wherever_it_stands():
    assert one_line("build ##[add-mask]s #[1] ##x") == "build ## [add-mask]s #[1] ##x"


def test_a_name_cannot_turn_round_what_stands_behind_it():
    assert terminal_text("a\u202eb\u2066c\u2069d עברית", colour=False) == "abcd עברית"
