"""Formats records as lines for people, as `kproto tail` prints them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from ..records.record import Record
from .text_width import cut

__all__ = ["tail_line"]

#: The colors of topics on a terminal, as ANSI codes: cyan, yellow, green, magenta, blue.
_COLORS: Final = (36, 33, 32, 35, 34)

#: Columns of the shortest value that is shown if the other columns fill the terminal.
_LEAST_VALUE: Final = 10


def tail_line(
    topics: Sequence[str], *, width: int | None, colored: bool
) -> Callable[[Record], bytes]:
    """Returns the function that formats a record as a line.

    `width` is the number of columns at which a line is cut; None cuts no line. Bytes that are no
    text, and control characters, are escaped as in Python: `\\x00`.
    """
    columns = max(map(len, topics), default=0)
    colors = {name: _COLORS[at % len(_COLORS)] for at, name in enumerate(dict.fromkeys(topics))}

    def line(record: Record) -> bytes:
        head = (
            f"{record.topic:<{columns}} {record.partition:>2} {record.offset:>6}  {_time(record)}"
        )
        text = f"{_text(record.key)}  {_text(record.value)}"
        if width is not None:
            text = cut(text, max(width - len(head) - 2, _LEAST_VALUE))
        if colored:
            head = f"\x1b[{colors.get(record.topic, _COLORS[0])}m{head}\x1b[0m"
        return f"{head}  {text}\n".encode()

    return line


def _time(record: Record) -> str:
    """Returns the local time of a record, in the form HH:MM:SS.mmm."""
    if record.timestamp < 0:
        return "-".ljust(12)
    try:
        moment = datetime.fromtimestamp(record.timestamp / 1000).astimezone()
    except (OverflowError, ValueError, OSError):  # later than the year 9999
        return "-".ljust(12)
    return moment.strftime("%H:%M:%S.") + f"{record.timestamp % 1000:03d}"


def _text(data: bytes | None) -> str:
    if data is None:
        return "-"
    text = data.decode("utf-8", "surrogateescape")
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    """Returns an escape; a byte that is no UTF-8 is a lone surrogate here."""
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")
