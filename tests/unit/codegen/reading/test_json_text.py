"""Tests the JSON reader: comments, line numbers, and the line of an error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kproto_codegen.errors import DefinitionError
from kproto_codegen.reading.json_text import MAX_DEPTH, JsonNode, read_json

from tests.support.examples import examples


def plain(node: JsonNode) -> Any:
    """Returns the value that the reader has read, without its line numbers."""
    match node.value:
        case dict():
            return {key: plain(child) for key, child in node.value.items()}
        case list():
            return [plain(child) for child in node.value]
    return node.value


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.sampled_from([None, 1]))
@settings(max_examples=examples(30))  # drawing the values is slow
def test_json_of_the_standard_library_is_read(value: Any, indent: int | None) -> None:
    for ascii_only in (True, False):
        text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
        assert plain(read_json(text, file="f").root) == value


@given(st.text("{}[]\",:/*\\ \n\t0123456789truefalsn-+.eE'ux"))
def test_random_text_is_read_as_json_or_raises_a_definition_error(text: str) -> None:
    refused: DefinitionError | None = None
    try:
        read = read_json(text, file="f")
    except DefinitionError as error:
        refused = error
    if refused is None:
        assert "/" in text or plain(read.root) == json.loads(text)
    else:
        assert refused.file == "f"
        assert refused.line is not None
        assert 1 <= refused.line <= text.count("\n") + 1


def test_comments_and_lines() -> None:
    text = '// first\n{ /* two\n lines */ "a": // here\n 1,\n"b": [\n2, "x // no comment"]}\n// end'
    read = read_json(text, file="f")
    assert plain(read.root) == {"a": 1, "b": [2, "x // no comment"]}
    assert isinstance(read.root.value, dict)
    assert {key: node.line for key, node in read.root.value.items()} == {"a": 3, "b": 5}
    assert read.trailing_line is None


def test_a_scalar_keeps_its_own_text() -> None:
    assert read_json("0.50", file="f").root.text == "0.50"
    assert read_json("-1", file="f").root.text == "-1"
    assert read_json("null", file="f").root.text == "null"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "the text ends, but a value must follow"),
        ("// nothing\n", 2, "the text ends, but a value must follow"),
        ("{'a': 1}", 1, "a key in double quotes must follow"),
        ("{\"a\": 'x'}", 1, "single quotes"),
        ('{"a": 1,}', 1, "a key in double quotes must follow"),
        ("[1,]", 1, "is not the start of a value"),
        ('{"a" 1}', 1, "a colon must follow the key 'a'"),
        ('{"a": 1 "b": 2}', 1, "a comma or '}' must follow"),
        ('{\n"a": 1', 2, "the text ends inside an object"),
        ("[1 2]", 1, "a comma or ']' must follow"),
        ('{"a": 1,\n"a": 2}', 2, "the key 'a' occurs twice, first on line 1"),
        ('{"a": [1], "a": [1]}', 1, "the key 'a' occurs twice"),
        ("NaN", 1, "'NaN' is no JSON value"),
        ("[Infinity]", 1, "'Infinity' is no JSON value"),
        ("-inf", 1, "'-inf' is no JSON value"),
        ("1_000", 1, "'1_000' is no JSON value"),
        ("01", 1, "'01' is no JSON value"),
        ("+1", 1, "'+1' is no JSON value"),
        ("1.", 1, "'1.' is no JSON value"),
        ("0x10", 1, "'0x10' is no JSON value"),
        ("True", 1, "'True' is no JSON value"),
        ("１", 1, "'１' is no JSON value"),
        ("9" * 5000, 1, "a number of 5000 characters is too long"),
        ('"a\nb"', 1, "a text in quotes does not end on its line"),
        ('"abc', 1, "a text in quotes does not end on its line"),
        (r'"\x41"', 1, "\\x is no JSON escape"),
        (r'"\u12g4"', 1, "four hexadecimal digits"),
        (r'"\ud800"', 1, "a surrogate pair lacks one half"),
        (r'"\udc00\ud800"', 1, "a surrogate pair lacks one half"),
        (r'"\ud800A"', 1, "a surrogate pair lacks one half"),
        ("{} /* no end", 1, "a /* comment has no end"),
        ("{}\n\n{}", 3, "there is content after the end of the definition"),
        ("{} # note", 1, "there is content after the end of the definition"),
    ],
)
def test_refused(text: str, line: int, reason: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        read_json(text, file="some.json")
    assert reason in caught.value.reason
    assert (caught.value.file, caught.value.line) == ("some.json", line)


def test_a_repeated_key_is_noted() -> None:
    read = read_json('{"a": "0+",\n"a": "0+"}', file="f")
    assert plain(read.root) == {"a": "0+"}
    assert [str(error) for error in read.repeated] == [
        "f:2: the key 'a' occurs twice, first on line 1"
    ]


def test_equal_values_of_different_types_are_not_a_repetition() -> None:
    with pytest.raises(DefinitionError, match="occurs twice"):
        read_json('{"a": "1", "a": 1}', file="f")


def test_content_after_the_end_may_be_allowed() -> None:
    assert read_json("{}\n]", file="f", allow_trailing=True).trailing_line == 2


def test_nesting_is_bounded() -> None:
    deepest = "[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH
    read_json(deepest, file="f")
    for text in (f"[{deepest}]", "[" * 100_000, '{"a":' * 100_000):
        with pytest.raises(DefinitionError, match=f"nested more than {MAX_DEPTH} deep"):
            read_json(text, file="f")
