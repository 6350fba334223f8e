"""Reads hex dumps with offsets: xxd, hexdump, od, tcpdump, Wireshark.

The offsets decide how many bytes a line has; what follows the bytes must be their text. So text
that looks like hex digits is never taken for bytes. The explorer has the same rules in JavaScript
(`pasted.js`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from .pasted_text import PastedTextError

__all__ = ["MAX_DUMPED_BYTES", "read_dump", "read_words"]

#: Maximum number of bytes of a dump, because a line `*` stands for any number of repeated lines.
MAX_DUMPED_BYTES: Final = 104_857_600

#: Bases in which programs write offsets: hex, octal (the default of od), decimal.
_BASES: Final = (16, 8, 10)

_OFFSET: Final = re.compile(
    r"\s*(?P<digits>(?:0[xX])?[0-9a-fA-F]{4,16})(?P<colon>:?)(?P<gap>\s+|$)"
)
_GROUP: Final = re.compile(r"(?P<digits>[0-9a-fA-F]+)(?P<gap>\s+|(?=[|>])|$)")
_DIGITS: Final = re.compile(r"[0-9a-fA-F]*")
_REPEATED: Final = "*"

_READABLE: Final = "hexdump -C, xxd, od -t x1 and tcpdump -x print the bytes in order"
_OF_WORDS: Final = (
    "a dump of words in the byte order of a machine; choose the form words if the machine is "
    f"little-endian and the words have two bytes. {_READABLE}"
)
_NOT_WHOLE: Final = f"a dump whose offsets do not match its bytes; {_READABLE}"
_ONE_LINE: Final = (
    "either a line of a dump with its offset, or hex in groups: leave out the offset, or choose "
    "the form dump or hex"
)


_SEVERAL_LINES: Final = (
    "either a dump with offsets, or hex whose lines begin with numbers that could be offsets: "
    "leave out the offsets, or choose the form hex"
)


class _Group(NamedTuple):
    """Some hex digits of a line, the number of spaces after them, and the index after those."""

    digits: str
    gap: int
    end: int


class _Line(NamedTuple):
    """A line of a dump: its offset as text, and what may be its bytes.

    `at` is the index of the line in the whole text; `offset_gap` is the number of spaces after the
    offset.
    """

    at: int
    text: str
    offset: str
    has_colon: bool
    offset_gap: int
    groups: tuple[_Group, ...]


def read_dump(text: str, *, form: str = "auto") -> bytes | None:
    """Returns the bytes of a dump; None for text that is no dump.

    `form` is the form that the caller has named: `dump`, `hex` or `auto`. Raises PastedTextError
    for a dump of words, or whose offsets do not match its bytes. Text that may be a dump or hex is
    refused, unless the form is named.
    """
    lines = _lines(text)
    if lines is None:
        return None
    rows = [line for line in lines if line is not None]
    if not any(row.groups for row in rows):
        return None
    if not _has_offsets(rows):
        if form == "auto" and _may_have_offsets(rows):
            raise PastedTextError(f"the input is {_SEVERAL_LINES}", rows[1].at)
        return None
    for row in rows:
        _check_bytes(row)
    if form != "dump" and len(rows) == 1 and _may_be_hex(rows[0]):
        if form == "hex":
            return None
        raise PastedTextError(f"the input is {_ONE_LINE}", rows[0].at)
    _check_groups(rows)
    wrong = 0
    for base in _bases_of(rows):
        found = _by_base(lines, base)
        if isinstance(found, bytes):
            return found
        wrong = max(wrong, found.at)
    if any(_is_swapped(row) for row in rows):
        raise PastedTextError(f"the input is {_OF_WORDS}")
    raise PastedTextError(f"the input is {_NOT_WHOLE}", wrong)


def _lines(text: str) -> list[_Line | None] | None:
    """Returns the lines, with None for a line `*`; None if a line has no offset."""
    found: list[_Line | None] = []
    at = 0
    for whole in text.splitlines(keepends=True):
        line = whole.rstrip("\r\n")
        if line.strip() == _REPEATED:
            found.append(None)
        elif line.strip():
            match = _OFFSET.match(line)
            if match is None:
                return None
            has_colon = bool(match["colon"])
            groups = tuple(_groups(line, match.end(), has_colon=has_colon))
            found.append(_Line(at, line, match["digits"], has_colon, len(match["gap"]), groups))
        at += len(whole)
    return found or None


def _groups(line: str, position: int, *, has_colon: bool) -> Iterator[_Group]:
    """Yields the groups of a line that may be bytes; the wide gap before the text ends them.

    `hexdump -C` has a gap of two spaces in the middle of its bytes.
    """
    most = 1 if has_colon else 2
    while (match := _GROUP.match(line, position)) is not None:
        yield _Group(match["digits"], len(match["gap"]), match.end())
        position = match.end()
        if len(match["gap"]) > most:
            return


def _has_offsets(rows: list[_Line]) -> bool:
    """Returns True if the lines begin with offsets, and not with the first group of hex text."""
    if all(row.has_colon for row in rows):
        return True
    if any(row.has_colon for row in rows) or len({len(row.offset) for row in rows}) > 1:
        return False
    if rows[0].offset.startswith(("0x", "0X")):
        return False
    # Hex text has groups of one length; an offset is longer or shorter than the groups behind it.
    return all(len(row.groups[0].digits) != len(row.offset) for row in rows if row.groups)


def _may_have_offsets(rows: list[_Line]) -> bool:
    """Returns True if the first groups of hex text count the bytes behind them, as offsets do."""
    if len(rows) < 2:
        return False
    first = expected = int(rows[0].offset, 16)
    for row in rows:
        if int(row.offset, 16) != expected:
            return False
        expected += sum(len(group.digits) for group in row.groups) // 2
    return expected > first


def _check_groups(rows: list[_Line]) -> None:
    """Raises PastedTextError if the first group of a line, without colons, is not one byte.

    The first group cannot be a part of the line's text.
    """
    if rows[0].has_colon:
        return
    wrong = [row for row in rows if row.groups and len(row.groups[0].digits) != 2]
    if len(wrong) == sum(1 for row in rows if row.groups):
        raise PastedTextError(f"the input is {_OF_WORDS}")
    if wrong:
        digits = wrong[0].groups[0].digits
        raise PastedTextError(f"{digits!r:.20} is no byte of two digits", wrong[0].at)


def _check_bytes(row: _Line) -> None:
    """Raises PastedTextError for a line whose offset is followed by something else than bytes."""
    match = _OFFSET.match(row.text)
    start = match.end() if match else 0
    if not row.groups and row.text[start:].strip():
        digits = _DIGITS.match(row.text, start)
        at = digits.end() if digits else start
        raise PastedTextError(f"{row.text[at]!r} is no hex digit", row.at + at)


def _may_be_hex(row: _Line) -> bool:
    """Returns True if the only line may be hex whose first group is no offset."""
    rest = row.text[row.groups[-1].end :].lstrip()
    return not (row.has_colon or rest[:1] in ("|", ">") or row.offset_gap > 1)


def _bases_of(rows: list[_Line]) -> tuple[int, ...]:
    """Returns the bases that the program of the dump writes, so that a lost line is noticed.

    xxd (with a colon) writes hex or decimal; hexdump -C (8 digits) and Wireshark (4 digits) write
    hex; od (6 or 7 digits) writes octal, decimal or hex.
    """
    if rows[0].has_colon:
        return (16, 10)
    return (16,) if len(rows[0].offset) in (4, 8) else _BASES


def _by_base(lines: list[_Line | None], base: int) -> bytes | _Line:
    """Returns the bytes if the offsets of all lines, in this base, match the bytes.

    Otherwise returns the line at fault.
    """
    rows = [line for line in lines if line is not None]
    data = bytearray()
    last = b""
    first: int | None = None
    repeats = False
    for number, line in enumerate(lines):
        if line is None:
            if not last:
                return rows[0]
            repeats = True
            continue
        try:
            offset = int(line.offset, base)
        except ValueError:
            return line
        first = offset if first is None else first
        if repeats:
            missing = offset - first - len(data)
            if missing < 0 or missing % len(last):
                return line
            if offset - first > MAX_DUMPED_BYTES:
                raise PastedTextError(
                    f"a dump of {offset - first} bytes; at most {MAX_DUMPED_BYTES} are read"
                )
            data += last * (missing // len(last))
            repeats = False
        if offset - first != len(data):
            return line
        found = _content(line, _size(lines, number, offset, base))
        if found is None:
            return line
        data += found
        last = found or last
    return rows[-1] if repeats else bytes(data)


def _size(lines: list[_Line | None], number: int, offset: int, base: int) -> int | None:
    """Returns the number of bytes of a line by the next offset; None if there is no next offset."""
    if number + 1 == len(lines):
        return None
    following = lines[number + 1]
    if following is None:
        return None
    try:
        return int(following.offset, base) - offset
    except ValueError:
        return -1


def _content(line: _Line, size: int | None) -> bytes | None:
    """Returns the bytes of a line; None if the line cannot have `size` bytes.

    Without `size`, the text behind the bytes decides. Raises PastedTextError if the text may be
    bytes, too.
    """
    if not line.groups:
        return b"" if size in (None, 0) else None
    found = []
    for count in range(1, len(line.groups) + 1):
        digits = "".join(group.digits for group in line.groups[:count])
        if not line.has_colon and len(digits) != 2 * count:
            break
        if len(digits) % 2:
            continue
        data = bytes.fromhex(digits)
        group = line.groups[count - 1]
        if size in (None, len(data)) and _is_text_of(data, line.text[group.end :]):
            found.append((data, group.gap))
    if not found:
        return None
    if len(found) == 1:
        return found[0][0]
    data, gap = found[0]
    if gap < 2:
        raise PastedTextError(
            "the end of the line may be bytes or their text: separate the text by two spaces, or "
            "leave it out",
            line.at,
        )
    return data


def _is_text_of(data: bytes, rest: str) -> bool:
    """Returns True if `rest` shows the bytes as text, or is empty."""
    rest = rest.strip()
    shown = _shown(data)
    is_enclosed = rest[:1] + rest[-1:] in ("||", "><")
    return (
        not rest or shown.strip() == rest or (is_enclosed and shown.strip() == rest[1:-1].strip())
    )


def _shown(data: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data)


def _is_swapped(line: _Line) -> bool:
    """Returns True if the text of a line shows that the bytes of each group are reversed."""
    match = _OFFSET.match(line.text)
    position = match.end() if match else 0
    data = words = b""
    while (group := _GROUP.match(line.text, position)) is not None:
        if len(group["digits"]) % 2:
            return False
        data += bytes.fromhex(group["digits"])
        words += bytes.fromhex(group["digits"])[::-1]
        position = group.end()
        rest = line.text[position:].strip()
        if rest and _shown(words).strip() == rest:
            return _shown(data).strip() != rest
    return False


def read_words(text: str) -> bytes:
    """Reads a dump of two-byte words of a little-endian machine, as `hexdump` and `od -x` print it.

    Raises PastedTextError for other text. The last line must be the offset of the end, which tells
    whether the last word has one or two bytes.
    """
    lines = _lines(text)
    rows = [line for line in lines or () if line is not None]
    if lines is None or len(rows) != len(lines) or len(rows) < 2 or rows[-1].groups:
        raise PastedTextError(
            "the input is no dump of words: each line begins with an offset, and the last line is "
            "the offset of the end (hexdump -v, od -v -x)"
        )
    data = bytearray()
    for row in rows:
        for group in row.groups:
            if len(group.digits) != 4:
                raise PastedTextError(f"{group.digits!r:.20} is no word of four digits", row.at)
            data += bytes.fromhex(group.digits)[::-1]
    for base in _BASES:
        try:
            size = int(rows[-1].offset, base) - int(rows[0].offset, base)
        except ValueError:
            continue
        if size == len(data) or (size == len(data) - 1 and data[-1] == 0):
            return bytes(data[:size])
    raise PastedTextError(f"the input is {_NOT_WHOLE}", rows[-1].at)
