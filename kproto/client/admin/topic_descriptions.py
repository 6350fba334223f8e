"""Lists and describes topics: requests and results as plain data.

Metadata (3) and DescribeTopicPartitions (75, KIP-966).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from ...messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from ...messages.describe_topic_partitions_response import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
)
from ...messages.metadata_request import MetadataRequest, MetadataRequestTopic
from ...messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ...wire.errors import KprotoError
from ...wire.uuid import Uuid
from .acl_types import AclOperation, authorized_operations
from .calls import PartCall, error_in
from .topic_changes import TopicKey

__all__ = [
    "PartitionDescription",
    "TopicDescription",
    "TopicListing",
    "TopicPages",
    "describe_by_metadata_call",
]


class TopicListing(NamedTuple):
    """A topic of the cluster. `topic_id` is all zeros before Kafka 2.8."""

    name: str
    topic_id: Uuid
    is_internal: bool


class PartitionDescription(NamedTuple):
    """A partition; leader and replicas are node ids. `leader` is -1 if there is none.

    `eligible_leaders` and `last_known_eligible_leaders` (KIP-966) are None if the broker does not
    send them.
    """

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]
    eligible_leaders: tuple[int, ...] | None = None
    last_known_eligible_leaders: tuple[int, ...] | None = None


class TopicDescription(NamedTuple):
    """A topic with its partitions by number.

    `authorized_operations` is None if it was not requested, or before Kafka 2.3 (KIP-430).
    """

    name: str
    topic_id: Uuid
    is_internal: bool
    partitions: dict[int, PartitionDescription]
    authorized_operations: frozenset[AclOperation] | None


class TopicPages:
    """Collects the topics of the pages of DescribeTopicPartitions.

    `names` are requested in order, because the broker sorts them; a page has at most `page_size`
    partitions. `next_request` is None after the last page.
    """

    def __init__(self, names: Iterable[str], page_size: int, *, operations: bool) -> None:
        self._names = sorted(names)
        self._page_size = page_size
        self._has_operations = operations
        self.topics: dict[str, TopicDescription | KprotoError] = {}
        self.next_request: DescribeTopicPartitionsRequest | None = self._request(None)

    def _request(self, cursor: tuple[str, int] | None) -> DescribeTopicPartitionsRequest:
        first = "" if cursor is None else cursor[0]
        return DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in self._names if name >= first],
            response_partition_limit=self._page_size,
            cursor=None
            if cursor is None
            else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        )

    def add(self, response: DescribeTopicPartitionsResponse) -> None:
        """Adds the topics of a page; the first topic may continue that of the page before."""
        for topic in response.topics:
            name = topic.name or ""
            error = error_in(topic.error_code, f"describing topic {name!r}")
            if error is not None:
                self.topics[name] = error
                continue
            partitions = {each.partition_index: _partition(each) for each in topic.partitions}
            before = self.topics.get(name)
            if isinstance(before, TopicDescription):
                before.partitions.update(partitions)
            else:
                bits = topic.topic_authorized_operations
                self.topics[name] = TopicDescription(
                    name,
                    topic.topic_id,
                    topic.is_internal,
                    partitions,
                    authorized_operations(bits) if self._has_operations else None,
                )
        after = response.next_cursor
        if after is None:
            self.next_request = None
        else:
            self.next_request = self._request((after.topic_name, after.partition_index))


def describe_by_metadata_call(*, operations: bool) -> PartCall[TopicKey, TopicDescription]:
    """Returns the call that describes topics by Metadata, each by name or by id (v12)."""

    def build(
        topics: Sequence[TopicKey], left_ms: int, *, may_create: bool = False
    ) -> MetadataRequest:
        return MetadataRequest(
            topics=[
                MetadataRequestTopic(name=None, topic_id=each)
                if isinstance(each, Uuid)
                else MetadataRequestTopic(name=each)
                for each in topics
            ],
            allow_auto_topic_creation=may_create,
            include_topic_authorized_operations=operations,
        )

    # Brokers before Kafka 0.11 have no flag against the creation of missing topics.
    build_older = partial(build, may_create=True)

    def read(
        response: MetadataResponse, topics: Sequence[TopicKey]
    ) -> dict[TopicKey, TopicDescription | KprotoError]:
        found: dict[TopicKey, TopicDescription | KprotoError] = {}
        for each in response.topics:
            key = each.topic_id if each.topic_id in topics else (each.name or "")
            error = error_in(each.error_code, f"describing topic {str(key)!r}")
            found[key] = _topic(each) if error is None else error
        return found

    return PartCall("describing topics", build, read, build_older=build_older, awaits_topics=True)


def _topic(topic: MetadataResponseTopic) -> TopicDescription:
    return TopicDescription(
        topic.name or "",
        topic.topic_id,
        topic.is_internal,
        {each.partition_index: _partition(each) for each in topic.partitions},
        authorized_operations(topic.topic_authorized_operations),
    )


def _partition(
    each: MetadataResponsePartition | DescribeTopicPartitionsResponsePartition,
) -> PartitionDescription:
    eligible = getattr(each, "eligible_leader_replicas", None)
    last_known = getattr(each, "last_known_elr", None)
    return PartitionDescription(
        each.partition_index,
        each.leader_id,
        each.leader_epoch,
        tuple(each.replica_nodes),
        tuple(each.isr_nodes),
        tuple(each.offline_replicas),
        None if eligible is None else tuple(eligible),
        None if last_known is None else tuple(last_known),
    )
