"""Checks of what is set by a user: the one wording for a number that cannot work.

Knows no setting; whoever has some says their names and bounds, best as a table.
"""

from __future__ import annotations

from collections.abc import Mapping

from .errors import ConfigurationError

__all__ = ["check_least", "check_whole_number"]


def check_whole_number(name: str, value: object, least: int, most: int | None = None) -> None:
    """Refuse a setting that is no whole number from `least` to `most`; True and False are none.

    Raises ConfigurationError, which begins with the setting's name and what it is.
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
    """`check_whole_number` for the attributes of `settings`, each with the least that works."""
    for name, bound in least.items():
        check_whole_number(name, getattr(settings, name), bound)
