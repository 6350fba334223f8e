"""`TopicAdmin` without `await`.

`python -m tools.sync` writes this module from `kproto/client/admin/topic_admin.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...client.admin.admin import Admin
from ...client.admin.topic_changes import CreatedTopic, NewPartitions, TopicKey
from ...client.admin.topic_descriptions import TopicDescription, TopicListing
from ...client.admin.topics import NewTopic
from ...client.metadata.cluster import TopicPartition
from ..wrapper import Wrapper

__all__ = ["TopicAdmin"]


class TopicAdmin(Wrapper[Admin]):
    """Creates, deletes, lists and describes topics, adds partitions, and deletes records."""

    __slots__ = ()

    def create_topics(
        self,
        topics: Iterable[str | NewTopic],
        *,
        timeout_ms: int | None = None,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
    ) -> dict[str, CreatedTopic]:
        """Creates topics; returns the created topics by name.

        A topic given by name alone gets the broker's defaults (Kafka 2.4 or later). With
        `validate_only` the controller only checks the request. Without `retry_on_quota_violation` a
        creation beyond the quota (KIP-599) fails at once. Raises AdminError by name. If an attempt
        was not answered, and the retry finds the topic, the topic is in `errors` and in `unknown`,
        because another client may have created it.
        """
        return self._call(
            self._wrapped.create_topics,
            topics,
            timeout_ms=timeout_ms,
            validate_only=validate_only,
            retry_on_quota_violation=retry_on_quota_violation,
        )

    def delete_topics(
        self,
        topics: Iterable[TopicKey],
        *,
        retry_on_quota_violation: bool = True,
        timeout_ms: int | None = None,
    ) -> None:
        """Deletes topics, each by name or by id (a `Uuid`; Kafka 2.8 or later, KIP-516).

        `retry_on_quota_violation` is as in `create_topics`. Raises AdminError by name or id.
        """
        self._call(
            self._wrapped.delete_topics,
            topics,
            retry_on_quota_violation=retry_on_quota_violation,
            timeout_ms=timeout_ms,
        )

    def list_topics(
        self, *, list_internal: bool = False, timeout_ms: int | None = None
    ) -> dict[str, TopicListing]:
        """Returns the topics that the principal may describe, by name.

        Leaves out internal topics, such as `__consumer_offsets`, unless `list_internal` is set.
        """
        return self._call(
            self._wrapped.list_topics, list_internal=list_internal, timeout_ms=timeout_ms
        )

    def describe_topics(
        self,
        topics: Iterable[TopicKey],
        *,
        include_authorized_operations: bool = False,
        partition_size_limit_per_response: int = 2000,
        timeout_ms: int | None = None,
    ) -> dict[TopicKey, TopicDescription]:
        """Returns topics with their partitions; each topic is requested by name or by id.

        Topics by name come from DescribeTopicPartitions (Kafka 3.8, KIP-966), in pages of
        `partition_size_limit_per_response` partitions, at most 2,000; at older brokers, and for
        topics by id (Kafka 3.1), from Metadata. Raises AdminError by name or id.
        """
        return self._call(
            self._wrapped.describe_topics,
            topics,
            include_authorized_operations=include_authorized_operations,
            partition_size_limit_per_response=partition_size_limit_per_response,
            timeout_ms=timeout_ms,
        )

    def create_partitions(
        self,
        new_partitions: Mapping[str, int | NewPartitions],
        *,
        timeout_ms: int | None = None,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
    ) -> None:
        """Adds partitions to topics: `new_partitions` has the new total number by topic name.

        `retry_on_quota_violation` is as in `create_topics`. Raises AdminError by topic name. If an
        attempt was not answered, and the retry finds the number in place (INVALID_PARTITIONS), the
        topic is in `unknown`.
        """
        self._call(
            self._wrapped.create_partitions,
            new_partitions,
            timeout_ms=timeout_ms,
            validate_only=validate_only,
            retry_on_quota_violation=retry_on_quota_violation,
        )

    def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Deletes the records before an offset of each partition; returns the new log starts.

        The offset -1 stands for the high watermark. Raises AdminError by partition, for example
        with OFFSET_OUT_OF_RANGE, or POLICY_VIOLATION for a compacted topic.
        """
        return self._call(self._wrapped.delete_records, offsets, timeout_ms=timeout_ms)
