"""Tests the text formats of bytes that users paste: each is read; errors explain invalid input."""

from __future__ import annotations

import base64
import json
import pprint
import re
import shutil
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kproto.study import read_bytes
from kproto.wire.errors import ConfigurationError
from tests.support.availability import skip_untested
from tests.support.environment import ROOT

DATA = bytes(range(40, 96)) + bytes(80) + b"end"


def hexdump_c(data: bytes, *, squeeze: bool = True) -> str:
    """Returns the output of `hexdump -C`; if `squeeze`, `*` replaces repeated lines."""
    lines, previous, starred = [], b"", False
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        if squeeze and row == previous and len(row) == 16:
            if not starred:
                lines.append("*")
            starred = True
            continue
        previous, starred = row, False
        first, second = row[:8].hex(" "), row[8:].hex(" ")
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:08x}  {f'{first}  {second}':<48}  |{text}|")
    lines.append(f"{len(data):08x}")
    return "\n".join(lines) + "\n"


def xxd(data: bytes) -> str:
    """Returns the output of `xxd`."""
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        groups = " ".join(row[i : i + 2].hex() for i in range(0, len(row), 2))
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:08x}: {groups:<39}  {text}")
    return "\n".join(lines) + "\n"


def od(data: bytes) -> str:
    """Returns the output of `od -A x -t x1 -v`."""
    rows = [data[at : at + 16] for at in range(0, len(data), 16)]
    lines = [f"{16 * number:06x} {row.hex(' ')}" for number, row in enumerate(rows)]
    return "\n".join([*lines, f"{len(data):06x}"]) + "\n"


def tcpdump(data: bytes) -> str:
    """Returns the output of `tcpdump -X` for a packet."""
    return "\n".join(f"\t0x{line[4:]}" for line in xxd(data).splitlines())


def wireshark(data: bytes) -> str:
    """Returns Wireshark's copy "as Hex + ASCII Dump"."""
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:04x}   {row.hex(' '):<47}   {text}")
    return "\n".join(lines) + "\n"


def xxd_i(data: bytes) -> str:
    """Returns the output of `xxd -i FILE`."""
    elements = ",\n  ".join(f"0x{byte:02x}" for byte in data)
    size = len(data)
    return f"unsigned char f[] = {{\n  {elements}\n}};\nunsigned int f_len = {size};\n"


def go_quoted(data: bytes) -> str:
    """Returns Go's `%q` of the bytes below 128, which `%q` writes as ASCII."""
    letters = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}

    def shown(byte: int) -> str:
        if byte in letters:
            return "\\" + letters[byte]
        return chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}"

    return '"' + "".join(map(shown, data)) + '"'


def signed(data: bytes) -> list[int]:
    return [byte - 256 if byte > 127 else byte for byte in data]


WRITERS: dict[str, Callable[[bytes], str]] = {
    "plain": lambda data: data.hex(),
    "upper case": lambda data: data.hex().upper(),
    "spaces": lambda data: data.hex(" "),
    "lines": lambda data: data.hex("\n", 7),
    "colons": lambda data: data.hex(":"),
    "0x": lambda data: "0x" + data.hex(),
    "0x each": lambda data: ", ".join(f"0x{byte:02x}" for byte in data),
    "escapes": lambda data: '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"',
    "hexdump": hexdump_c,
    "xxd": xxd,
    "od": od,
    "tcpdump": tcpdump,
    "Wireshark": wireshark,
    "Python's repr": repr,
    "Python's bytearray": lambda data: repr(bytearray(data)),
    "Python's pprint": lambda data: pprint.pformat(data, width=40),
    "Python's prompt": lambda data: f">>> data\n{data!r}\n>>> \n",
    "IPython": lambda data: f"In [1]: data\nOut[1]: {data!r}\n\nIn [2]: ",
    "a shell's prompt": lambda data: f"me@host:/tmp$ xxd f\n{xxd(data)}me@host:/tmp$ ",
    "Node's Buffer": lambda data: f"<Buffer {data.hex(' ')}>",
}

#: Writers of text that has no hex, or that is refused if it may be hex, too.
OTHER_WRITERS: dict[str, Callable[[bytes], str]] = {
    "Python's list": lambda data: str(list(data)),
    "Java's Arrays.toString": lambda data: str(signed(data)),
    "Go's %v": lambda data: str(list(data)).replace(",", ""),
    "Go's %#v": lambda data: "[]byte{" + ", ".join(f"0x{byte:x}" for byte in data) + "}",
    "Go's %q": go_quoted,
    "Go's % x": lambda data: data.hex(" "),
    "xxd -i": xxd_i,
    "Erlang's binary": lambda data: f"<<{','.join(map(str, data))}>>",
    "C": lambda data: "{" + ", ".join(f"0x{byte:02X}" for byte in data) + "}",
    "octal escapes": lambda data: '"' + "".join(f"\\{byte:03o}" for byte in data) + '"',
    "decimal": lambda data: " ".join(map(str, data)),
    "decimal with commas": lambda data: ",".join(map(str, data)),
    "hexdump of words": lambda data: words(data),
    "xxd without text": lambda data: "\n".join(line[:50] for line in xxd(data).splitlines()),
    "xxd with single spaces": lambda data: re.sub(" +", " ", xxd(data)),
    "Wireshark without text": lambda data: "\n".join(
        line[:54].rstrip() for line in wireshark(data).splitlines()
    ),
    "Wireshark's last line": lambda data: wireshark(data).splitlines()[-1],
    "od without the last line": lambda data: "\n".join(od(data).splitlines()[:-1]),
}

#: Refused for some bytes, because their text has other readings.
MAY_BE_REFUSED = {
    *("Go's %v", "decimal", "decimal with commas", "hexdump of words", "xxd with single spaces"),
    *("od without the last line", "octal escapes"),
}


def words(data: bytes) -> str:
    """Returns the output of `hexdump -v` on a little-endian machine."""
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        pairs = [
            row[index : index + 2][::-1].rjust(2, b"\0").hex() for index in range(0, len(row), 2)
        ]
        lines.append(f"{at:07x} {' '.join(pairs)}")
    return "\n".join([*lines, f"{len(data):07x}"]) + "\n"


#: Maps each byte to a letter that is a hex digit, so that the text of a dump may be bytes.
LETTERS = bytes(b"abcdef0123456789"[number % 16] for number in range(256))

SOME_DATA = st.binary(min_size=1, max_size=100) | st.sampled_from([DATA, bytes(100), b"||||" * 9])


@pytest.mark.parametrize("form", WRITERS)
@given(SOME_DATA)
def test_every_form_of_hex_comes_back(form: str, data: bytes) -> None:
    assert read_bytes(WRITERS[form](data).encode()) == data
    assert read_bytes(WRITERS[form](data).encode(), "hex") == data


@pytest.mark.parametrize("form", OTHER_WRITERS)
@given(SOME_DATA | st.binary(min_size=1, max_size=40).map(lambda data: data.translate(LETTERS)))
def test_text_of_other_programs_comes_back_or_is_refused(form: str, data: bytes) -> None:
    text = OTHER_WRITERS[form](data)
    if form == "Wireshark's last line":
        data = data[(len(data) - 1) // 16 * 16 :]
    if form.startswith("decimal"):  # numbers of two digits alone are hex
        assume(any(byte < 10 or byte > 99 for byte in data))
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
    text, form, expected = case["text"], case["form"], case["hex"]
    assert text is not None
    assert form is not None
    if expected is None:
        with pytest.raises(ConfigurationError):
            read_bytes(text.encode(), form)
    else:
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
