"""Holds a configured property, and resolves several properties for one setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from ..wire.errors import ConfigurationError

__all__ = ["ConfiguredByRow", "ConfiguredProperty", "resolve_synonyms"]


class ConfiguredProperty(NamedTuple):
    """Holds the name of a configured property, and its parsed value."""

    property: str
    value: Any

    def __repr__(self) -> str:
        return f"ConfiguredProperty({self.property})"  # the value may be a secret


#: Configured properties by `Row.name`, for the rows with the same `Row.part`.
ConfiguredByRow: TypeAlias = Mapping[str, ConfiguredProperty]


def resolve_synonyms(all_given: Iterable[ConfiguredProperty | None]) -> ConfiguredProperty | None:
    """Returns the configured property among several properties that set the same setting.

    `all_given` has None for each property that is not configured. If several are configured,
    returns the first; if none is configured, returns None. Raises ConfigurationError if two values
    differ; the error names both properties and no value.
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
