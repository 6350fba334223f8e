"""Reads times and durations from the command line."""

from __future__ import annotations

import argparse
import re
from typing import Final

from ..wire.errors import ConfigurationError

__all__ = ["duration_ms", "moment_ms", "moment_of"]

#: Milliseconds of each unit.
_UNITS: Final = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}

_PART: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>ms|min|[smhdw])\s*", re.ASCII)

#: The shortest text of digits that is a time in ms; shorter text may be a date, such as 20260131.
_LEAST_EPOCH_DIGITS: Final = 9

#: The least number that is a time in ms, in 1973: smaller numbers are seconds of the years to 5138.
_LEAST_EPOCH_MS: Final = 100_000_000_000

#: The largest number that is a time in ms, in the year 9999.
_MOST_EPOCH_MS: Final = 253_402_300_799_999


def duration_ms(text: str) -> int:
    """Returns a duration such as `90s`, `10m` or `1h30m` in ms.

    Raises ArgumentTypeError for other text.
    """
    if not _is_duration(text.strip()):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no duration: write a number and ms, s, m, h, d or w, such as 90s or 1h30m"
        )
    return round(sum(float(part["number"]) * _UNITS[part["unit"]] for part in _PART.finditer(text)))


def moment_ms(text: str, now_ms: int) -> int:
    """Returns a time in ms since 1970.

    `text` is ISO 8601 (UTC, unless it has an offset), ms since 1970, or a duration before
    `now_ms`, such as `10m`, `-10m` or `10m ago`. Raises ArgumentTypeError for other text, and for
    numbers that are most likely seconds or microseconds: before 1973-03-03, or after 9999.
    """
    plain = text.strip()
    if plain.isascii() and plain.isdigit() and len(plain) >= _LEAST_EPOCH_DIGITS:
        return _epoch_ms(int(plain), text)
    duration = plain.removesuffix("ago").strip().removeprefix("-")
    if _is_duration(duration):
        moment_before = now_ms - duration_ms(duration)
        if moment_before < 0:
            raise argparse.ArgumentTypeError(f"{text!r} is a time before 1970")
        return moment_before
    from datetime import UTC, datetime  # here, because most commands need no time

    try:
        moment = datetime.fromisoformat(plain)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time: write ISO 8601 (2026-01-31T09:00:00Z), ms since 1970, or a "
            "duration before now (10m)"
        ) from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    found = round(aware.timestamp() * 1000)
    if found < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is a time before 1970")
    return found


def _epoch_ms(number: int, text: str) -> int:
    """Returns a number of ms; raises ArgumentTypeError for a number in another unit."""
    if number < _LEAST_EPOCH_MS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is a time in 1970 to 1973 as ms; for seconds since 1970 write {number}000, "
            "for an early time ISO 8601 (1970-01-31T09:00:00Z)"
        )
    if number > _MOST_EPOCH_MS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is a time after the year 9999 as ms since 1970; for microseconds leave out "
            "the last 3 digits, for nanoseconds the last 6"
        )
    return number


def moment_of(name: str, text: str) -> int:
    """Returns the time in the argument `name`, in ms. Raises ConfigurationError for other text."""
    from ..clock import SYSTEM_CLOCK  # here, because it loads asyncio

    try:
        return moment_ms(text, SYSTEM_CLOCK.now_ms())
    except argparse.ArgumentTypeError as error:
        raise ConfigurationError(f"{name}: {error}") from None


def _is_duration(text: str) -> bool:
    return bool(text) and not _PART.sub("", text)
