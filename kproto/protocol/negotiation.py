"""Negotiates the version of an API between two sides.

The functions need only the version ranges of both sides, and no connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from ..messages.api_versions_response import ApiVersionsResponse
from ..messages.base import Request, Response
from ..wire.errors import UnsupportedVersionError

__all__ = ["UNSUPPORTED_VERSION", "ApiRange", "broker_ranges", "fallback_version", "negotiate"]

R = TypeVar("R", bound=Response)

#: The error code of a request in a version that the broker does not support.
UNSUPPORTED_VERSION: Final = 35


class ApiRange(NamedTuple):
    """Holds the lowest and the highest version of an API that a broker supports."""

    lowest: int
    highest: int


def broker_ranges(response: ApiVersionsResponse) -> dict[int, ApiRange]:
    """Returns the version ranges in a broker's ApiVersions response, by api key."""
    return {key.api_key: _range(key.min_version, key.max_version) for key in response.api_keys}


#: Returns a cached ApiRange, because most of the hundred APIs share a few ranges.
_range: Final = lru_cache(maxsize=256)(ApiRange)


def negotiate(
    request: type[Request[R]],
    ranges: Mapping[int, ApiRange],
    *,
    unstable: bool = False,
    at_most: int | None = None,
) -> int:
    """Returns the highest version of `request` that kproto and the broker support.

    Ignores versions above `at_most`. Also ignores versions that the definitions mark as unstable,
    if `unstable` is False. Raises UnsupportedVersionError if no version is left, or if `ranges`,
    the ranges of the broker by api key, lacks the API.
    """
    name = request.__name__
    broker_range = ranges.get(request.API_KEY)
    if broker_range is None:
        raise UnsupportedVersionError(
            f"{name}: the broker does not offer api key {request.API_KEY} on this listener"
        )
    client_range = request.VALID_VERSIONS
    highest = client_range.stop - 1 if unstable else request.LATEST_STABLE
    if at_most is not None:
        highest = min(highest, at_most)
    chosen = min(highest, broker_range.highest)
    if chosen < max(client_range.start, broker_range.lowest):
        raise UnsupportedVersionError(
            f"{name}: the broker supports versions {broker_range.lowest} to "
            f"{broker_range.highest}, and the client versions {client_range.start} to {highest}"
        )
    return chosen


def fallback_version(answer: ApiVersionsResponse) -> int:
    """Returns the version for a second ApiVersions request, after error 35 (KIP-511).

    `answer` is the response with error 35, which has the layout of v0. Usually it has the versions
    of ApiVersions that the broker supports. If a broker sends a malformed response without these
    versions, the result is v0, which every broker supports.
    """
    broker_range = broker_ranges(answer).get(ApiVersionsResponse.API_KEY)
    if broker_range is None:
        return 0
    return max(0, min(broker_range.highest, ApiVersionsResponse.LATEST_STABLE))
