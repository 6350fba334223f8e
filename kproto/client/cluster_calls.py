"""`ClusterCalls`: the calls of a client that need no producer or consumer.

The modules that build a request are imported when a program makes the call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from ..messages.base import Request, Response
from ..wire.errors import ConfigurationError
from .fetch.fetch_options import FETCH_BYTES
from .metadata.checks import checked_mapping, checked_topic, checked_tp
from .metadata.cluster_view import ClusterView

if TYPE_CHECKING:
    from ..wire.uuid import Uuid
    from .admin.admin import Admin
    from .admin.topics import NewTopic
    from .commits.offset_requests import CommittedOffset
    from .fetch.fetch_requests import FetchedPartition
    from .fetch.list_offsets import OffsetSpec
    from .metadata.cluster import Cluster, TopicInfo, TopicPartition
    from .metadata.request_router import BrokerAnswer
    from .network.connection import BrokerConnection
    from .producer.transactions.open_transaction import OpenTransaction

__all__ = ["ClusterCalls"]

R = TypeVar("R", bound=Response)
T = TypeVar("T")


class ClusterCalls:
    """Sends requests to the cluster; `Client` inherits these methods.

    They are for metadata, topics, offsets, transactions and any request of Kafka's protocol.
    """

    _view: ClusterView

    # The cluster

    @property
    def cluster(self) -> Cluster:
        """The brokers and topics of the latest metadata."""
        return self._view.cluster

    @cached_property
    def admin(self) -> Admin:
        """The operations of Kafka's Admin interface; see `Admin`."""
        from .admin.admin import Admin  # few clients need it
        from .admin.requester import AdminRequester

        return Admin(AdminRequester(self._view))

    @property
    def message_format(self) -> int:
        """The newest record format that all connected brokers accept, as the magic of batches.

        2 has headers. Brokers before Kafka 0.11 accept 1, and brokers before 0.10 accept 0; both
        lack headers. Before the first connection, the value follows from `broker_version`, and is
        2 if `broker_version` is not set.
        """
        return self._view.message_magic

    def metrics(self) -> dict[str, Any]:
        """Returns the metrics of this client, as data that JSON can express.

        Counts start when the client is created; the documentation lists all metrics with units.
        """
        nodes = {str(address): node for node, address in self.cluster.brokers.items()}
        return self._view.observer.metrics(nodes)

    async def request(
        self,
        request: Request[R],
        *,
        broker: int | None = None,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> R:
        """Sends any request of Kafka's protocol; returns the response, with its error codes.

        The request is sent to the broker with node id `broker`. Without `broker` the request type
        determines the brokers: leaders, coordinators, the controller, any broker, or every broker.
        A request for several brokers is split, its parts are sent concurrently, and the responses
        are merged in the order of the request. `version` is by default negotiated with each broker.
        `timeout_ms` is the time for each response, by default `request_timeout_ms`.

        Raises ConfigurationError if the request type requires `broker`, EncodeError if the version
        cannot express the request, UnsupportedVersionError, BrokerConnectionError and
        RequestTimeoutError. With several brokers, the call raises the first error after all brokers
        have answered; a note on the error names its broker.
        """
        return await self._view.request(
            request, broker=broker, version=version, timeout_ms=timeout_ms
        )

    async def request_by_broker(
        self,
        request: Request[R],
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> list[BrokerAnswer[R]]:
        """Sends a request as `request` does; returns the response or the error of each broker.

        Raises an error only if the brokers cannot be determined.
        """
        return await self._view.request_by_broker(request, version=version, timeout_ms=timeout_ms)

    async def connection(self, broker: int | None = None) -> BrokerConnection:
        """Returns the connection to the broker with node id `broker`, or by default to any broker.

        Raises ConfigurationError if no metadata of the cluster has named such a broker so far, and
        BrokerConnectionError if the broker cannot be reached.
        """
        return await self._view.connection(broker)

    async def refresh(self, topics: Iterable[str] | None = None) -> list[TopicInfo]:
        """Requests metadata of `topics`, or of all topics if `topics` is None.

        Returns the topics, with their error codes. The request creates no topics, except at brokers
        before Kafka 0.11. The request also refreshes the brokers; if `topics` is empty, it
        refreshes only the brokers. Raises ConfigurationError if `topics` is no iterable of names,
        for example if `topics` is a single name.
        """
        if topics is not None:
            if isinstance(topics, str | bytes | Mapping) or not isinstance(topics, Iterable):
                raise ConfigurationError(f"topics is {topics!r:.80}; pass a list of names")
            topics = [checked_topic(name) for name in topics]
        return await self._view.refresh(topics)

    async def topic(self, name: str) -> TopicInfo:
        """Returns a topic and its partitions; requests the metadata if it is missing or too old.

        Raises BrokerResponseError if the topic does not exist. An unknown topic is requested again
        for `unknown_topic_wait_ms`, because the topic may just have been created. After a lost
        connection, the request is retried for `api_timeout_ms`. Raises ConfigurationError if `name`
        is no str.
        """
        checked_topic(name)
        return await self._view.retrying(lambda: self._view.topic(name), responses=False)

    async def retrying(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Calls `operation` until it succeeds, for up to `api_timeout_ms`; returns its result.

        The operation is retried after lost connections, timeouts and the error codes that Kafka
        calls retriable. Any other error is raised at once. No retry starts after the deadline. An
        attempt that still runs at the deadline is cancelled, but a retry always has at least 0.1 s.
        After the deadline the call raises the error of the last failed attempt, or
        RequestTimeoutError if no attempt has failed. A broker may process the operation twice, if
        the response to the first attempt was lost.
        """
        return await self._view.retrying(operation)

    # Topics and offsets

    async def create_topics(
        self, *topics: str | NewTopic, timeout_ms: int = 30_000, validate_only: bool = False
    ) -> None:
        """Creates topics; a topic given by name alone gets the broker's defaults.

        The broker waits up to `timeout_ms` until the topics are created. With `validate_only` the
        broker only checks the request, and creates no topic. Raises BrokerResponseError for the
        first topic that was refused; other topics may have been created. Raises
        UnsupportedVersionError if a topic needs defaults of a broker before Kafka 2.4, which has
        none for the numbers of partitions and replicas.
        """
        from .admin.client_topics import create_topics

        await create_topics(self._view, topics, timeout_ms, validate_only=validate_only)

    async def delete_topics(self, *names: str, timeout_ms: int = 30_000) -> None:
        """Deletes topics; the broker waits up to `timeout_ms` until they are deleted.

        Raises BrokerResponseError for the first topic that was not deleted.
        """
        from .admin.client_topics import delete_topics

        await delete_topics(self._view, names, timeout_ms)

    async def list_offsets(
        self,
        partitions: Mapping[TopicPartition, OffsetSpec],
        *,
        read_committed: bool = False,
    ) -> dict[TopicPartition, int]:
        """Returns the offsets of partitions: the log start, the log end, or an offset by time.

        `partitions` maps a partition to "earliest" for its log start, "latest" for its log end, or
        a time in ms since 1970. For a time, the result is the offset of the first record with a
        timestamp at or after this time; -1 if there is no such record. The end is the high
        watermark, or with `read_committed` the last stable offset. Retries for `api_timeout_ms`.
        Raises BrokerResponseError.
        """
        from .fetch.list_offsets import list_offsets

        wanted = {checked_tp(tp): its for tp, its in checked_mapping("offsets", partitions).items()}
        return await list_offsets(self._view, wanted, read_committed=read_committed)

    async def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        *,
        topic_ids: Mapping[TopicPartition, Uuid] | None = None,
    ) -> None:
        """Commits offsets for a group without members, as Kafka's admin client does (KIP-396).

        `offsets` maps partitions to the offset of the next record to be read; an offset may be a
        `CommittedOffset` with metadata. `topic_ids` are the ids that the topics had when the caller
        determined the offsets. By default, the client
        requests metadata, and takes the topic ids from the response. Retries for `api_timeout_ms`.
        Raises BrokerResponseError for the first error, such as UNKNOWN_MEMBER_ID for a group that
        has members, and ConfigurationError for invalid partitions and offsets.
        """
        from .commits.group_offsets import commit_group_offsets
        from .commits.offset_requests import checked_commits

        commits = checked_commits(checked_mapping("offsets", offsets))
        await commit_group_offsets(self._view, group, commits, topic_ids)

    async def committed_offsets(self, group: str) -> dict[TopicPartition, CommittedOffset]:
        """Returns all committed offsets of a group, also of a group without members.

        While a transaction that commits offsets of the group is open, and for other retriable
        errors, the request is retried for `api_timeout_ms`. Raises BrokerResponseError.
        """
        from .commits.group_offsets import all_committed_offsets

        return await all_committed_offsets(self._view, group)

    async def end_transaction(self, transaction: OpenTransaction, *, committed: bool) -> None:
        """Commits or aborts a transaction that `Transaction.leave_open` has left open.

        Any process can make the call, also again with the same arguments, until a new producer with
        the transactional id starts. Retries for `api_timeout_ms`.

        Raises ProducerFencedError if a new producer with the transactional id has started, or if
        brokers have aborted the transaction after its timeout. Raises TransactionAbortedError if
        the coordinator has refused to commit the transaction, which is then aborted. Raises
        FatalTransactionError for other errors; it is then unknown whether the transaction is
        committed if the text says so.
        """
        from .producer.transactions.open_transaction import end_transaction

        self._view.loop_guard.check()
        await end_transaction(self._view, transaction, committed=committed)

    async def fetch(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        max_bytes: int = FETCH_BYTES,
        min_bytes: int = 1,
        max_wait_ms: int = 500,
        read_committed: bool = False,
    ) -> FetchedPartition:
        """Fetches the batches of one partition from `offset` on, as the broker stores them.

        The broker waits up to `max_wait_ms` for `min_bytes`. The first batch may start before
        `offset`, and is complete even if it is larger than `max_bytes`; the last batch may be
        incomplete. Brokers before 0.10.1 cut a first message that is larger than `max_bytes`; in
        this case the call raises ConfigurationError. The client sends one request; `retrying` can
        retry it. Raises BrokerResponseError for an error code, such as OFFSET_OUT_OF_RANGE.
        """
        from .fetch.single_fetch import fetch_partition

        return await fetch_partition(
            self._view,
            topic,
            partition,
            offset,
            max_bytes=max_bytes,
            min_bytes=min_bytes,
            max_wait_ms=max_wait_ms,
            read_committed=read_committed,
        )
