"""Checks that numeric settings are whole numbers within the bounds that the caller passes."""

from __future__ import annotations

from collections.abc import Mapping

from .errors import ConfigurationError

__all__ = ["check_bool", "check_least", "check_whole_number"]


def check_bool(name: str, value: object) -> None:
    """Raises ConfigurationError unless a setting is True or False."""
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} is {value!r:.80}; it is True or False")


def check_whole_number(name: str, value: object, least: int, most: int | None = None) -> None:
    """Raises ConfigurationError unless a setting is an int (not a bool) from `least` to `most`.

    Without `most` there is no upper bound. The error begins with the setting's name and value.
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
    """Raises ConfigurationError if an attribute of `settings` is no int, or is too low.

    `least` maps the name of each attribute to check to the lowest valid value of this attribute.
    """
    for name, bound in least.items():
        check_whole_number(name, getattr(settings, name), bound)
