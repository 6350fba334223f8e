"""Decides which requests are sent again after their connection was lost. Plain data."""

from __future__ import annotations

from typing import Final

from ...messages.base import Message
from ...wire.errors import BrokerConnectionError

__all__ = ["REPEATABLE", "may_resend"]

#: Requests that only read, by the names of their classes: a broker may process them twice. Not
#: Fetch, because a fetch session counts its requests (KIP-227).
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
    """True if the broker cannot have processed a request, or the request only reads.

    A read is sent again only if the broker closed an idle connection, and may not have seen it.
    """
    return error.never_written or (error.woke and request._generated().__name__ in REPEATABLE)
