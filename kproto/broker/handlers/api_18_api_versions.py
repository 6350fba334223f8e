"""ApiVersions (18), v0 to v5.

v0      keys and their version ranges (KIP-35)
v1      throttle time
v3      flexible, the client's name and version (KIP-511), features (KIP-584)
v5      the cluster id and node id that the client expects; a broker that has other ids returns
        REBOOTSTRAP_REQUIRED

An ApiVersions request in a version that the broker does not support gets UNSUPPORTED_VERSION in a
response that is encoded as v0. The response lists the versions of ApiVersions, so that the client
can retry with one of them (KIP-511). If the release of the broker has no v3, this response lists no
API.

Left out: features other than transaction.version of a release before 4.4.
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import Final

from ...messages.api_versions_request import ApiVersionsRequest
from ...messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    FinalizedFeatureKeyCollection,
    SupportedFeatureKey,
    SupportedFeatureKeyCollection,
)
from ...protocol.error_codes import code_of
from ..context import Context
from ..features import FEATURES
from ..registry import handles

_LEGAL_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FIRST_VERSION_OF_SOFTWARE: Final = 3
_UNKNOWN_NODE: Final = -1
_FIRST_VERSION_OF_LEVEL_0: Final = 4


def unsupported_api_versions(context: Context) -> ApiVersionsResponse:
    """Returns the response to a request of an unsupported version, to be encoded as v0."""
    key = ApiVersionsRequest.API_KEY
    if context.versions[key].stop <= _FIRST_VERSION_OF_SOFTWARE:
        return ApiVersionsResponse(error_code=code_of("UNSUPPORTED_VERSION"))
    return ApiVersionsResponse(
        error_code=code_of("UNSUPPORTED_VERSION"),
        api_keys=[_range(key, context.versions[key])],
    )


@handles(ApiVersionsRequest, versions=range(6), fallback=unsupported_api_versions)
def api_versions(
    context: Context, request: ApiVersionsRequest, version: int
) -> ApiVersionsResponse:
    """Returns the supported APIs with their versions."""
    error = _error(context, request, version)
    if error:
        return ApiVersionsResponse(error_code=code_of(error))
    response = ApiVersionsResponse(
        api_keys=[
            _range(key, versions)
            for key, versions in sorted(context.versions.items(), key=itemgetter(0))
        ]
    )
    _add_features(response, context, version)
    return response


def _add_features(response: ApiVersionsResponse, context: Context, version: int) -> None:
    """Adds the features of the cluster, if any is finalized.

    A response of v3 omits features with a lowest supported level of 0, because clients of v3 take
    this level as an error.
    """
    features = context.cluster.features
    if not features.finalized:
        return
    response.supported_features = SupportedFeatureKeyCollection(
        [
            SupportedFeatureKey(
                name=name, min_version=FEATURES[name].least, max_version=FEATURES[name].most
            )
            for name in features.levels
            if FEATURES[name].least > 0 or version >= _FIRST_VERSION_OF_LEVEL_0
        ]
    )
    response.finalized_features_epoch = features.epoch
    response.finalized_features = FinalizedFeatureKeyCollection(
        [
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in features.finalized.items()
        ]
    )


def _range(api_key: int, versions: range) -> ApiVersion:
    return ApiVersion(api_key=api_key, min_version=versions.start, max_version=versions.stop - 1)


def _error(context: Context, request: ApiVersionsRequest, version: int) -> str | None:
    if version >= _FIRST_VERSION_OF_SOFTWARE:
        for text in (request.client_software_name, request.client_software_version):
            if not _LEGAL_SOFTWARE.fullmatch(text):
                return "INVALID_REQUEST"
    if (request.cluster_id is None) != (request.node_id == _UNKNOWN_NODE):
        return "INVALID_REQUEST"
    meant = (request.cluster_id, request.node_id)
    if meant not in ((None, _UNKNOWN_NODE), (context.cluster.cluster_id, context.node_id)):
        return "REBOOTSTRAP_REQUIRED"
    return None
