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

Left out: features other than transaction.version.
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
from ..registry import handles

_LEGAL_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FIRST_VERSION_OF_SOFTWARE: Final = 3
_UNKNOWN_NODE: Final = -1
_FIRST_VERSION_OF_LEVEL_0: Final = 4
_TRANSACTION_VERSION: Final = "transaction.version"
_HIGHEST_LEVEL: Final = 2
#: The epoch of the finalized features, which is constant because the features never change.
_FEATURES_EPOCH: Final = 1


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
    _add_features(response, context.settings.transaction_version_level, version)
    return response


def _add_features(response: ApiVersionsResponse, level: int, version: int) -> None:
    """Adds the feature transaction.version (KIP-890), if it is finalized.

    A response of v3 lists no supported features, because clients of v3 take a lowest supported
    level of 0 as an error.
    """
    if level == 0:
        return
    if version >= _FIRST_VERSION_OF_LEVEL_0:
        response.supported_features = SupportedFeatureKeyCollection(
            [SupportedFeatureKey(name=_TRANSACTION_VERSION, max_version=_HIGHEST_LEVEL)]
        )
    response.finalized_features_epoch = _FEATURES_EPOCH
    response.finalized_features = FinalizedFeatureKeyCollection(
        [
            FinalizedFeatureKey(
                name=_TRANSACTION_VERSION, max_version_level=level, min_version_level=level
            )
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
