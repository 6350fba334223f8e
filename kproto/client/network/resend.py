"""Decides which requests are sent again after their connection was lost. Does no I/O."""

from __future__ import annotations

from typing import Final

from ...messages.base import Message
from ...wire.errors import BrokerConnectionError

__all__ = ["REPEATABLE", "may_resend"]

#: Requests that only read, by the names of their classes: a broker may process them twice. Fetch is
#: not among them, because a fetch session numbers its requests (KIP-227).
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
    """Returns True if a request may be sent again after its connection was lost.

    A request may be sent again if none of its bytes was written. A request that only reads may also
    be sent again if the broker closed an idle connection: the broker may have missed the request.
    """
    return error.never_written or (error.was_idle and request._generated().__name__ in REPEATABLE)
