"""Only our placeholders are filled; all other braces belong to the command."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sooner.model.placeholders import PLACEHOLDERS, fill, kept, uses

VALUES = {name: f"<{name}>" for name in PLACEHOLDERS}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("--junitxml={junit} -n {devices}", "--junitxml=<junit> -n <devices>"),
        ("{log_dir}/x:{port}", "<log_dir>/x:<port>"),
        ("${port} ${junit:-x}", "${port} ${junit:-x}"),
        ("awk '{print}' {}", "awk '{print}' {}"),
        ('{"port": {port}}', '{"port": <port>}'),
        ("{Port} { port } {unknown}", "{Port} { port } {unknown}"),
        ("http://h:{{port}}/{{port} {port}}", "http://h:{port}/{<port> <port>}"),
    ],
)
def test_placeholders_are_filled_and_other_braces_stay(text: str, filled: str) -> None:
    assert fill(text, VALUES) == filled


def test_a_placeholder_without_a_value_stays() -> None:
    assert fill("{port} {junit}", {"junit": "{port}"}) == "{port} {port}"


PIECES = st.lists(st.sampled_from(["{", "}", "$", " ", "port", "junit", "x"])).map("".join)


@given(PIECES)
def test_filling_with_the_same_text_changes_nothing_but_doubled_braces(text: str) -> None:
    filled = fill(text, {name: f"{{{name}}}" for name in PLACEHOLDERS})
    assert filled == text or any(f"{{{{{name}}}}}" in text for name in PLACEHOLDERS)


@given(PIECES)
def test_a_text_that_is_to_stay_is_filled_with_nothing(text: str) -> None:
    assert fill(kept(text), VALUES) == text
    assert not any(uses(kept(text), name) for name in PLACEHOLDERS)


def test_the_shells_variable_is_no_use_of_a_placeholder() -> None:
    assert uses("a {junit}", "junit")
    assert not uses("a ${junit} {port} {{junit}}", "junit")
