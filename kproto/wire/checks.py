"""Checks numeric settings, and words the error for a number that cannot work.

Knows no setting; the caller passes names and bounds, best as a table.
"""

from __future__ import annotations

from collections.abc import Mapping

from .errors import ConfigurationError

__all__ = ["check_least", "check_whole_number"]


def check_whole_number(name: str, value: object, least: int, most: int | None = None) -> None:
    """Checks that a setting is a whole number from `least` to `most`; bools are refused.

    Raises ConfigurationError, which begins with the setting's name and its value.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < least
        or (most is not None and value > most)
    ):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ConfigurationError(f"{name} is {value!r}; it must be a whole number {bounds}")


def check_least(settings: object, least: Mapping[str, int]) -> None:
    """Checks each attribute of `settings` in `least` with `check_whole_number`."""
    for name, bound in least.items():
        check_whole_number(name, getattr(settings, name), bound)
