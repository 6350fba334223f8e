"""Parses ISO-8601 durations, as Java's `Duration.parse` does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["parse_duration"]

#: The grammar of `java.time.Duration.parse`: days, hours, minutes and seconds, each with a sign; no
#: weeks, months and years.
_DURATION: Final = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?[0-9]+)D)?"
    r"(?:T(?=[-+0-9])(?:(?P<hours>[-+]?[0-9]+)H)?(?:(?P<minutes>[-+]?[0-9]+)M)?"
    r"(?:(?P<seconds>[-+]?[0-9]+)(?:[.,](?P<fraction>[0-9]{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)

#: Text with a longer number is refused: no program waits so long, and the conversion would be slow.
_MOST_DIGITS: Final = 19


def parse_duration(text: str) -> timedelta:
    """Returns the duration of a text such as `PT1H`, `P2DT3H4M` or `PT0.5S`.

    Digits of a fraction after the sixth are dropped. Raises ValueError for other text, and for a
    duration of more than 999,999,999 days.
    """
    from datetime import timedelta  # here, because few programs parse a duration

    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError("no ISO-8601 duration")
    numbers = found.groupdict()
    parts = {name: numbers[name] for name in ("days", "hours", "minutes", "seconds")}
    if not any(parts.values()) or any(
        len(each or "") > _MOST_DIGITS + 1 for each in parts.values()
    ):
        raise ValueError("no ISO-8601 duration")
    micros = int((numbers["fraction"] or "").ljust(6, "0")[:6])
    if (parts["seconds"] or "").startswith("-"):
        micros = -micros
    try:
        total = timedelta(microseconds=micros) + timedelta(
            **{name: int(number or 0) for name, number in parts.items()}
        )
        return -total if numbers["sign"] == "-" else total
    except OverflowError:
        raise ValueError("the duration is too long") from None
