"""A property as it was given, and what several that set the same thing come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from ..wire.errors import ConfigurationError

__all__ = ["ConfiguredByRow", "ConfiguredProperty", "resolve_synonyms"]


class ConfiguredProperty(NamedTuple):
    """The property that was given, and its value as it was read."""

    property: str
    value: Any

    def __repr__(self) -> str:
        return f"Given({self.property})"  # the value may be a secret


#: What was given of one part of the table, by the names of its rows.
ConfiguredByRow: TypeAlias = Mapping[str, ConfiguredProperty]


def resolve_synonyms(all_given: Iterable[ConfiguredProperty | None]) -> ConfiguredProperty | None:
    """Returns the one that counts of those that set the same thing; None where none is given.

    Raises ConfigurationError, which names two of them and no value, where they differ.
    """
    first: ConfiguredProperty | None = None
    for each in all_given:
        if each is None:
            continue
        if first is None:
            first = each
        elif each.value != first.value:
            raise ConfigurationError(
                f"{first.property} and {each.property} set the same thing, and differ: leave one"
                " of them out"
            )
    return first
