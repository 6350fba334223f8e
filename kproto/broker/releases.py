"""The API versions that a broker of each Kafka release supports.

`BrokerSettings.release` is the name of a release, or ranges of versions by API key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from ..schema.release_table import newest_release, ranges, release_number
from ..schema.unknown_names import UnknownNameError
from ..wire.errors import ConfigurationError

__all__ = ["Release", "advertised_versions", "check_release", "supported_versions"]

#: A release, or the versions by API key.
Release: TypeAlias = str | Mapping[int, range]

_PRODUCE: Final = 0
#: Clusters of this release and later run in KRaft mode; for older releases, the table's versions of
#: brokers with ZooKeeper count.
_FIRST_WITHOUT_ZOOKEEPER: Final = "3.3.0"
_LISTENERS_WITH_ZOOKEEPER: Final = frozenset({"broker", "zkBroker"})
_LISTENERS_WITH_KRAFT: Final = frozenset({"broker"})


def check_release(release: Release | None) -> None:
    """Raises ConfigurationError for an unknown release, or for invalid ranges of versions."""
    if isinstance(release, str):
        try:
            newest_release(release)
        except UnknownNameError as error:
            raise ConfigurationError(f"release: {error}") from None
    elif release is not None:
        for key, versions in release.items():
            whole: object = versions
            if not isinstance(whole, range) or whole.step != 1 or whole.start < 0 or not whole:
                raise ConfigurationError(
                    f"release: the versions of api key {key} are {versions!r}; give a range with"
                    " something in it, such as range(0, 4)"
                )


def supported_versions(release: Release, *, unstable: bool = False) -> Mapping[int, range]:
    """Returns the versions that brokers of a release support, by API key."""
    if not isinstance(release, str):
        return release
    newest = newest_release(release)
    uses_zookeeper = release_number(newest) < release_number(_FIRST_WITHOUT_ZOOKEEPER)
    listeners = _LISTENERS_WITH_ZOOKEEPER if uses_zookeeper else _LISTENERS_WITH_KRAFT
    found = {}
    for key, api in ranges(newest).items():
        versions = api.versions if unstable else api.stable
        if versions and (not api.listeners or listeners & set(api.listeners)):
            found[key] = range(versions.lowest, versions.highest + 1)
    return found


def advertised_versions(
    release: Release | None, implemented: Mapping[int, range]
) -> dict[int, range]:
    """Returns the versions that ApiVersions lists, given the supported versions.

    Since 4.0 Kafka lists Produce from v0 on although it does not support the oldest versions, for
    clients that would not send snappy otherwise (KAFKA-18659).
    """
    listed = dict(implemented)
    if isinstance(release, str) and _PRODUCE in listed:
        listed[_PRODUCE] = range(listed[_PRODUCE].stop)
    return listed
