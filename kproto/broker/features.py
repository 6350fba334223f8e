"""Holds the finalized features of a cluster, and applies UpdateFeatures (KIP-584, KIP-1022).

The features and levels are those of Kafka 4.4.0. Of the features, transaction.version,
group.version and share.version have an effect. streams.version is left out: as a broker of Kafka
before 4.2, this broker neither serves nor lists StreamsGroupHeartbeat, and Kafka's brokers list no
feature whose only production level is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from .api_error import api_error
from .settings import BrokerSettings

__all__ = [
    "FEATURES",
    "GROUP_VERSION",
    "SHARE_VERSION",
    "TRANSACTION_VERSION",
    "FeatureManager",
    "FeatureUpdate",
    "UpgradeType",
    "initial_levels",
]

TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
SHARE_VERSION: Final = "share.version"
_METADATA_VERSION: Final = "metadata.version"


class Feature(NamedTuple):
    """Describes a feature: the supported levels, and the level of a new cluster."""

    least: int
    most: int
    default: int


#: The features by name.
FEATURES: Final[Mapping[str, Feature]] = MappingProxyType(
    {
        "eligible.leader.replicas.version": Feature(0, 1, 1),
        GROUP_VERSION: Feature(0, 1, 1),
        "kraft.version": Feature(0, 1, 0),
        _METADATA_VERSION: Feature(7, 33, 33),
        SHARE_VERSION: Feature(0, 2, 2),
        TRANSACTION_VERSION: Feature(0, 2, 2),
    }
)


def initial_levels(settings: BrokerSettings) -> dict[str, int]:
    """Returns the levels of the features in a new cluster of the release of `settings`.

    Before Kafka 4.4, only transaction.version can be finalized.
    """
    levels = {}
    if settings.has_all_features:
        levels = {name: feature.default for name, feature in FEATURES.items()}
    return {**levels, TRANSACTION_VERSION: settings.transaction_version_level}


class UpgradeType:
    """Names the upgrade types of UpdateFeatures."""

    UPGRADE: Final = 1
    SAFE_DOWNGRADE: Final = 2
    UNSAFE_DOWNGRADE: Final = 3


class FeatureUpdate(NamedTuple):
    """Holds an update of a feature to a level, with its `UpgradeType`."""

    name: str
    level: int
    upgrade_type: int


class FeatureManager:
    """Holds the finalized level of each feature; `levels` are those of a new cluster."""

    def __init__(self, levels: Mapping[str, int]) -> None:
        self.levels = dict(levels)
        #: Rises with each update.
        self.epoch = 1

    @property
    def finalized(self) -> dict[str, int]:
        """Returns the levels of the features that are finalized: those above 0."""
        return {name: level for name, level in self.levels.items() if level > 0}

    def updated(self, updates: Iterable[FeatureUpdate], controller: int) -> dict[str, int]:
        """Returns the levels after `updates`, without storing them.

        Raises INVALID_UPDATE_VERSION with Kafka's message for the first invalid update.
        """
        levels = dict(self.levels)
        for update in updates:
            fault = self._fault(update, controller)
            if fault:
                raise api_error(
                    "INVALID_UPDATE_VERSION",
                    "The update failed for all features since the following feature had an error: "
                    + fault,
                )
            levels[update.name] = update.level
        return levels

    def replace(self, levels: Mapping[str, int]) -> None:
        """Stores new levels."""
        if levels != self.levels:
            self.levels = dict(levels)
            self.epoch += 1

    def _fault(self, update: FeatureUpdate, controller: int) -> str:
        """Returns why Kafka refuses an update; empty for a valid update."""
        name, level, upgrade_type = update
        start = f"Invalid update version {level} for feature {name}. "
        if upgrade_type not in (
            UpgradeType.UPGRADE,
            UpgradeType.SAFE_DOWNGRADE,
            UpgradeType.UNSAFE_DOWNGRADE,
        ):
            return f"{start}The controller does not support the given upgrade type."
        if level < 0:
            return f"{start}A feature version cannot be less than 0."
        feature = FEATURES.get(name)
        if feature is None:
            return f"{start}Local controller {controller} does not support this feature."
        if not feature.least <= level <= feature.most:
            return (
                f"{start}Local controller {controller} only supports versions "
                f"{feature.least}-{feature.most}"
            )
        current = self.levels.get(name, 0)
        if level < current:
            if upgrade_type == UpgradeType.UPGRADE:
                return (
                    f"{start}Can't downgrade the version of this feature without setting the "
                    "upgrade type to either safe or unsafe downgrade."
                )
            if name == _METADATA_VERSION:
                return (
                    f"Unsupported metadata.version downgrade from {current} to {level}. Refusing "
                    "to perform the requested downgrade because it might delete metadata "
                    "information."
                )
        return ""
