"""Looks up the API versions that a release of Kafka supports, if brokers cannot report them.

Brokers before 0.10 close a connection that sends ApiVersions (KIP-35), so the user must configure
their release. The versions are in `schema.release_table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from ..messages.api_versions_request import ApiVersionsRequest
from ..messages.produce_request import ProduceRequest
from ..protocol.negotiation import ApiRange
from ..wire.errors import ConfigurationError

__all__ = [
    "MAGIC_OF_BATCHES",
    "common_ranges",
    "has_api_versions",
    "magic_of_release",
    "message_magic",
    "resolve_release",
    "version_ranges_of",
]

#: The magic of record batches, the newest record format (KIP-98).
MAGIC_OF_BATCHES: Final = 2

#: The lowest version of Produce that accepts a record format, and the magic of the format, newest
#: first (KIP-32, KIP-98). Below v3, Produce accepts only message sets.
_MAGICS: Final = ((3, MAGIC_OF_BATCHES), (2, 1), (0, 0))


@cache
def resolve_release(name: str) -> str:
    """Returns the newest release that `name` covers: 0.9.0.1 for "0.9".

    Raises ConfigurationError if there is none.
    """
    from ..schema import release_table  # few clients need this table
    from ..schema.unknown_names import nearest

    known = release_table.releases()
    found = [each for each in known if each == name or each.startswith(f"{name}.")]
    if not name or not found:
        near = ", ".join(nearest(name, known)) or f"{known[0]} to {known[-1]}"
        raise ConfigurationError(f"broker_version {name!r} is no release of Kafka; known: {near}")
    return found[-1]


@cache
def version_ranges_of(name: str) -> Mapping[int, ApiRange]:
    """Returns the API versions of a release, by API key.

    Raises ConfigurationError if `name` is not a release of Kafka.
    """
    from ..schema import release_table

    ranges = release_table.ranges(resolve_release(name)).values()
    return {
        each.api_key: ApiRange(each.versions.lowest, each.versions.highest)
        for each in ranges
        if each.versions.highest is not None
    }


def has_api_versions(name: str | None) -> bool:
    """Returns True if brokers of a release answer ApiVersions, or if `name` is None (unknown)."""
    return name is None or ApiVersionsRequest.API_KEY in version_ranges_of(name)


def common_ranges(
    one: Mapping[int, ApiRange], other: Mapping[int, ApiRange]
) -> dict[int, ApiRange]:
    """Returns the versions that both mappings have in common, by API key."""
    found = {
        key: ApiRange(max(one[key].lowest, its.lowest), min(one[key].highest, its.highest))
        for key, its in other.items()
        if key in one
    }
    return {key: each for key, each in found.items() if each.lowest <= each.highest}


def magic_of_release(name: str | None) -> int:
    """Returns the magic of the record format of a Kafka release.

    If `name` is None, returns the newest magic.
    """
    if name is None:
        return MAGIC_OF_BATCHES
    return message_magic(version_ranges_of(name)[ProduceRequest.API_KEY].highest)


def message_magic(highest_produce: int) -> int:
    """Returns the highest magic that a broker stores, by its highest version of Produce."""
    return next((magic for version, magic in _MAGICS if highest_produce >= version), 0)
