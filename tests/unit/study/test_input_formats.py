"""Tests the text formats of bytes that users paste: each is read; errors explain invalid input."""

from __future__ import annotations

import base64
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.study import read_bytes
from kproto.wire.errors import ConfigurationError
from tests.support.availability import skip_untested

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


WRITERS = {
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
}


@pytest.mark.parametrize("form", WRITERS)
@given(st.binary(min_size=1, max_size=100) | st.sampled_from([DATA, bytes(100), b"||||" * 9]))
def test_every_form_of_hex_comes_back(form: str, data: bytes) -> None:
    assert read_bytes(WRITERS[form](data).encode()) == data
    assert read_bytes(WRITERS[form](data).encode(), "hex") == data


@given(st.binary(max_size=100))
def test_base64_of_both_alphabets(data: bytes) -> None:
    for packed in (base64.b64encode(data), base64.urlsafe_b64encode(data)):
        assert read_bytes(packed, "base64") == data
        assert read_bytes(packed.rstrip(b"="), "base64") == data
        assert read_bytes(packed[:20] + b"\n" + packed[20:], "base64") == data


def test_base64_is_taken_where_it_is_no_hex() -> None:
    assert read_bytes(base64.b64encode(DATA)) == DATA


def test_binary() -> None:
    assert read_bytes(b"\x00\x00\x00\x04abcd") == b"\x00\x00\x00\x04abcd"
    assert read_bytes(b"\xff\xfe") == b"\xff\xfe"
    assert read_bytes(b"61", "binary") == b"61"


@pytest.mark.parametrize(
    ("text", "form", "reason"),
    [
        (b"00 0", "auto", "3 digits, which is odd"),
        (b"00 zz!", "auto", "'z' is no hex digit"),
        (b"zz", "hex", "'z' is no hex digit"),
        (b"a", "base64", "no base64"),
        ("é".encode(), "hex", "not ASCII"),
    ],
)
def test_invalid_input_is_explained(text: bytes, form: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        read_bytes(text, form)


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
