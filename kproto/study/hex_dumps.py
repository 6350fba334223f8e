"""Reads hex dumps with offsets: xxd, hexdump, od, tcpdump, Wireshark.

The offsets decide how many bytes a line has; what follows the bytes must be their text. So text
that looks like hex digits is never taken for bytes. A dump whose offsets or numbers have two
readings with different bytes is refused. The explorer has the same rules in JavaScript
(`dumps.js`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from .pasted_text import AmbiguousTextError, PastedTextError

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
_TWO_DECIMALS: Final = re.compile(r"[1-9][0-9]")
_BITS: Final = re.compile(r"[01]{8}")
_REPEATED: Final = "*"

#: Numbers of digits of the groups of `xxd -e`, which reverses the bytes of each group.
_REVERSIBLE: Final = (8, 16)

_READABLE: Final = "hexdump -C, xxd, od -t x1 and tcpdump -x print the bytes in order"
_OF_WORDS: Final = (
    "a dump of words in the byte order of a machine; choose the form words if the machine is "
    f"little-endian and the words have two bytes. {_READABLE}"
)
_OF_NUMBERS: Final = f"a dump of octal or decimal numbers; {_READABLE}"
_NOT_WHOLE: Final = f"a dump whose offsets do not match its bytes; {_READABLE}"
_SEVERAL_DUMPS: Final = "several dumps, of which another one begins here: read them one by one"
_ONE_LINE: Final = (
    "either a line of a dump with its offset, or hex in groups: leave out the offset, or choose "
    "the form dump or hex"
)
_SEVERAL_LINES: Final = (
    "either a dump with offsets, or hex whose lines begin with numbers that could be offsets: "
    "leave out the offsets, or choose the form hex"
)
_ANY_BASE: Final = (
    "a dump whose repeated lines (*) have another number for offsets in hex, octal or decimal: "
    "print all lines (od -v, xxd without -a), or offsets in hex (od -A x)"
)
_ANY_ORDER: Final = (
    "a dump of groups whose text does not tell the order of their bytes: choose the form dump if "
    f"they are in order, as xxd -g prints them, and not reversed (xxd -e). {_READABLE}"
)
_ANY_DIGITS: Final = (
    "a dump of hex or binary digits (xxd -g 4 or xxd -b): choose the form dump if they are hex"
)
_ANY_NUMBERS: Final = (
    "a dump of hex or decimal numbers (od -t x1 or od -t u1): choose the form dump if they are hex"
)


class _Group(NamedTuple):
    """Some hex digits of a line, the number of spaces after them, and the index after those."""

    digits: str
    gap: int
    end: int


class _Line(NamedTuple):
    """A line of a dump: its offset as text, and what may be its bytes.

    `at` is the index of the line in the whole text; `offset_gap` is the number of spaces after the
    offset, and `start` the index in the line after those.
    """

    at: int
    text: str
    offset: str
    has_colon: bool
    offset_gap: int
    start: int
    groups: tuple[_Group, ...]


def read_dump(text: str, *, form: str = "auto") -> bytes | None:
    """Returns the bytes of a dump; None for text that is no dump.

    `form` is the form that the caller has named: `dump`, `hex` or `auto`. Raises PastedTextError
    for a dump of words, for several dumps, or if the offsets do not match the bytes. Text that may
    be a dump or hex is refused, unless the form is named.
    """
    lines = _lines(text)
    if lines is None:
        return None
    rows = _rows_of(lines)
    if not any(row.groups for row in rows):
        return None
    if not _has_offsets(rows):
        if form == "auto" and _may_have_offsets(rows):
            several = len(rows) > 1
            reason = _SEVERAL_LINES if several else _ONE_LINE
            raise AmbiguousTextError(f"the input is {reason}", rows[several].at)
        return None
    for row in rows:
        _check_bytes(row)
    for row in rows[1:]:
        if row.groups and int(row.offset, 16) == 0:
            raise PastedTextError(f"the input is {_SEVERAL_DUMPS}", row.at)
    if form != "dump" and len(rows) == 1 and _may_be_hex(rows[0]):
        if form == "hex":
            return None
        raise AmbiguousTextError(f"the input is {_ONE_LINE}", rows[0].at)
    _check_groups(rows)
    if form != "dump":
        _check_not_decimal(rows)
        _check_not_bits(rows)
        _check_order(rows)
    found = set()
    wrong = 0
    for base in _bases_of(rows):
        result = _by_base(lines, base)
        if isinstance(result, bytes):
            found.add(result)
        else:
            wrong = max(wrong, result.at)
    if len(found) > 1:
        star = next((line for line in lines if isinstance(line, int)), rows[0].at)
        raise AmbiguousTextError(f"the input is {_ANY_BASE}", star)
    if found:
        return found.pop()
    swapped = next((row for row in rows if _is_swapped(row)), None)
    if swapped is not None:
        raise PastedTextError(f"the input is {_OF_WORDS}", swapped.at + swapped.start)
    raise PastedTextError(f"the input is {_NOT_WHOLE}", wrong)


def _lines(text: str) -> list[_Line | int] | None:
    """Returns the lines, with its index for a line `*`; None if a line has no offset."""
    found: list[_Line | int] = []
    at = 0
    for whole in text.splitlines(keepends=True):
        line = whole.rstrip("\n")
        if line.strip() == _REPEATED:
            found.append(at)
        elif line.strip():
            match = _OFFSET.match(line)
            if match is None:
                return None
            has_colon = bool(match["colon"])
            # `hexdump -C` has a gap of two spaces in the middle of its bytes
            groups = tuple(_groups(line, match.end(), most=1 if has_colon else 2))
            gap = len(match["gap"])
            found.append(_Line(at, line, match["digits"], has_colon, gap, match.end(), groups))
        at += len(whole)
    return found or None


def _rows_of(lines: list[_Line | int]) -> list[_Line]:
    return [line for line in lines if isinstance(line, _Line)]


def _groups(line: str, position: int, *, most: int) -> Iterator[_Group]:
    """Yields the groups of a line that may be bytes; a gap of more than `most` spaces ends them."""
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
    """Returns True for hex text whose first groups may be offsets.

    They may be if they count the bytes behind them, or if the gap behind each is the widest.
    """
    if all(row.offset_gap > max(1, _widest_gap(row)) for row in rows if row.groups):
        return True
    if len(rows) < 2:
        return False
    first = expected = int(rows[0].offset, 16)
    for row in rows:
        if int(row.offset, 16) != expected:
            return False
        expected += sum(len(group.digits) for group in row.groups) // 2
    return expected > first


def _widest_gap(row: _Line) -> int:
    return max((group.gap for group in row.groups[:-1]), default=0)


def _check_groups(rows: list[_Line]) -> None:
    """Raises PastedTextError if the first group of a line, without colons, is not one byte.

    The first group cannot be a part of the line's text.
    """
    if rows[0].has_colon:
        return
    filled = [row for row in rows if row.groups]
    wrong = [row for row in filled if len(row.groups[0].digits) != 2]
    if not wrong:
        return
    at = wrong[0].at + wrong[0].start
    digits = wrong[0].groups[0].digits
    if len(wrong) == len(filled):
        raise PastedTextError(f"the input is {_OF_NUMBERS if len(digits) == 3 else _OF_WORDS}", at)
    raise PastedTextError(f"{digits!r:.20} is no byte of two digits", at)


def _check_bytes(row: _Line) -> None:
    """Raises PastedTextError for a line whose offset is followed by something else than bytes."""
    if not row.groups and row.text[row.start :].strip():
        digits = _DIGITS.match(row.text, row.start)
        at = digits.end() if digits else row.start
        raise PastedTextError(f"{row.text[at]!r} is no hex digit", row.at + at)


def _check_not_decimal(rows: list[_Line]) -> None:
    """Raises AmbiguousTextError for lines that `od -t u1` prints for bytes from 10 to 99.

    `od -t u1` pads its numbers to three places, so two spaces precede these numbers. The od of
    macOS prints two spaces before hex numbers, too.
    """
    filled = [row for row in rows if row.groups]
    if rows[0].has_colon or len(rows[0].offset) not in (6, 7):
        return
    if all(
        row.offset_gap > 1
        and all(_TWO_DECIMALS.fullmatch(group.digits) for group in row.groups)
        and all(group.gap > 1 for group in row.groups[:-1])
        for row in filled
    ):
        raise AmbiguousTextError(f"the input is {_ANY_NUMBERS}", filled[0].at + filled[0].start)


def _check_not_bits(rows: list[_Line]) -> None:
    """Raises AmbiguousTextError for a single line that `xxd -b`, too, may have printed."""
    row = rows[0]
    if len(rows) > 1 or not row.has_colon or row.text[row.groups[-1].end :].strip():
        return
    if all(_BITS.fullmatch(group.digits) for group in row.groups):
        raise AmbiguousTextError(f"the input is {_ANY_DIGITS}", row.at + row.start)


def _check_order(rows: list[_Line]) -> None:
    """Raises AmbiguousTextError if `xxd -e`, too, may have printed the lines, for other bytes."""
    filled = [row for row in rows if row.groups]
    if not any(_may_be_reversed(row) for row in filled):
        return
    differs = False
    for row in filled:
        if not _matches(row, _bytes_of(row, reverse=True)):
            return
        differs = differs or _bytes_of(row) != _bytes_of(row, reverse=True)
    if differs and all(_matches(row, _bytes_of(row)) for row in filled):
        raise AmbiguousTextError(f"the input is {_ANY_ORDER}", filled[0].at + filled[0].start)


def _may_be_reversed(row: _Line) -> bool:
    """Returns True for the groups of `xxd -e`, which fills a short group with spaces before it."""
    size = len(row.groups[0].digits)
    is_of_xxd = row.has_colon and not row.offset.startswith(("0x", "0X"))
    return is_of_xxd and (size in _REVERSIBLE or (size > 2 and row.offset_gap > 2))


def _may_be_hex(row: _Line) -> bool:
    """Returns True if the only line may be hex whose first group is no offset."""
    rest = row.text[row.groups[-1].end :].lstrip()
    return not (row.has_colon or rest[:1] in ("|", ">") or row.offset_gap > 1)


def _bases_of(rows: list[_Line]) -> tuple[int, ...]:
    """Returns the bases that the program of the dump writes, so that a lost line is noticed.

    tcpdump (`0x`) writes hex; xxd (with a colon) writes hex or decimal; hexdump -C (8 digits),
    Wireshark (4 digits) and od -A x (6 digits) write hex; od (7 digits) writes octal or decimal,
    and hex on some systems.
    """
    offset = rows[0].offset
    if offset.startswith(("0x", "0X")):
        return (16,)
    if rows[0].has_colon:
        return (16, 10)
    return (16,) if len(offset) in (4, 6, 8) else _BASES


def _offset_of(line: _Line, base: int) -> int | None:
    """Returns the offset of a line; None if its digits are none of the base."""
    try:
        return int(line.offset, base)
    except ValueError:
        return None


def _by_base(lines: list[_Line | int], base: int) -> bytes | _Line:
    """Returns the bytes if the offsets of all lines, in this base, match the bytes.

    Otherwise returns the line at fault.
    """
    rows = _rows_of(lines)
    data = bytearray()
    last = b""
    longest: int | None = None
    first: int | None = None
    repeats = False
    for number, line in enumerate(lines):
        if isinstance(line, int):
            if not last:
                return rows[0]
            repeats = True
            continue
        offset = _offset_of(line, base)
        if offset is None:
            return line
        first = offset if first is None else first
        if repeats:
            missing = offset - first - len(data)
            if missing < 0 or missing % len(last):
                return line
            if offset - first > MAX_DUMPED_BYTES:
                raise PastedTextError(
                    f"a dump of {offset - first} bytes; at most {MAX_DUMPED_BYTES} are read",
                    line.at,
                )
            data += last * (missing // len(last))
            repeats = False
        if offset - first != len(data):
            return line
        found = _content(line, _size(lines, number, offset, base), longest)
        if found is None:
            return line
        data += found
        last = found or last
        longest = max(longest or 0, len(found))
    return rows[-1] if repeats else bytes(data)


def _size(lines: list[_Line | int], number: int, offset: int, base: int) -> int | None:
    """Returns the number of bytes of a line by the next offset; None if there is no next offset."""
    following = lines[number + 1] if number + 1 < len(lines) else 0
    if isinstance(following, int):
        return None
    after = _offset_of(following, base)
    return -1 if after is None else after - offset


def _content(line: _Line, size: int | None, longest: int | None) -> bytes | None:
    """Returns the bytes of a line; None if the line cannot have `size` bytes.

    Without `size`, the text behind the bytes decides, and the line has at most as many bytes as the
    `longest` line before it. Raises AmbiguousTextError if the text may be bytes, too.
    """
    if not line.groups:
        return b"" if size in (None, 0) else None
    data = _bytes_of(line)
    found = [
        match
        for match in _matches(line, data)
        if match[0] == size or (size is None and (longest is None or match[0] <= longest))
    ]
    if not found:
        return None
    if len(found) > 1 and found[0][1] < 2:
        raise AmbiguousTextError(
            "the end of the line may be bytes or their text: separate the text by two spaces, or "
            "leave it out",
            line.at,
        )
    return data[: found[0][0]]


def _bytes_of(line: _Line, *, reverse: bool = False) -> bytes:
    """Returns the bytes of the groups up to the first that cannot be bytes.

    With `reverse`, the bytes of each group are reversed.
    """
    digits = []
    for group in line.groups:
        if len(group.digits) % 2 or not (line.has_colon or len(group.digits) == 2):
            break
        digits.append(group.digits)
    if reverse:
        return b"".join(bytes.fromhex(each)[::-1] for each in digits)
    return bytes.fromhex("".join(digits))


def _matches(line: _Line, data: bytes) -> list[tuple[int, int]]:
    """Returns each possible number of bytes of the line, with the gap after those bytes.

    The rest of the line must be empty or the text of these bytes. The length of the rest excludes
    nearly all numbers, so that the time is linear.
    """
    shown = _shown(data)
    first = len(shown) - len(shown.lstrip(" "))
    end = len(line.text.rstrip())
    found = []
    count = before = 0
    last = 0  # the index after the last byte that is no space
    for group in line.groups:
        count += len(group.digits) // 2
        if count > len(data):
            break
        if piece := shown[before:count].rstrip(" "):
            last = before + len(piece)
        before = count
        length = max(0, end - group.end)
        stripped = max(0, last - first)
        if length and length not in (stripped, stripped + 1, count, count + 1, count + 2):
            continue
        if _is_text_of(shown[:count], line.text[group.end : end]):
            found.append((count, group.gap))
    return found


def _is_text_of(shown: str, rest: str) -> bool:
    """Returns True if `rest` is empty or the text `shown`, as one of the programs prints it.

    tcpdump prints a dot for a space; Wireshark's "Follow Stream" has a space after eight bytes.
    """
    if not rest or rest in (f"|{shown}|", f">{shown}<"):
        return True
    parted = f"{shown[:8]} {shown[8:]}"
    return rest in (shown.strip(), parted.strip(), shown.replace(" ", "."))


def _shown(data: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data)


def _is_swapped(line: _Line) -> bool:
    """Returns True if the text of a line shows that the bytes of each group are reversed."""
    # `xxd -e` fills the last group with spaces
    line = line._replace(groups=tuple(_groups(line.text, line.start, most=len(line.text))))
    words = _bytes_of(line, reverse=True)
    return bool(_matches(line, words)) and not _matches(line, _bytes_of(line))


def read_words(text: str) -> bytes:
    """Reads a dump of two-byte words of a little-endian machine, as `hexdump` and `od -x` print it.

    Raises PastedTextError for other text. The last line must be the offset of the end, which tells
    whether the last word has one or two bytes.
    """
    lines = _lines(text)
    rows = _rows_of(lines or [])
    if lines is None or len(rows) != len(lines) or len(rows) < 2 or rows[-1].groups:
        raise PastedTextError(
            "the input is no dump of words: each line begins with an offset, and the last line is "
            "the offset of the end (hexdump -v, od -v -x)",
            rows[-1].at if rows else 0,
        )
    data = bytearray()
    for row in rows:
        for group in row.groups:
            if len(group.digits) != 4:
                raise PastedTextError(f"{group.digits!r:.20} is no word of four digits", row.at)
            data += bytes.fromhex(group.digits)[::-1]
        after = row.groups[-1].end if row.groups else row.start
        if row.text[after:].strip():
            raise PastedTextError(f"{row.text[after]!r} follows the words", row.at + after)
    wrong = 0
    for base in _BASES:
        fault = _fault_of_words(rows, len(data), base, is_padded=data[-1:] == b"\0")
        if fault is None:
            first, end = int(rows[0].offset, base), int(rows[-1].offset, base)
            return bytes(data[: end - first])
        wrong = max(wrong, fault.at)
    raise PastedTextError(f"the input is {_NOT_WHOLE}", wrong)


def _fault_of_words(rows: list[_Line], size: int, base: int, *, is_padded: bool) -> _Line | None:
    """Returns the first line whose offset, in this base, does not count the words before it.

    The offset of the end may be one less than `size`, the bytes of all words, if `is_padded`.
    """
    expected = _offset_of(rows[0], base)
    if expected is None:
        return rows[0]
    for row in rows[:-1]:
        if _offset_of(row, base) != expected:
            return row
        expected += 2 * len(row.groups)
    end = _offset_of(rows[-1], base)
    return None if end == expected or (is_padded and end == expected - 1) else rows[-1]
