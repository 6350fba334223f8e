"""The calls of `Admin` for topics, partitions and records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError, KprotoError, UnsupportedVersionError
from ...wire.uuid import Uuid
from ..metadata.checks import checked_topic
from ..metadata.cluster import TopicPartition
from .area import AdminArea
from .arguments import checked_list, checked_map, checked_partitions
from .records import delete_records_call
from .topic_changes import (
    CreatedTopic,
    NewPartitions,
    TopicKey,
    create_partitions_call,
    create_topics_call,
    delete_topics_call,
)
from .topic_descriptions import (
    TopicDescription,
    TopicListing,
    TopicPages,
    describe_by_metadata_call,
)
from .topics import NewTopic, create_topics_request

__all__ = ["TopicAdmin"]


class TopicAdmin(AdminArea):
    """Creates, deletes, lists and describes topics, adds partitions, and deletes records."""

    async def create_topics(
        self,
        topics: Iterable[str | NewTopic],
        *,
        timeout_ms: int | None = None,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
    ) -> dict[str, CreatedTopic]:
        """Creates topics; returns the created topics by name.

        A topic given by name alone gets the broker's defaults (Kafka 2.4 or later). With
        `validate_only` the controller only checks the request. Without `retry_on_quota_violation`
        a creation beyond the quota (KIP-599) fails at once. Raises AdminError by name. If an
        attempt was not answered, and the retry finds the topic, the topic is in `errors` and in
        `unknown`, because another client may have created it.
        """
        wanted = checked_list("topics", topics) if isinstance(topics, str) else list(topics)
        create_topics_request(wanted, 0, validate_only=validate_only)  # checks the elements
        by_name = {
            each.name: each
            for each in (NewTopic(it) if isinstance(it, str) else it for it in wanted)
        }
        if len(by_name) < len(wanted):
            raise ConfigurationError("topics has a name twice; pass each topic once")
        call = replace(
            create_topics_call(by_name, validate_only=validate_only),
            retries_throttling=retry_on_quota_violation,
        )
        created = await self._requester.by_part(call, by_name, timeout_ms)
        if not validate_only:
            self._requester.view.topic_creation.add_existing(created)
        return created

    async def delete_topics(
        self,
        topics: Iterable[TopicKey],
        *,
        retry_on_quota_violation: bool = True,
        timeout_ms: int | None = None,
    ) -> None:
        """Deletes topics, each by name or by id (a `Uuid`; Kafka 2.8 or later, KIP-516).

        `retry_on_quota_violation` is as in `create_topics`. Raises AdminError by name or id.
        """
        wanted = checked_list("topics", topics)
        for each in wanted:
            if not isinstance(each, Uuid):
                checked_topic(each)
        try:
            call = replace(delete_topics_call(), retries_throttling=retry_on_quota_violation)
            await self._requester.by_part(call, wanted, timeout_ms)
        finally:
            view = self._requester.view
            names = [each for each in wanted if isinstance(each, str)]
            ids = [each for each in wanted if isinstance(each, Uuid)]
            names += [name for each in ids if (name := view.cluster.topic_name(each))]
            view.cluster.forget(names)
            view.topic_creation.remove_existing(names)

    async def list_topics(
        self, *, list_internal: bool = False, timeout_ms: int | None = None
    ) -> dict[str, TopicListing]:
        """Returns the topics that the principal may describe, by name.

        Leaves out internal topics, such as `__consumer_offsets`, unless `list_internal` is set.
        """
        view = self._requester.view
        found = await self._requester.within("listing topics", timeout_ms, view.refresh)
        return {
            each.name: TopicListing(each.name, each.topic_id, each.internal)
            for each in sorted(found, key=lambda each: each.name)
            if list_internal or not each.internal
        }

    async def describe_topics(
        self,
        topics: Iterable[TopicKey],
        *,
        include_authorized_operations: bool = False,
        partition_size_limit_per_response: int = 2_000,
        timeout_ms: int | None = None,
    ) -> dict[TopicKey, TopicDescription]:
        """Returns topics with their partitions; each topic is requested by name or by id.

        Topics by name come from DescribeTopicPartitions (Kafka 3.8, KIP-966), in pages of
        `partition_size_limit_per_response` partitions, at most 2,000; at older brokers, and for
        topics by id (Kafka 3.1), from Metadata. Raises AdminError by name or id.
        """
        check_whole_number(
            "partition_size_limit_per_response", partition_size_limit_per_response, 1
        )
        call = describe_by_metadata_call(operations=include_authorized_operations)

        async def send(
            parts: Sequence[TopicKey], left_ms: int
        ) -> dict[TopicKey, TopicDescription | KprotoError]:
            found: dict[TopicKey, TopicDescription | KprotoError] = {}
            rest = list(parts)
            names = [each for each in parts if isinstance(each, str)]
            pages = TopicPages(
                names,
                partition_size_limit_per_response,
                operations=include_authorized_operations,
            )
            if names and await self._read_pages(pages, left_ms):
                found |= {name: pages.topics[name] for name in names if name in pages.topics}
                rest = [each for each in parts if each not in found]
            if rest:
                found |= await self._requester.attempt(call, rest, left_ms)
            return found

        return await self._requester.run(call, send, checked_list("topics", topics), timeout_ms)

    async def _read_pages(self, pages: TopicPages, left_ms: int) -> bool:
        """Requests all pages; returns False if no broker supports DescribeTopicPartitions."""
        view = self._requester.view
        limit_ms = min(left_ms, view.settings.request_timeout_ms)
        while pages.next_request is not None:
            try:
                pages.add(await view.request(pages.next_request, timeout_ms=limit_ms))
            except UnsupportedVersionError:
                return False
        return True

    async def create_partitions(
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
        wanted = {}
        for name, each in checked_map("new_partitions", new_partitions).items():
            new = each if isinstance(each, NewPartitions) else NewPartitions(each)
            check_whole_number(f"the number of partitions of {name!r}", new.total_count, 1)
            wanted[checked_topic(name)] = new
        call = replace(
            create_partitions_call(wanted, validate_only=validate_only),
            retries_throttling=retry_on_quota_violation,
        )
        try:
            await self._requester.by_part(call, wanted, timeout_ms)
        finally:
            if not validate_only:
                self._requester.view.cluster.forget(wanted)

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Deletes the records before an offset of each partition; returns the new log starts.

        The offset -1 stands for the high watermark. Raises AdminError by partition, for example
        with OFFSET_OUT_OF_RANGE, or POLICY_VIOLATION for a compacted topic.
        """
        wanted = dict(checked_map("offsets", offsets))
        for tp in checked_partitions("offsets", wanted):
            check_whole_number(f"the offset of {tp!r}", wanted[tp], -1)
        return await self._requester.by_part(delete_records_call(wanted), wanted, timeout_ms)
