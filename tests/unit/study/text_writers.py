"""Writes bytes as programs print them: dumps, lists, literals, base64."""

from __future__ import annotations

import base64
import pprint
import re
from collections.abc import Callable

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


def squeezed(rows: list[tuple[int, str]], offset: str) -> list[str]:
    """Returns the rows with their offsets; `*` stands for rows that equal the row before."""
    lines: list[str] = []
    for number, (at, row) in enumerate(rows):
        if number > 0 and row == rows[number - 1][1]:
            if lines[-1] != "*":
                lines.append("*")
        else:
            lines.append(f"{at:{offset}}{row}")
    return lines


def od_like(
    data: bytes, shown: Callable[[int], str], base: str, *, width: int = 16, gap: str = ""
) -> str:
    """Returns the output of `od -t x1` or `-t u1`, with offsets in a base: x, o or d."""
    places = "06x" if base == "x" else f"07{base}"
    rows = [
        (at, gap + "".join(map(shown, data[at : at + width]))) for at in range(0, len(data), width)
    ]
    return "\n".join([*squeezed(rows, places), f"{len(data):{places}}"]) + "\n"


def xxd_a(data: bytes, base: str) -> str:
    """Returns the output of `xxd -a`, which prints the last line always, with offsets in a base."""
    rows = [(16 * number, line[8:]) for number, line in enumerate(xxd(data).splitlines())]
    *before, (at, row) = rows
    return "\n".join([*squeezed(before, f"08{base}"), f"{at:08{base}}{row}"]) + "\n"


def tcpdump_with_dots(data: bytes) -> str:
    """Returns the output of `tcpdump -X`, which prints a dot for a space."""
    lines = []
    for line in xxd(data).splitlines():
        bytes_of_line, text = line[4:51], line[51:]
        lines.append(f"\t0x{bytes_of_line}{text.replace(' ', '.')}")
    return "\n".join(lines)


def follow_stream(data: bytes) -> str:
    """Returns Wireshark's "Follow Stream" as a hex dump, which parts bytes and text after eight."""
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        shown = f"{row[:8].hex(' ')}  {row[8:].hex(' ')}"
        lines.append(f"{at:08x}  {shown:<48}   {text[:8]} {text[8:]}".rstrip())
    return "\n".join(lines) + "\n"


def xxd_e(data: bytes) -> str:
    """Returns the output of `xxd -e`, which reverses the bytes of groups of four."""
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        groups = [f"{row[i : i + 4][::-1].hex():>8}" for i in range(0, len(row), 4)]
        lines.append(f"{at:08x}: {' '.join(groups):<36} {text}")
    return "\n".join(lines) + "\n"


def xxd_b(data: bytes) -> str:
    """Returns the output of `xxd -b` without its text."""
    rows = [data[at : at + 6] for at in range(0, len(data), 6)]
    return "\n".join(
        f"{6 * number:08x}: {' '.join(f'{byte:08b}' for byte in row)}"
        for number, row in enumerate(rows)
    )


def wrapped(text: str) -> str:
    """Returns the text as a terminal of 20 columns shows it."""
    return "\n".join(text[at : at + 20] for at in range(0, len(text), 20))


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
    "od -t u1": lambda data: od_like(data, lambda byte: f"{byte:4}", "o"),
    "od -t x1 of macOS": lambda data: od_like(data, lambda byte: f"  {byte:02x}", "o", gap="  "),
    "od -t x1 in octal": lambda data: od_like(data, lambda byte: f" {byte:02x}", "o"),
    "od -t x1 in decimal": lambda data: od_like(data, lambda byte: f" {byte:02x}", "d"),
    "od -A x -t x1": lambda data: od_like(data, lambda byte: f" {byte:02x}", "x"),
    "od -w8 -t x1": lambda data: od_like(data, lambda byte: f" {byte:02x}", "o", width=8),
    "xxd -a -d": lambda data: xxd_a(data, "d"),
    "xxd -a": lambda data: xxd_a(data, "x"),
    "real tcpdump -X": tcpdump_with_dots,
    "Follow Stream": follow_stream,
    "xxd -e": xxd_e,
    "xxd -b": xxd_b,
    "Go's %v, wrapped": lambda data: wrapped(str(list(data)).replace(",", "")),
    "Python's list, wrapped": lambda data: wrapped(str(list(data))),
    "Rust's {:02x?}": lambda data: "[" + ", ".join(f"{byte:02x}" for byte in data) + "]",
    "CR line ends": lambda data: xxd(data).replace("\n", "\r"),
    "base64": lambda data: base64.b64encode(data).decode(),
    "base32": lambda data: base64.b32encode(data).decode(),
}

#: Refused for some bytes, because their text has other readings.
MAY_BE_REFUSED = {
    *("Go's %v", "decimal", "decimal with commas", "hexdump of words", "xxd with single spaces"),
    *("od without the last line", "octal escapes", "od -t u1", "od -t x1 of macOS", "base64"),
    *("od -t x1 in octal", "od -t x1 in decimal", "od -w8 -t x1", "xxd -a -d", "xxd -a"),
    *("xxd -e", "xxd -b", "Go's %v, wrapped", "Python's list, wrapped", "Rust's {:02x?}"),
    *("Python's list", "Java's Arrays.toString", "Go's %q", "base32"),
}
