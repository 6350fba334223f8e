"""Which version of an API two sides speak. Plain functions on plain ranges."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from ..messages.api_versions_response import ApiVersionsResponse
from ..messages.base import Request, Response
from ..wire.errors import UnsupportedVersionError

__all__ = ["UNSUPPORTED_VERSION", "ApiRange", "broker_ranges", "fallback_version", "negotiate"]

R = TypeVar("R", bound=Response)

#: The error code of a request in a version that the broker does not take.
UNSUPPORTED_VERSION: Final = 35


class ApiRange(NamedTuple):
    """The lowest and the highest version of an API that a broker takes."""

    lowest: int
    highest: int


def broker_ranges(response: ApiVersionsResponse) -> dict[int, ApiRange]:
    """What a broker said it takes, by api key."""
    return {key.api_key: _range(key.min_version, key.max_version) for key in response.api_keys}


#: Of a hundred APIs most share a few ranges.
_range: Final = lru_cache(maxsize=256)(ApiRange)


def negotiate(
    request: type[Request[R]],
    ranges: Mapping[int, ApiRange],
    *,
    unstable: bool = False,
    at_most: int | None = None,
) -> int:
    """Returns the highest version of `request` that the broker takes too.

    A version that the definitions mark as unstable is chosen only with `unstable`, one above
    `at_most` never. Raises UnsupportedVersionError, which names both ranges, when there is none.
    """
    name = request.__name__
    theirs = ranges.get(request.API_KEY)
    if theirs is None:
        raise UnsupportedVersionError(
            f"{name}: the broker does not offer api key {request.API_KEY} on this listener"
        )
    ours = request.VALID_VERSIONS
    highest = ours.stop - 1 if unstable else request.LATEST_STABLE
    if at_most is not None:
        highest = min(highest, at_most)
    chosen = min(highest, theirs.highest)
    if chosen < max(ours.start, theirs.lowest):
        raise UnsupportedVersionError(
            f"{name}: the broker takes versions {theirs.lowest} to {theirs.highest}, and versions "
            f"{ours.start} to {highest} may be asked for"
        )
    return chosen


def fallback_version(answer: ApiVersionsResponse) -> int:
    """Returns the version to ask again with, after ApiVersions was answered with error 35
    (KIP-511).

    Such an answer is in the form of v0 whatever was asked. A well-formed one names the versions
    of ApiVersions that the broker takes. Of any other, as some brokers send, nothing was read, so
    that it names none: v0 is asked then, which every broker takes.
    """
    theirs = broker_ranges(answer).get(ApiVersionsResponse.API_KEY)
    if theirs is None:
        return 0
    return max(0, min(theirs.highest, ApiVersionsResponse.LATEST_STABLE))
