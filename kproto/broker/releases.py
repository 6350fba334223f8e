"""Which versions a broker of some release takes: Kafka's table of releases, as data for a registry.

`BrokerSettings.release` names a release, or gives ranges of versions itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from ..schema.nearest import UnknownNameError
from ..schema.release_table import newest_release, ranges, release_number
from ..wire.errors import ConfigurationError

__all__ = ["Release", "advertised_versions", "check_release", "supported_versions"]

#: A release, or the versions by api key.
Release: TypeAlias = str | Mapping[int, range]

_PRODUCE: Final = 0
#: From this release on there are clusters without ZooKeeper that one would use; brokers of before
#: answer what the table has for those beside ZooKeeper.
_FIRST_WITHOUT_ZOOKEEPER: Final = "3.3.0"
_BESIDE_ZOOKEEPER: Final = frozenset({"broker", "zkBroker"})
_ALONE: Final = frozenset({"broker"})


def check_release(release: Release | None) -> None:
    """Raises ConfigurationError for a release that there is none of, and for what is no range."""
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
    """The versions that brokers of a release take, by api key; what is not there, they do not."""
    if not isinstance(release, str):
        return release
    named = newest_release(release)
    old = release_number(named) < release_number(_FIRST_WITHOUT_ZOOKEEPER)
    listeners = _BESIDE_ZOOKEEPER if old else _ALONE
    found = {}
    for key, its in ranges(named).items():
        versions = its.versions if unstable else its.stable
        if versions and (not its.listeners or listeners & set(its.listeners)):
            found[key] = range(versions.lowest, versions.highest + 1)
    return found


def advertised_versions(release: Release | None, taken: Mapping[int, range]) -> dict[int, range]:
    """What ApiVersions lists of what is taken.

    Since 4.0 Kafka lists Produce from v0 on, which it takes no more, for clients that would not
    send snappy otherwise (KAFKA-18659).
    """
    listed = dict(taken)
    if isinstance(release, str) and _PRODUCE in listed:
        listed[_PRODUCE] = range(listed[_PRODUCE].stop)
    return listed
