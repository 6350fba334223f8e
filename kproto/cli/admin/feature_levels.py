"""Names the levels of metadata.version, and tells which levels of features a release has.

Source: `MetadataVersion` and `Feature` of kafka-server-common 4.4.0; the levels of metadata.version
below 7 are those of 3.9.2, because Kafka 4 has dropped them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ...wire.errors import ConfigurationError

__all__ = [
    "METADATA_VERSION",
    "METADATA_VERSIONS",
    "level_of",
    "level_text",
    "levels_of_release",
    "required_levels",
]

METADATA_VERSION: Final = "metadata.version"

#: The names of the levels of metadata.version, from level 1 on; the last is that of Kafka 4.4.
METADATA_VERSIONS: Final = (
    *("3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0"),
    *("3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1"),
    *("3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2"),
    *("4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0", "4.4-IV0", "4.4-IV1"),
    "4.4-IV2",
)

#: The levels of the other features, each with the level of metadata.version from which on it is
#: the level of a new cluster.
_DEFAULTS: Final[Mapping[str, Mapping[int, int]]] = MappingProxyType(
    {
        "eligible.leader.replicas.version": {26: 1},
        "group.version": {22: 1},
        "kraft.version": {21: 1},
        "share.version": {28: 1, 31: 2},
        "streams.version": {29: 1},
        "transaction.version": {24: 2},
    }
)

#: The levels that a level of a feature requires; all other levels require none.
_REQUIRED: Final[Mapping[tuple[str, int], Mapping[str, int]]] = MappingProxyType(
    {("eligible.leader.replicas.version", 1): {METADATA_VERSION: 23}}
)


def level_text(feature: str, level: int | None) -> str | None:
    """Returns the name of a level of metadata.version; None for other features and levels."""
    if feature != METADATA_VERSION or level is None or not 0 < level <= len(METADATA_VERSIONS):
        return None
    return METADATA_VERSIONS[level - 1]


def level_of(feature: str, text: str) -> int:
    """Returns the level that `text` stands for: a number, or the name of a metadata.version.

    A release, such as `4.1`, stands for its last metadata.version. Raises ConfigurationError for
    other text.
    """
    if text.isascii() and text.isdigit():
        return int(text)
    if feature != METADATA_VERSION:
        raise ConfigurationError(f"{feature}={text}: the level must be a number")
    named = [
        level
        for level, name in enumerate(METADATA_VERSIONS, 1)
        if text in (name, name.partition("-")[0])
    ]
    if not named:
        known = ", ".join(METADATA_VERSIONS)
        raise ConfigurationError(f"{text} is no {METADATA_VERSION}: use a level, or one of {known}")
    return named[-1]


def levels_of_release(release: str) -> dict[str, int]:
    """Returns the levels of all features in a new cluster of a release, such as `4.1` or `4.1-IV0`.

    Raises ConfigurationError for an unknown release.
    """
    if release.isdigit():
        raise ConfigurationError(f"--release-version {release}: write a release, such as 4.1")
    metadata = level_of(METADATA_VERSION, release)
    levels = {METADATA_VERSION: metadata}
    for name, defaults in _DEFAULTS.items():
        levels[name] = max((to for since, to in defaults.items() if since <= metadata), default=0)
    return levels


def required_levels(feature: str, level: int) -> Mapping[str, int]:
    """Returns the levels of other features that a level of a feature requires.

    Raises ConfigurationError for a feature or a level that Kafka 4.4 does not have.
    """
    if feature == METADATA_VERSION:
        highest = len(METADATA_VERSIONS)
    elif feature in _DEFAULTS:
        highest = max(_DEFAULTS[feature].values())
    else:
        known = ", ".join(sorted([METADATA_VERSION, *_DEFAULTS]))
        raise ConfigurationError(f"{feature!r:.80} is no feature of Kafka 4.4; it has {known}")
    if level > highest:
        raise ConfigurationError(f"{feature} has no level {level}; its highest is {highest}")
    return _REQUIRED.get((feature, level), {})
