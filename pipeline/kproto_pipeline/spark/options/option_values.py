"""How the text of one option is read: a truth value, a number, a duration. Knows no option."""

from __future__ import annotations

import re
from typing import Final

from .errors import OptionError

__all__ = ["boolean", "duration_ms", "filled", "positive", "whole_number"]

_MAX_INT32: Final = 2**31 - 1
_MAX_INT64: Final = 2**63 - 1

#: The units of Spark's durations; without one it is milliseconds.
_MS_OF: Final = {
    "": 1.0,
    "us": 0.001,
    "ms": 1.0,
    "s": 1_000.0,
    "m": 60_000.0,
    "min": 60_000.0,
    "h": 3_600_000.0,
    "d": 86_400_000.0,
}
_DURATION: Final = re.compile(r"([0-9]{1,15})\s*([a-z]*)", re.ASCII)


def boolean(name: str, text: str) -> bool:
    """`true` or `false`, in any case. Raises OptionError."""
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise OptionError(f"option {name} is {text!r}; it must be true or false")


def whole_number(name: str, text: str, least: int, most: int) -> int:
    """Decimal digits. Raises OptionError."""
    digits = text.strip()
    if digits.isascii() and digits.isdigit() and len(digits) < 20 and least <= int(digits) <= most:
        return int(digits)
    raise OptionError(
        f"option {name} is {text!r}; it must be a whole number from {least} to {most}"
    )


def positive(name: str, text: str) -> int:
    """A whole number from 1 to 2**63 - 1. Raises OptionError."""
    return whole_number(name, text, 1, _MAX_INT64)


def duration_ms(name: str, text: str) -> int:
    """Milliseconds of a duration as Spark writes it: `15m`, `500ms`, `20 s`. Raises OptionError."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None or found[2] not in _MS_OF:
        raise OptionError(
            f"option {name} is {text!r}; it must be a duration such as 15m, 20s or 500ms"
        )
    return round(int(found[1]) * _MS_OF[found[2]])


def filled(name: str, text: str) -> str:
    """Text that is not empty. Raises OptionError."""
    if not text.strip():
        raise OptionError(f"option {name} is empty")
    return text.strip()
