"""Parses bytes as users enter them: hex digits, a hexdump, base64 or raw bytes.

Detects the format by default. Raises ConfigurationError if the whole input is not in one format.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from ..wire.errors import ConfigurationError

__all__ = ["FORMS", "read_bytes"]

#: A line of `hexdump -C`, `xxd`, `od -t x1` or `tcpdump -x`: offset, bytes, and their characters.
_DUMP_LINE: Final = re.compile(
    r"\s*(?:0x)?(?P<offset>[0-9a-fA-F]{4,16})(?P<colon>:?)"
    r"(?P<hex>(?:\s{1,2}[0-9a-fA-F]{2,8}(?=\s|$))*)(?P<rest>.*)"
)
#: A line that begins with an offset, as in all dumps, even if its bytes cannot be read.
_OFFSET_LINE: Final = re.compile(
    r"\s*(?P<offset>0x[0-9a-fA-F]{4,16}|[0-9a-fA-F]{4,16}(?=:)|[0-9a-fA-F]{6,16})(?P<colon>:?)"
    r"(?:\s+(?P<word>[0-9a-fA-F]+)(?=\s|$).*|\s*)"
)

#: Bases in which `od -A` writes offsets: hex, octal (its default), decimal.
_BASES: Final = (16, 8, 10)
_HEX_NOISE: Final = re.compile(r"0x|\\x|[\s:,;_\-\[\]{}()<>\"'.]", re.IGNORECASE)
_HEX: Final = re.compile(r"[0-9a-fA-F]*")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_\-\s]+={0,2}\s*")
_REPEATED: Final = "*"

#: Maximum number of bytes in a line of a dump.
_LINE_BYTES: Final = 64

#: Maximum number of bytes of a dump, because a line `*` stands for any number of repeated lines.
MAX_DUMPED_BYTES: Final = 104_857_600

_READABLE: Final = "hexdump -C, xxd, od -t x1 and tcpdump -x print the bytes in order"
_OF_WORDS: Final = f"a dump of words in the byte order of a machine; {_READABLE}"
_NOT_WHOLE: Final = f"a dump whose offsets do not match its bytes; {_READABLE}"

FORMS: Final = ("auto", "hex", "base64", "binary")


def read_bytes(data: bytes, form: str = "auto") -> bytes:
    """Returns the bytes that `data` encodes; `form` is one of `FORMS`.

    `auto` accepts hex digits (with spaces, `0x`, `\\x`, colons or commas between them), the output
    of `hexdump -C`, `xxd`, `od -t x1` or `tcpdump -x`, and base64 or base64url. Input that is not
    printable ASCII is returned unchanged. Raises ConfigurationError for other text, for a dump
    whose offsets do not match its bytes, and for a dump of little-endian words (`hexdump`,
    `xxd -e`).
    """
    if form == "binary":
        return data
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        if form == "auto":
            return data
        raise ConfigurationError(f"the input is not ASCII, so it is not {form}") from None
    if form == "auto" and not _is_text(text):
        return data
    if form == "base64":
        return _base64(text)
    found = _dump(text)
    if found is None:
        found = _hex(text)
    if found is not None:
        return found
    if form == "hex":
        raise ConfigurationError(f"the input is no hex: {_why_no_hex(text)}")
    if _BASE64.fullmatch(text) and not _HEX.fullmatch(_HEX_NOISE.sub("", text)):
        return _base64(text)
    raise ConfigurationError(
        f"the input is no hex ({_why_no_hex(text)}), no hexdump and no base64; "
        "choose the format binary for raw bytes"
    )


def _is_text(text: str) -> bool:
    return all(character.isprintable() or character in "\r\n\t" for character in text)


def _hex(text: str) -> bytes | None:
    digits = _HEX_NOISE.sub("", text)
    if len(digits) % 2 or not _HEX.fullmatch(digits):
        return None
    return bytes.fromhex(digits)


def _why_no_hex(text: str) -> str:
    digits = _HEX_NOISE.sub("", text)
    wrong = re.search(r"[^0-9a-fA-F]", digits)
    if wrong is None:
        return f"{len(digits)} digits, which is odd"
    return f"{wrong[0]!r} is no hex digit"


def _base64(text: str) -> bytes:
    packed = "".join(text.split()).translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        return base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except binascii.Error as error:
        raise ConfigurationError(f"the input is no base64: {error}") from None


def _dump(text: str) -> bytes | None:
    """Returns the bytes of a dump; None for other text.

    Raises ConfigurationError for a dump that cannot be read.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    for base in _BASES:
        found = _dump_by(lines, base)
        if found is not None:
            return found
    if why := _why_no_dump(lines):
        raise ConfigurationError(f"the input is {why}")
    return None


def _dump_by(lines: list[str], base: int) -> bytes | None:
    """Returns the bytes of a dump; `base` is the number base of the dump's offsets.

    Returns None if the offsets do not match the bytes.
    """
    data = bytearray()
    first: int | None = None
    last = b""
    repeats = False
    for line in lines:
        if line.strip() == _REPEATED:
            if not last:
                return None
            repeats = True
            continue
        match = _DUMP_LINE.fullmatch(line)
        if match is None:
            return None
        try:
            offset = int(match["offset"], base)
        except ValueError:
            return None
        if first is None:
            first = offset
        if repeats:
            missing = offset - first - len(data)
            if missing < 0 or missing % len(last):
                return None
            if offset - first > MAX_DUMPED_BYTES:
                raise ConfigurationError(
                    f"a dump of {offset - first} bytes; at most {MAX_DUMPED_BYTES} are read"
                )
            data += last * (missing // len(last))
            repeats = False
        if offset - first != len(data):
            return None
        found = _of_line(match)
        if found is None:
            return None
        data += found
        last = found or last
    if first is None or not data or (len(lines) == 1 and not _has_mark(lines[0])):
        return None
    return bytes(data)


def _of_line(match: re.Match[str]) -> bytes | None:
    """Returns the bytes in a line of a dump; None if the line is not of a known format.

    Raises ConfigurationError if the dump shows the bytes of each word in reverse order.
    """
    hex_part, rest = match["hex"], match["rest"]
    if match["colon"]:  # xxd: one space between groups, two before the characters
        hex_part = re.split(r"(?<=\S)\s{2,}", hex_part)[0]
    elif rest.strip() and rest.lstrip()[0] not in "|>":
        return None
    words = hex_part.split()
    digits = "".join(words)
    if len(digits) % 2 or len(digits) > 2 * _LINE_BYTES:
        return None
    if not match["colon"] and any(len(word) != 2 for word in words):
        return None
    found = bytes.fromhex(digits)
    if match["colon"] and _is_byte_swapped(
        words, match.string[match.start("hex") + len(hex_part) :]
    ):
        raise ConfigurationError(f"the input is {_OF_WORDS}")
    return found


def _is_byte_swapped(words: list[str], text_part: str) -> bool:
    """Returns True if the characters in a line show that the bytes of each word are reversed."""
    swapped = b"".join(bytes.fromhex(word)[::-1] for word in words if len(word) % 2 == 0)
    if _as_text(bytes.fromhex("".join(words))).rstrip() in text_part:
        return False
    return _as_text(swapped) in text_part


def _as_text(data: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data)


def _why_no_dump(lines: list[str]) -> str:
    """Returns why the lines are refused if they begin with offsets as in a dump; "" otherwise."""
    rows = [_OFFSET_LINE.fullmatch(line) for line in lines if line.strip() != _REPEATED]
    offsets = [int(row["offset"], 16) for row in rows if row is not None]
    if len(rows) < 2 or len(offsets) < len(rows) or offsets != sorted(set(offsets)):
        return ""
    found = [row for row in rows if row is not None]
    words = [(len(row["word"] or ""), len(row["offset"]), bool(row["colon"])) for row in found]
    has_colons = all(colon for _, _, colon in words)
    ends_with_offset = not words[-1][0] and all(
        word not in (0, offset) for word, offset, _ in words[:-1]
    )
    if len({offset for _, offset, _ in words}) > 1 or not (has_colons or ends_with_offset):
        return ""
    return _NOT_WHOLE if has_colons or all(word <= 2 for word, _, _ in words) else _OF_WORDS


def _has_mark(line: str) -> bool:
    """Returns True if a line must be of a hex dump: it has `|`, or begins like `0000: `."""
    return "|" in line or re.match(r"\s*(0x)?[0-9a-fA-F]{4,16}: ", line) is not None
