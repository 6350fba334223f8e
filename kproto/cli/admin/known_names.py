"""Checks names of the command line that a broker would ignore if they were wrong."""

from __future__ import annotations

from collections.abc import Iterable

from ...wire.errors import ConfigurationError

__all__ = ["known_names"]


def known_names(option: str, given: Iterable[str], known: Iterable[str]) -> list[str]:
    """Returns the known names that are `given` in any case.

    Raises ConfigurationError for another name; the error lists the known names.
    """
    by_lower = {name.lower(): name for name in known}
    for each in given:
        if each.lower() not in by_lower:
            raise ConfigurationError(f"{option} {each}: use one of {', '.join(by_lower.values())}")
    return [by_lower[each.lower()] for each in given]
