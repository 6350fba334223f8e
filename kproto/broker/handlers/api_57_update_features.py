"""UpdateFeatures (57), v0 to v2.

v0      raises the finalized levels of features (KIP-584)
v1      safe and unsafe downgrades, validate only (KIP-778)
v2      no results of single features (KIP-1022)

If one update is invalid, no feature is changed. A new level of transaction.version applies to the
next transactions. With group.version 0, the consumer protocol is not enabled. The request requires
ALTER on the cluster.

Left out: the effect of the other features; dependencies between features; the timeout of the
request.
"""

from __future__ import annotations

from typing import Final

from ...messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from ...messages.update_features_response import (
    UpdatableFeatureResult,
    UpdatableFeatureResultCollection,
    UpdateFeaturesResponse,
)
from ...wire.errors import BrokerResponseError
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..features import FeatureUpdate, UpgradeType
from ..registry import handles

_FIRST_VERSION_OF_UPGRADE_TYPES: Final = 1
_LAST_VERSION_OF_RESULTS: Final = 1


@handles(UpdateFeaturesRequest, versions=range(3))
def update_features(
    context: Context, request: UpdateFeaturesRequest, version: int
) -> UpdateFeaturesResponse:
    """Updates the finalized levels of features."""
    updates = [_update(it, version) for it in request.feature_updates]
    try:
        check_cluster(context, Operation.ALTER)
        context.cluster.update_features(updates, validate_only=request.validate_only)
    except BrokerResponseError as error:
        return UpdateFeaturesResponse(error_code=error.code, error_message=error.detail)
    response = UpdateFeaturesResponse(error_message=None)
    if version <= _LAST_VERSION_OF_RESULTS:
        response.results = UpdatableFeatureResultCollection(
            [UpdatableFeatureResult(feature=it.name, error_message=None) for it in updates]
        )
    return response


def _update(requested: FeatureUpdateKey, version: int) -> FeatureUpdate:
    """Returns an update of a request; v0 cannot downgrade, as in Kafka 4."""
    upgrade_type = requested.upgrade_type
    if version < _FIRST_VERSION_OF_UPGRADE_TYPES:
        upgrade_type = UpgradeType.UPGRADE
    return FeatureUpdate(requested.feature, requested.max_version_level, upgrade_type)
