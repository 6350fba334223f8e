"""Tests how a .properties file is parsed; tests/reference parses the same texts with Java."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.security.properties_file import (
    MAX_FILE_BYTES,
    parse_properties,
    read_properties_file,
)
from kproto.wire.errors import ConfigurationError


def values(text: str) -> dict[str, str]:
    return {name: entry.value for name, entry in parse_properties(text).items()}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("a=b", {"a": "b"}),
        ("a = b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a\t=\tb=c", {"a": "b=c"}),
        ("a  :  = b", {"a": "= b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("a=b ", {"a": "b "}),
        ("a=1\r\nb=2\rc=3\n", {"a": "1", "b": "2", "c": "3"}),
        ("# a=b\n  ! c=d\n\n \t\f\ne=f", {"e": "f"}),
        ("# goes on\\\na=b", {"a": "b"}),
        ("a=b\\\n  c\\\n\td", {"a": "bcd"}),
        ("a=b\\\n# no comment", {"a": "b# no comment"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        ("a\\ b\\=c=d", {"a b=c": "d"}),
        ("a=\\t\\n\\r\\f\\\\\\x\\:", {"a": "\t\n\r\f\\x:"}),
        ("a=\\u00e4\\uD83D\\uDE00", {"a": "ä😀"}),
        ("a=1\na=2", {"a": "2"}),
    ],
)
def test_text_is_read_as_java_reads_it(text: str, found: dict[str, str]) -> None:
    assert values(text) == found


@pytest.mark.parametrize("text", ["x=y\na=\\u12", "x=y\na=\\uhunter2", "x=y\n\\u=a"])
def test_a_broken_escape_is_told_by_its_line(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^line 2: an escape"):
        parse_properties(text)


def test_an_entry_knows_its_line_and_hides_its_value() -> None:
    entry = parse_properties("# one\n\npassword=hun\\\n  ter2\n")["password"]
    assert (entry.value, entry.line) == ("hunter2", 3)
    assert "hunter" not in repr(entry)


def escaped(text: str, also: str = "") -> str:
    """Returns `text` as written in a properties file; `also` has further characters to escape."""
    return "".join(f"\\{char}" if char in "\\#!=: \t\f" + also else char for char in text).replace(
        "\n", "\\n"
    )


LINE = st.text(st.characters(exclude_characters="\r", codec="utf-8"), max_size=20)


@given(st.dictionaries(LINE, LINE))
def test_escaped_text_is_read_back(properties: dict[str, str]) -> None:
    text = "\n".join(f"{escaped(key)}={escaped(value)}" for key, value in properties.items())
    assert values(text) == properties


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    said = "\\u"
    try:
        parse_properties(text)
    except ConfigurationError as error:
        said = str(error)
    assert "\\u" in said


def test_a_file_is_utf_8_and_else_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes("\ufeffpassword=ä".encode())
    assert read_properties_file(path)["password"].value == "ä"
    path.write_bytes("password=ä".encode("latin-1"))
    assert read_properties_file(str(path))["password"].value == "ä"


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no\.properties': No such file"):
        read_properties_file(tmp_path / "no.properties")
    with pytest.raises(ConfigurationError, match="Is a directory"):
        read_properties_file(tmp_path)
    with pytest.raises(ConfigurationError, match="it is no path"):
        read_properties_file("a\0b")
    large = tmp_path / "large"
    large.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(ConfigurationError, match="larger than 1048576 bytes"):
        read_properties_file(large)
    broken = tmp_path / "broken"
    broken.write_text("password=\\uhunter2")
    with pytest.raises(ConfigurationError, match="broken, line 1: an escape") as caught:
        read_properties_file(broken)
    assert "hunter" not in str(caught.value)
