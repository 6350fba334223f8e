"""Determines the API versions that a broker of a Kafka release supports.

`BrokerSettings.release` is the name of a release, or a mapping of version ranges by API key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from ..schema.release_table import newest_release, ranges, release_number
from ..schema.unknown_names import UnknownNameError
from ..wire.errors import ConfigurationError

__all__ = ["Release", "advertised_versions", "check_release", "is_before", "supported_versions"]

#: The name of a release, or its version ranges by API key.
Release: TypeAlias = str | Mapping[int, range]

_PRODUCE: Final = 0
#: The first release for which the versions of KRaft brokers apply. For older releases, the versions
#: of brokers with ZooKeeper apply.
_FIRST_WITHOUT_ZOOKEEPER: Final = "3.3.0"
_LISTENERS_WITH_ZOOKEEPER: Final = frozenset({"broker", "zkBroker"})
_LISTENERS_WITH_KRAFT: Final = frozenset({"broker"})


def check_release(release: Release | None) -> None:
    """Raises ConfigurationError for an unknown release, or for an invalid version range."""
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
                    f"release: the versions of api key {key} are {versions!r}; give a range that"
                    " is not empty, such as range(0, 4)"
                )


def supported_versions(release: Release, *, unstable: bool = False) -> Mapping[int, range]:
    """Returns the versions that brokers of a release support, by API key.

    If `release` is a mapping, returns it unchanged. If `unstable` is set, also returns versions
    that are unstable in the release.
    """
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


def is_before(release: Release | None, first: str) -> bool:
    """Returns True if `release` is the name of a release before the release `first`."""
    return isinstance(release, str) and release_number(newest_release(release)) < release_number(
        first
    )


def advertised_versions(
    release: Release | None, implemented: Mapping[int, range]
) -> dict[int, range]:
    """Returns the versions that ApiVersions lists; `implemented` has the supported versions.

    If `release` is a str, Produce is listed from v0 on. Kafka 4.0 and later do not support v0 to
    v2. They list these versions because librdkafka would otherwise send batches without compression
    (KAFKA-18659).
    """
    listed = dict(implemented)
    if isinstance(release, str) and _PRODUCE in listed:
        listed[_PRODUCE] = range(listed[_PRODUCE].stop)
    return listed
