"""Tests which version a client and a broker negotiate for a request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.messages import (
    ApiVersionsResponse,
    FetchRequest,
    InitProducerIdRequest,
    MetadataRequest,
    ProduceRequest,
)
from kproto.messages.api_versions_response import ApiVersion
from kproto.protocol.negotiation import (
    UNSUPPORTED_VERSION,
    ApiRange,
    broker_ranges,
    fallback_version,
    negotiate,
)
from kproto.wire.errors import UnsupportedVersionError

UNSTABLE = 6
"""InitProducerId v6 is marked as unstable in 4.4.0."""


@pytest.mark.parametrize(
    ("lowest", "highest", "chosen"),
    [(0, 13, 13), (0, 12, 12), (0, 99, 13), (5, 5, 5), (13, 20, 13), (0, 0, 0)],
)
def test_the_highest_that_both_speak(lowest: int, highest: int, chosen: int) -> None:
    assert negotiate(MetadataRequest, {3: ApiRange(lowest, highest)}) == chosen


@given(
    lowest=st.integers(0, 30),
    width=st.integers(0, 30),
    at_most=st.none() | st.integers(0, 30),
)
def test_chosen_version_is_in_both_ranges(lowest: int, width: int, at_most: int | None) -> None:
    theirs = range(lowest, lowest + width + 1)
    ours = FetchRequest.VALID_VERSIONS
    common = [version for version in ours if version in theirs]
    if at_most is not None:
        common = [version for version in common if version <= at_most]
    offered = {FetchRequest.API_KEY: ApiRange(theirs.start, theirs.stop - 1)}
    if common:
        assert negotiate(FetchRequest, offered, at_most=at_most) == max(common)
    else:
        with pytest.raises(UnsupportedVersionError):
            negotiate(FetchRequest, offered, at_most=at_most)


def test_an_unstable_version_only_when_asked_for() -> None:
    offered = {InitProducerIdRequest.API_KEY: ApiRange(0, UNSTABLE)}
    assert negotiate(InitProducerIdRequest, offered) == UNSTABLE - 1
    assert negotiate(InitProducerIdRequest, offered, unstable=True) == UNSTABLE
    assert negotiate(InitProducerIdRequest, offered, unstable=True, at_most=3) == 3
    only = {InitProducerIdRequest.API_KEY: ApiRange(UNSTABLE, UNSTABLE)}
    with pytest.raises(UnsupportedVersionError):
        negotiate(InitProducerIdRequest, only)


def test_a_bound_is_kept() -> None:
    assert negotiate(ProduceRequest, {0: ApiRange(0, 13)}, at_most=12) == 12
    assert negotiate(ProduceRequest, {0: ApiRange(0, 13)}, at_most=20) == 13


def test_no_overlap_names_both_ranges() -> None:
    words = (
        "MetadataRequest: the broker supports versions 14 to 20, and the client versions 0 to 13"
    )
    with pytest.raises(UnsupportedVersionError, match=words):
        negotiate(MetadataRequest, {3: ApiRange(14, 20)})


def test_a_range_that_is_none() -> None:
    with pytest.raises(UnsupportedVersionError):
        negotiate(MetadataRequest, {3: ApiRange(5, 4)})


def test_an_api_that_the_broker_does_not_offer() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"MetadataRequest: .* not offer api key 3"):
        negotiate(MetadataRequest, {0: ApiRange(0, 13)})


def answer(*keys: tuple[int, int, int]) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=UNSUPPORTED_VERSION,
        api_keys=[
            ApiVersion(api_key=k, min_version=low, max_version=high) for k, low, high in keys
        ],
    )


def test_ranges_by_api_key() -> None:
    assert broker_ranges(answer((0, 3, 13), (18, 0, 4))) == {0: (3, 13), 18: (0, 4)}


@pytest.mark.parametrize(
    ("told", "version"),
    [
        (answer((18, 0, 4)), 4),
        (answer((3, 0, 12), (18, 0, 2)), 2),
        (answer((18, 0, 99)), ApiVersionsResponse.LATEST_STABLE),
        (answer((18, 0, -1)), 0),
        (answer(), 0),
        (answer((3, 0, 12)), 0),
    ],
)
def test_the_version_to_ask_again_with(told: ApiVersionsResponse, version: int) -> None:
    assert fallback_version(told) == version
