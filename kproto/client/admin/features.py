"""Describes and updates features: requests and results as plain data.

ApiVersions (18) and UpdateFeatures (57, KIP-584, KIP-778).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from ...messages.api_versions_response import ApiVersionsResponse
from ...messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from ...messages.update_features_response import UpdateFeaturesResponse
from ...wire.errors import ConfigurationError, KprotoError
from .calls import PartCall, error_in, outcome

__all__ = [
    "FeatureMetadata",
    "FeatureUpdate",
    "FeatureVersions",
    "UpgradeType",
    "described_features",
    "update_features_call",
]


class UpgradeType(IntEnum):
    """The changes of a feature that an update allows (KIP-778)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """The new version level of a feature; the level 0 disables the feature."""

    max_version_level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


class FeatureVersions(NamedTuple):
    """The lowest and the highest version of a feature."""

    lowest: int
    highest: int


class FeatureMetadata(NamedTuple):
    """The features of a cluster, by name.

    `finalized` has the version levels of the cluster, and `supported` the versions that the broker
    supports. `finalized_epoch` is None if the broker does not know it.
    """

    finalized: dict[str, FeatureVersions]
    finalized_epoch: int | None
    supported: dict[str, FeatureVersions]


def described_features(response: ApiVersionsResponse) -> FeatureMetadata | KprotoError:
    """Returns the features in a response, or its error."""
    found = FeatureMetadata(
        {
            each.name: FeatureVersions(each.min_version_level, each.max_version_level)
            for each in response.finalized_features
        },
        response.finalized_features_epoch if response.finalized_features_epoch >= 0 else None,
        {
            each.name: FeatureVersions(each.min_version, each.max_version)
            for each in response.supported_features
        },
    )
    return outcome(response.error_code, "describing features", None, found)


def update_features_call(
    updates: Mapping[str, FeatureUpdate], *, validate_only: bool
) -> PartCall[str, None]:
    """Returns the call that updates features, by name.

    Raises ConfigurationError for an update that is no FeatureUpdate, such as a number.
    """
    for feature, update in updates.items():
        if not isinstance(update, FeatureUpdate):
            raise ConfigurationError(
                f"updates[{feature!r}] is {update!r:.80}: pass FeatureUpdate(max_version_level)"
            )

    def build(names: Sequence[str], left_ms: int) -> UpdateFeaturesRequest:
        return UpdateFeaturesRequest(
            timeout_ms=left_ms,
            feature_updates=[
                FeatureUpdateKey(
                    feature=name,
                    max_version_level=updates[name].max_version_level,
                    upgrade_type=updates[name].upgrade_type,
                )
                for name in names
            ],
            validate_only=validate_only,
        )

    def read(
        response: UpdateFeaturesResponse, names: Sequence[str]
    ) -> dict[str, KprotoError | None]:
        action = "updating feature"
        of_each = {each.feature: each for each in response.results}
        found: dict[str, KprotoError | None] = {}
        for name in names:
            # From v2 on all updates are made or none, and the response has one error.
            its = of_each.get(name)
            code, message = response.error_code, response.error_message
            if not code and its is not None:
                code, message = its.error_code, its.error_message
            found[name] = error_in(code, f"{action} {name!r}", message)
        return found

    return PartCall("updating features", build, read, changes=not validate_only)
