"""Tests the text formats of bytes that users paste: each is read; errors explain invalid input."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kproto.study import hex_dumps, read_bytes
from kproto.wire.errors import ConfigurationError
from tests.support.availability import skip_untested
from tests.support.environment import ROOT
from tests.unit.study.text_writers import (
    DATA,
    LETTERS,
    MAY_BE_REFUSED,
    OTHER_WRITERS,
    WRITERS,
    hexdump_c,
    od,
    signed,
    tcpdump,
    wireshark,
    words,
    xxd,
)

SOME_DATA = st.binary(min_size=1, max_size=100) | st.sampled_from([DATA, bytes(100), b"||||" * 9])
#: Bytes that programs print in several ways: spaces, few digits, repeated lines.
RISKY_DATA = (
    st.binary(min_size=1, max_size=40).map(lambda data: data.translate(LETTERS))
    | st.lists(st.integers(10, 99), min_size=1, max_size=40).map(bytes)
    | st.lists(st.sampled_from(b" .a\0\1"), min_size=1, max_size=40).map(bytes)
    | st.integers(1, 5000).map(bytes)
    | st.builds(lambda count, end: b"ab" * count + end, st.integers(1, 300), st.binary(max_size=20))
)


@pytest.mark.parametrize("form", WRITERS)
@given(SOME_DATA)
def test_every_form_of_hex_comes_back(form: str, data: bytes) -> None:
    assert read_bytes(WRITERS[form](data).encode()) == data
    assert read_bytes(WRITERS[form](data).encode(), "hex") == data


@pytest.mark.parametrize("form", OTHER_WRITERS)
@given(SOME_DATA | RISKY_DATA)
def test_text_of_other_programs_comes_back_or_is_refused(form: str, data: bytes) -> None:
    text = OTHER_WRITERS[form](data)
    if form == "Wireshark's last line":
        data = data[(len(data) - 1) // 16 * 16 :]
    if form.startswith("decimal"):  # numbers of two digits alone are hex
        assume(any(byte < 10 or byte > 99 for byte in data))
    if form == "Rust's {:02x?}":  # Python prints these texts for other bytes
        assume(any(re.fullmatch("[1-9][0-9]", f"{byte:02x}") is None for byte in data))
    if form in ("base64", "base32"):  # hex digits alone are hex
        assume(re.fullmatch("[0-9a-fA-F]+", text) is None)
    if form == "Go's %q":  # quoted hex digits are hex
        assume("\\" in text)
    try:
        assert read_bytes(text.encode()) == data
    except ConfigurationError:
        assert form in MAY_BE_REFUSED


@given(SOME_DATA)
def test_forms_that_are_named_come_back(data: bytes) -> None:
    assert read_bytes(" ".join(map(str, data)).encode(), "decimal") == data
    assert read_bytes(str(signed(data)).encode(), "decimal") == data
    assert read_bytes(words(data).encode(), "words") == data
    assert read_bytes(repr(data).encode(), "literal") == data
    assert read_bytes(wireshark(data).encode(), "dump") == data


@given(SOME_DATA, st.integers(0, 400), st.sampled_from("0a g|.\n:,"))
def test_a_changed_dump_is_refused_or_has_as_many_bytes_as_its_offsets(
    data: bytes, at: int, character: str
) -> None:
    """A dump in which a character is replaced never gives more or fewer bytes in silence."""
    text = xxd(data)
    changed = text[: at % len(text)] + character + text[at % len(text) + 1 :]
    try:
        found = read_bytes(changed.encode())
    except ConfigurationError:
        return
    assert abs(len(found) - len(data)) <= 16


CASES = json.loads((ROOT / "tests" / "vectors" / "pasted_text.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["text"][:40]))
def test_cases_of_python_and_javascript(case: dict[str, str | None]) -> None:
    """A case without bytes is refused; if it has a place (`at`), the error names it."""
    text, form, expected = case["text"], case["form"], case["hex"]
    assert text is not None
    assert form is not None
    if expected is None:
        line, column = (case.get("at") or r"\d+:\d+").split(":")
        with pytest.raises(ConfigurationError, match=f"^line {line}, column {column}: "):
            read_bytes(text, form)
    else:
        assert read_bytes(text, form).hex() == expected
        assert read_bytes(text.encode(), form).hex() == expected


@given(st.binary(min_size=1, max_size=30))
def test_full_width_digits_are_digits(data: bytes) -> None:
    wide = {ord(digit): ord(digit) + 0xFEE0 for digit in "0123456789abcdef"}
    assert read_bytes(data.hex(" ").translate(wide).encode()) == data


@given(st.binary(max_size=100))
def test_base64_of_both_alphabets(data: bytes) -> None:
    for packed in (base64.b64encode(data), base64.urlsafe_b64encode(data)):
        assert read_bytes(packed, "base64") == data
        assert read_bytes(packed.rstrip(b"="), "base64") == data
        assert read_bytes(packed[:20] + b"\n" + packed[20:], "base64") == data


def test_base64_is_read_if_it_is_no_hex() -> None:
    assert read_bytes(base64.b64encode(DATA)) == DATA


def test_binary() -> None:
    assert read_bytes(b"\x00\x00\x00\x04abcd") == b"\x00\x00\x00\x04abcd"
    assert read_bytes(b"\xff\xfe") == b"\xff\xfe"
    assert read_bytes(b"61", "binary") == b"61"


@pytest.mark.parametrize(
    ("text", "form", "reason"),
    [
        (b"00 0", "auto", "line 1, column 4: '0' has an odd number of digits"),
        (b"00 zz!", "auto", "'z' is no hex digit"),
        (b"zz", "hex", "'z' is no hex digit"),
        (b"a", "base64", "no base64"),
        ("é".encode(), "hex", "column 1: 'é' is no hex digit"),
    ],
)
def test_invalid_input_is_explained(text: bytes, form: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        read_bytes(text, form)


def _without_a_digit(text: str, line: int) -> str:
    """Returns the text without the first digit after the offset of a line, from 1."""
    lines = text.splitlines(keepends=True)
    lines[line - 1] = re.sub(r"^(\w+:?\s+)\w", r"\1", lines[line - 1])
    return "".join(lines)


@pytest.mark.parametrize("line", [1, 2, 3])
@pytest.mark.parametrize("write", [xxd, hexdump_c, od, wireshark], ids=lambda write: write.__name__)
def test_refusal_of_a_changed_dump_names_its_line(write: Callable[[bytes], str], line: int) -> None:
    text = _without_a_digit(write(bytes(range(0xA0, 0xD8))), line)
    with pytest.raises(ConfigurationError, match=f"^line {line}, "):
        read_bytes(text.encode())


@pytest.mark.parametrize("write", [xxd, hexdump_c, od, wireshark], ids=lambda write: write.__name__)
def test_refusal_of_a_dump_names_the_line_without_offset(write: Callable[[bytes], str]) -> None:
    lines = write(bytes(range(0xA0, 0xD8))).splitlines()
    lines[2] = lines[2][10:]
    with pytest.raises(ConfigurationError, match=r"^line 3, "):
        read_bytes("\n".join(lines).encode())


def test_a_star_may_not_stand_for_too_much() -> None:
    row = "00000000  " + "00 " * 16 + " |................|\n*\n"
    with pytest.raises(ConfigurationError, match="at most 104857600"):
        read_bytes((row + "7ffffff0  " + "00 " * 16 + "\n").encode())


def printed_by(command: str, data: bytes) -> bytes:
    name, *options = command.split()
    if shutil.which(name) is None:
        package = {"xxd": "xxd", "hexdump": "bsdextrautils", "od": "coreutils"}[name]
        missing = f"{name} is not on the PATH"
        skip_untested("hex dumps of other programs", missing, f"it (Debian: {package})")
    return subprocess.run([name, *options], input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize(
    "command",
    ["xxd", "xxd -g 4", "xxd -u -c 8", "hexdump -C", "hexdump -v -C"]
    + [f"od -A {base} -t {form}" for base in "xod" for form in ("x1", "x1z")],
)
def test_the_programs_themselves(command: str) -> None:
    for data in (DATA, DATA[:35], bytes(range(256)), DATA[:16], b"abc" * 9):
        assert read_bytes(printed_by(command, data)) == data, data


@pytest.mark.parametrize(
    "command", ["hexdump", "od", "od -x", "od -A x -x", "od -A d -t x4", "xxd -e", "xxd -e -g 2"]
)
@pytest.mark.parametrize("form", ["auto", "hex"])
def test_words_in_the_order_of_a_machine_are_refused(command: str, form: str) -> None:
    for size in (3, 4, 15, 16, 17, 18, 31, 32, 33, 48, 100):
        with pytest.raises(ConfigurationError, match=r"dump of words|no hex"):
            read_bytes(printed_by(command, DATA[:size]), form)


@given(SOME_DATA, st.sampled_from([xxd, od, wireshark, tcpdump]), st.integers(10, 60))
def test_a_dump_with_wrapped_lines_never_has_its_offsets_as_bytes(
    data: bytes, write: Callable[[bytes], str], width: int
) -> None:
    """A narrow terminal wraps the lines, and the copied text has more lines."""
    lines = write(data).splitlines()
    parts = [line[at : at + width] for line in lines for at in range(0, len(line), width)]
    try:
        found = read_bytes("\n".join(parts).encode())
    except ConfigurationError:
        return
    assert found == data


def test_a_dump_that_lacks_a_line_is_no_hex() -> None:
    for write in (tcpdump, od, xxd):
        lines = write(bytes(range(0xA0, 0xFF))).splitlines()
        lines = [line.split("  ...")[0] for line in lines]  # xxd without its text column
        with pytest.raises(ConfigurationError, match="offsets do not match"):
            read_bytes("\n".join(lines[:2] + lines[3:]).encode())


@pytest.mark.parametrize("options", ["", " -A x", " -A d", " -w8"])
@pytest.mark.parametrize("size", [32, 40, 80, 256, 4096])
def test_repeated_lines_of_od_are_counted_or_refused(options: str, size: int) -> None:
    text = printed_by(f"od -t x1{options}", bytes(size))
    try:
        assert read_bytes(text) == bytes(size)
    except ConfigurationError as error:
        assert "line 2, column 1: " in str(error)  # noqa: PT017 - a refusal is allowed
        assert options != " -A x"


INVISIBLE = "\u200b\u200e\u00ad\u2028\u2060\ufeff\f\v\x1b"


@given(st.binary(min_size=1, max_size=40), st.sampled_from([*INVISIBLE, "\0"]), st.data())
def test_invisible_character_is_refused_with_its_place(
    data: bytes, mark: str, drawn: st.DataObject
) -> None:
    """In an argument anywhere; in a file, a NUL only at the end, because raw bytes have NULs."""
    text = data.hex(" ")
    at = drawn.draw(st.integers(1, len(text)))
    changed = text[:at] + mark + text[at:]
    place = f"^line 1, column {at + 1}: "
    with pytest.raises(ConfigurationError, match=place):
        read_bytes(changed)
    if mark != "\0":
        with pytest.raises(ConfigurationError, match=place):
            read_bytes(changed.encode())
    with pytest.raises(ConfigurationError, match=f"column {len(text) + 1}: "):
        read_bytes(f"{text}\0".encode())


def test_damaged_text_of_a_file_is_refused_and_raw_bytes_are_read() -> None:
    """Bytes that are mostly ASCII, and begin with ASCII, are a text."""
    dump = xxd(DATA).encode()
    latin = hexdump_c(b"caf\xe9 au lait").replace("caf.", "caf\xe9").encode("latin-1")
    for text in (latin, dump[:30] + b"\x01" + dump[30:], dump + b"\0\0"):
        with pytest.raises(ConfigurationError, match=r"^line "):
            read_bytes(text)
    frame = b"\0\0\0\x50\0\x12\0\0\0\0\0\1\0\x40" + b"a long text in a frame " * 3
    for raw in (frame, b"ab\0\1\2\3", b"\xffabcdefghijk"):
        assert read_bytes(raw) == raw


@pytest.mark.parametrize("ending", ["", "  |................|", "  .........", " 41"])
def test_long_line_of_a_dump_takes_linear_steps(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most five numbers of bytes have a text of the length of the rest."""
    compared: list[int] = []

    def counted(shown: str, rest: str) -> bool:
        compared.append(len(rest))
        return is_text_of(shown, rest)

    is_text_of = hex_dumps._is_text_of
    monkeypatch.setattr(hex_dumps, "_is_text_of", counted)
    for group in ("00 ", "20 ", "41 "):
        for count in (4000, 8000):
            compared.clear()
            text = "00000000  " + group * count + ending
            with contextlib.suppress(ConfigurationError):
                read_bytes(text)
            assert len(compared) <= 40
            assert sum(compared) <= 20 * len(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "  10" * 20_000 + "x",
            "{1}" + " " * 20_000 + "x",
            "/*" * 20_000,
            "00\n" + "$ \n" * 20_000,
        ),
        *("[1 " + "1\n" * 20_000 + "x]", "12" + "-" * 20_000, "0000   00\n" + "*\n" * 20_000),
    ],
    ids=lambda text: text[:8],
)
def test_repetitive_text_takes_no_quadratic_time(text: str) -> None:
    """With quadratic or exponential steps, a text of this length takes minutes."""
    with contextlib.suppress(ConfigurationError):
        read_bytes(text)


@given(st.text(alphabet="0123456789abcdefxyz :|*\n.-", max_size=80))
def test_any_text_is_bytes_or_one_kind_of_error(text: str) -> None:
    try:
        found = read_bytes(text.encode())
    except ConfigurationError:
        return
    assert len(found) <= len(text)


DUMP = "00000000: 0012 0003 0000 0001 0002 6e73 7400 0000  ..........nst...\n"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_dump_with_a_byte_order_mark_is_read(encoding: str) -> None:
    assert read_bytes(DUMP.encode(encoding)) == read_bytes(DUMP.encode())


def test_binary_with_the_bytes_of_a_mark_stays_binary() -> None:
    for data in (b"\xff\xfe", b"\xff\xfe\x00\xd8\x01", "\xfeé".encode("utf-16")):
        assert read_bytes(data) == data


@given(st.binary(min_size=17, max_size=80), st.data())
def test_changed_character_of_a_dump_loses_no_byte(data: bytes, drawn: st.DataObject) -> None:
    """A dump with a wrong character in its last line has the same bytes, or is refused."""
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:08x}: {row.hex(' ', 2):<39}  {shown}")
    text = "\n".join(lines)
    position = drawn.draw(st.integers(10, 48)) + (len(lines) - 1) * (len(lines[0]) + 1)
    mark = drawn.draw(st.sampled_from("-,;.$x "))
    changed = text[:position] + mark + text[position + 1 :]
    try:
        found = read_bytes(changed.encode())
    except ConfigurationError:
        return
    assert found == data
