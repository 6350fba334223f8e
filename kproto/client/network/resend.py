"""Which requests go out again by themselves, once their connection was lost. Plain data."""

from __future__ import annotations

from typing import Final

from ...messages.base import Message
from ...wire.errors import BrokerConnectionError

__all__ = ["REPEATABLE", "may_resend"]

#: Requests that only ask, so that a broker may be asked twice, by the names of their classes. Not
#: Fetch: with a session the broker counts them (KIP-227).
REPEATABLE: Final = frozenset(
    (
        "ApiVersionsRequest",
        "ConsumerGroupDescribeRequest",
        "DescribeAclsRequest",
        "DescribeClientQuotasRequest",
        "DescribeClusterRequest",
        "DescribeConfigsRequest",
        "DescribeDelegationTokenRequest",
        "DescribeGroupsRequest",
        "DescribeLogDirsRequest",
        "DescribeProducersRequest",
        "DescribeQuorumRequest",
        "DescribeShareGroupOffsetsRequest",
        "DescribeTopicPartitionsRequest",
        "DescribeTransactionsRequest",
        "DescribeUserScramCredentialsRequest",
        "FindCoordinatorRequest",
        "ListConfigResourcesRequest",
        "ListGroupsRequest",
        "ListOffsetsRequest",
        "ListPartitionReassignmentsRequest",
        "ListTransactionsRequest",
        "MetadataRequest",
        "OffsetFetchRequest",
        "OffsetForLeaderEpochRequest",
        "ShareGroupDescribeRequest",
        "StreamsGroupDescribeRequest",
    )
)


def may_resend(request: type[Message], error: BrokerConnectionError) -> bool:
    """True where the broker cannot have acted on a request, or it only asks.

    The latter where the broker closed after a silence, and may not have seen it at all.
    """
    return error.never_written or (error.woke and request._generated().__name__ in REPEATABLE)
