"""Fetch (1), v0 to v18.

v0-v3   message sets, of magic 0 in v0 and v1, of magic 1 in v2 and v3; up to v2, a batch over the
        size limit is not returned; since v1 throttle time
v3      size limit of the whole response; the first batch is returned whatever its size (KIP-74)
v4      record batches, isolation level, aborted transactions, last stable offset (KIP-98)
v5      log start offset (KIP-107)
v7      fetch sessions (KIP-227)
v9      current leader epoch (KIP-320)
v10     the client supports zstd (KIP-110)
v11     rack of the consumer, preferred replica (KIP-392)
v12     flexible; last fetched epoch, diverging epoch (KIP-595)
v13     topics by id (KIP-516)
v15     replica state instead of replica id (KIP-903)
v16     the current leader and its endpoint, for leader errors (KIP-951)
v17-18  directory id and high watermark of a follower (KIP-853, KIP-1166)

From v11 on, consumers may fetch from followers. If `BrokerSettings.replica_selector` is set, the
leader may return a preferred replica in the rack of the consumer, without records. All replicas
share one log, so no follower lags.

As in Kafka, partitions that do not exist, or that the client may not read, come last in the
response. If at least one other partition can be read, the errors of these partitions do not end the
wait for `max_wait_ms`.

For v0-v3 batches are down-converted as in Kafka up to 3.9; Kafka 4.0 does not support these
versions. Headers are lost, and a batch compressed with zstd gets UNSUPPORTED_COMPRESSION_TYPE. v4
to v9 return zstd batches unchanged, as in Kafka 4. Before Kafka 4.0, each Fetch up to v9 of a topic
with compression.type=zstd gets UNSUPPORTED_COMPRESSION_TYPE, even without records (KIP-110). This
broker does so only if `BrokerSettings.release` is a release before 4.0.

With read_committed, a partition ends at its last stable offset, and the response lists the aborted
transactions of the returned records. Kafka may list more aborted transactions, up to the next entry
of an offset index.

Left out: replication by followers, because replicas share one log. Kafka cuts the last batch at the
size limit; this broker omits the last batch. Kafka fills up a response that down-conversion has
made shorter; this broker does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ...messages.fetch_request import FetchRequest
from ...messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from ...protocol.error_codes import code_of, error_of_code
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import allows_cluster, check
from ..authorizer import AUTHORIZATION_ERRORS, Operation, ResourceType
from ..context import Context
from ..fetch_sessions import CachedPartition, FetchContext
from ..registry import Decision, DelayedResponse, handles
from ..releases import is_before
from ..replica_selector import preferred_replica
from ..storage.fetch_limit import FetchLimit, diverging_epoch
from ..storage.leader_epoch_cache import UNKNOWN_EPOCH, EpochEnd
from ..storage.log import LogSlice, PartitionLog
from ..storage.partition import Partition
from ..throttle import limit_fetch_bytes
from ..topics import Topic

#: The magic of the message sets that old versions of Fetch return; later versions return batches.
_MAGIC_OF_MESSAGE_SETS: Final = {0: 0, 1: 0, 2: 1, 3: 1}
_FIRST_VERSION_OF_WHOLE_BATCHES: Final = 3
_FIRST_VERSION_OF_ZSTD: Final = 10
_FIRST_RELEASE_WITHOUT_CONVERSION: Final = "4.0.0"
_FIRST_VERSION_FROM_FOLLOWERS: Final = 11
_FIRST_VERSION_BY_ID: Final = 13
_FIRST_VERSION_OF_LEADERS: Final = 16

_READ_COMMITTED: Final = 1
_LEADER_ERRORS: Final = ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH")

_EMPTY_SLICE: Final = LogSlice([], 0)


@dataclass(slots=True, eq=False)
class PartitionRead:
    """Holds the result of reading one partition.

    The result is batches (`log_slice`), an error, a preferred replica or a diverging epoch.
    `partition` is None if the error was found before the log was read. `preferred` is the node id
    of the preferred read replica. `diverged` is the epoch and offset at which the client's log
    diverges.
    """

    cached: CachedPartition
    topic: Topic | None = None
    partition: Partition | None = None
    log_slice: LogSlice = _EMPTY_SLICE
    error: BrokerResponseError | None = None
    preferred: int | None = None
    diverged: EpochEnd | None = None

    @property
    def is_urgent(self) -> bool:
        """Returns True if there is an error, a preferred replica or a diverging epoch.

        An urgent result is sent at once, without a wait for `max_wait_ms`.
        """
        return not (self.error is None and self.preferred is None and self.diverged is None)

    @property
    def has_nothing(self) -> bool:
        """Returns True if the partition was read without an error, and there is nothing to send."""
        return self.partition is not None and not self.log_slice.batches and not self.is_urgent


class FetchOperation:
    """Executes one Fetch: finds its partitions once, and reads them each time `read` is called.

    `refused` are the partitions that do not exist or that the client may not read.
    """

    def __init__(
        self, context: Context, request: FetchRequest, version: int, fetch_context: FetchContext
    ) -> None:
        self.context = context
        self.request = request
        self.version = version
        self.fetch_context = fetch_context
        #: Whether partitions of topics with compression.type=zstd get an error.
        self.refuses_zstd = version < _FIRST_VERSION_OF_ZSTD and is_before(
            context.settings.release, _FIRST_RELEASE_WITHOUT_CONVERSION
        )
        self._node_id = context.node_id
        self.is_read_committed = request.isolation_level == _READ_COMMITTED
        self.is_from_follower = request.replica_id >= 0 or request.replica_state.replica_id >= 0
        #: The topics, each with partitions that follow each other in the request or session.
        self.topics: list[tuple[Topic, list[CachedPartition]]] = []
        self.refused: list[PartitionRead] = []
        #: How many bytes of records Kafka would have returned for the latest read.
        self.readable = 0
        #: The logs of the partitions that the latest read has left out.
        self.unchanged_logs: list[PartitionLog] = []
        self._may_leave_out = (
            fetch_context.is_incremental
            and not self.refuses_zstd
            and not self.is_from_follower
            and context.settings.replica_selector is None
        )
        topic: Topic | None = None
        before: CachedPartition | None = None  # the partition for which `topic` was found
        its: list[CachedPartition] = []
        for cached in fetch_context.partitions:
            try:
                if topic is None or before is None or not cached.has_topic_of(before):
                    topic, before = self._find(cached), cached
                    its = []
                    self.topics.append((topic, its))
                if not 0 <= cached.requested.partition < len(topic.partitions):
                    topic.partition(cached.requested.partition)
            except BrokerResponseError as error:
                self.refused.append(PartitionRead(cached, error=error))
            else:
                its.append(cached)

    def _find(self, cached: CachedPartition) -> Topic:
        """Returns the topic of a partition.

        Raises BrokerResponseError if the client may not read the topic, or if it does not exist.
        For a topic name, the authorization error does not reveal whether the topic
        exists.
        """
        topics = self.context.cluster.topics
        found: Topic | None = None
        name = cached.name or cached.topic
        if not name:
            found = topics.with_id(cached.topic_id)
            name = cached.name = found.name
        if not self.is_from_follower:
            check(self.context, Operation.READ, ResourceType.TOPIC, name)
        elif not allows_cluster(self.context, Operation.CLUSTER_ACTION):
            raise api_error(
                AUTHORIZATION_ERRORS[ResourceType.TOPIC], "followers are brokers of the cluster"
            )
        return topics.named(name) if found is None else found

    def read(self) -> list[PartitionRead]:
        """Reads all partitions in `topics`, within the size limits of request, broker and quota.

        Leaves out partitions of a fetch session that the response need not include; their logs are
        then in `unchanged_logs`.
        """
        self.context.transaction_coordinator.advance(self.context.now)
        limit = FetchLimit(
            self._max_bytes(), at_least_one=self.version >= _FIRST_VERSION_OF_WHOLE_BATCHES
        )
        now_ms = self.context.clock.now_ms()
        read: list[PartitionRead] = []
        unchanged = self.unchanged_logs = []
        for topic, its in self.topics:
            leaves_out = self._may_leave_out and its and self._is_unchanged(its[0], topic)
            for cached in its:
                log = self._unchanged_log(cached, topic, now_ms) if leaves_out else None
                if log is None:
                    read.append(self._read(cached, topic, limit, now_ms))
                else:
                    unchanged.append(log)
        self.readable = limit.readable
        return read

    def _is_unchanged(self, cached: CachedPartition, topic: Topic) -> bool:
        """Returns False if `_check_topic_unchanged` may raise an error for the topic."""
        return (
            self.context.refuse is None
            and self.context.cluster.topics.get(topic.name) is topic
            and (bool(cached.topic) or topic.topic_id == cached.topic_id)
        )

    def _unchanged_log(
        self, cached: CachedPartition, topic: Topic, now_ms: int
    ) -> PartitionLog | None:
        """Returns the log of a partition for which `_read` would find nothing to send.

        Returns None if `_read` must read the partition. Most partitions of a large session are
        unchanged, and this method takes less time than `_read`.
        """
        requested = cached.requested
        partition = topic.after_cleanup(requested.partition, now_ms)
        log = partition.log
        end_offset = log.end_offset
        epoch = log.epochs.current
        if (
            requested.fetch_offset == end_offset
            and cached.high_watermark == end_offset
            and cached.log_start_offset == log.start_offset
            and partition.leader_and_isr.leader == self._node_id
            and (requested.current_leader_epoch == epoch or requested.current_leader_epoch < 0)
            and requested.last_fetched_epoch in (epoch, UNKNOWN_EPOCH)
        ):
            return log
        return None

    def _max_bytes(self) -> int:
        """Returns the size limit of the response: the lowest of the request, broker and quota."""
        most = min(self.request.max_bytes, self.context.settings.fetch_max_bytes)
        return limit_fetch_bytes(self.context, most)

    def is_enough(self, read: list[PartitionRead]) -> bool:
        """Returns True if the response can be sent before `max_wait_ms`.

        `read` has the result for each partition that is not left out. Returns True if no partition
        can be read, if there are `min_bytes` of records, or if a partition has an error, a
        preferred replica or a diverging epoch. As in Kafka, the size limit of the response replaces
        a larger `min_bytes`. The limit of a partition (`partition_max_bytes`) does not end the
        wait.
        """
        if not (read or self.unchanged_logs) or any(part.is_urgent for part in read):
            return True
        return self.readable >= min(self.request.min_bytes, self._max_bytes())

    def _read(
        self, cached: CachedPartition, topic: Topic, limit: FetchLimit, now_ms: int
    ) -> PartitionRead:
        requested, part = cached.requested, PartitionRead(cached, topic)
        try:
            self._check_topic_unchanged(cached, topic)
            partition = topic.after_cleanup(requested.partition, now_ms)
            self._check_replica(cached, topic, partition)
            part.partition = partition
            part.preferred = self._preferred(cached, partition)
            if part.preferred is None and requested.last_fetched_epoch != UNKNOWN_EPOCH:
                part.diverged = diverging_epoch(
                    partition.log, requested.fetch_offset, requested.last_fetched_epoch
                )
            is_at_end = requested.fetch_offset == partition.log.end_offset
            if part.preferred is None and part.diverged is None and not is_at_end:
                part.log_slice = limit.read(
                    partition.log,
                    requested.fetch_offset,
                    requested.partition_max_bytes,
                    partition.last_stable_offset if self.is_read_committed else None,
                )
        except BrokerResponseError as error:
            part.error = error
        return part

    def _check_topic_unchanged(self, cached: CachedPartition, topic: Topic) -> None:
        """Raises an injected error, or the error for a topic that was deleted or recreated.

        A topic may be deleted while the request waits, or after the fetch session was created.
        """
        refuse = self.context.refuse
        if refuse is not None and refuse.includes(topic.name, cached.requested.partition):
            raise error_of_code(refuse.code, "a fault of the test")
        now = self.context.cluster.topics.named(topic.name)
        if now is not topic or (not cached.topic and now.topic_id != cached.topic_id):
            raise api_error(
                "INCONSISTENT_TOPIC_ID" if not cached.topic else "UNKNOWN_TOPIC_OR_PARTITION",
                f"topic {topic.name!r} was deleted and recreated",
            )

    def _check_replica(self, cached: CachedPartition, topic: Topic, partition: Partition) -> None:
        """Checks that the client may fetch the partition from this node.

        Raises NOT_LEADER_OR_FOLLOWER, UNKNOWN_LEADER_EPOCH or FENCED_LEADER_EPOCH.
        """
        node_id = self.context.node_id
        if self.is_from_follower:
            topic.check_leader(partition.index, node_id, cached.requested.current_leader_epoch)
            raise api_error(
                "NOT_LEADER_OR_FOLLOWER", "this cluster has no followers that replicate"
            )
        epoch = cached.requested.current_leader_epoch
        holds = node_id in partition.leader_and_isr.replicas
        if holds and self.version >= _FIRST_VERSION_FROM_FOLLOWERS:
            topic.check_epoch(partition.index, epoch)
        else:
            topic.check_leader(partition.index, node_id, epoch)

    def _preferred(self, cached: CachedPartition, partition: Partition) -> int | None:
        """Returns the node id of the preferred read replica; None to read from this node."""
        selector = self.context.settings.replica_selector
        if (
            selector is None
            or self.version < _FIRST_VERSION_FROM_FOLLOWERS
            or partition.leader_and_isr.leader != self.context.node_id
            or not partition.log.start_offset <= cached.requested.fetch_offset
            or not cached.requested.fetch_offset <= partition.log.end_offset
        ):
            return None
        return preferred_replica(
            selector,
            self.request.rack_id,
            partition.leader_and_isr,
            self.context.cluster.endpoints(self.context.endpoint.listener),
        )


@handles(FetchRequest, versions=range(19))
def fetch(context: Context, request: FetchRequest, version: int) -> Decision:
    """Returns the response when `FetchOperation.is_enough` is True, or after `max_wait_ms`.

    An error of the fetch session is returned at once.
    """
    try:
        fetch_context = context.fetch_sessions.new_context(
            request, by_id=version >= _FIRST_VERSION_BY_ID, now_ms=_now_ms(context)
        )
    except BrokerResponseError as error:
        return FetchResponse(error_code=error.code)
    operation = FetchOperation(context, request, version, fetch_context)
    read = operation.read()
    if request.max_wait_ms <= 0 or operation.is_enough(read):
        return _response(operation, read)

    def try_complete(is_deadline: bool) -> Decision:
        read = operation.read()
        if is_deadline or operation.is_enough(read):
            return _response(operation, read)
        return wait

    wait = DelayedResponse(
        deadline=context.deadline(request.max_wait_ms),
        watched=[
            *(part.partition.log for part in read if part.partition is not None),
            *operation.unchanged_logs,
        ],
        try_complete=try_complete,
    )
    return wait


def _now_ms(context: Context) -> int:
    return int(context.clock.monotonic() * 1000)


def _response(operation: FetchOperation, read: list[PartitionRead]) -> FetchResponse:
    context, version = operation.context, operation.version
    committed = operation.is_read_committed
    response = FetchResponse()
    parts = []
    for part in (*read, *operation.refused):
        if part.has_nothing and not operation.refuses_zstd:
            assert part.partition is not None, "it was read"
            high_watermark = part.partition.high_watermark
            log_start_offset = part.partition.log.start_offset
            if operation.fetch_context.is_unchanged(part.cached, high_watermark, log_start_offset):
                continue
        if operation.refuses_zstd and part.topic and part.topic.config.compression == "zstd":
            data = _unsupported_codec(part, version)
        else:
            data = _partition(part, committed, version)
        if version >= _FIRST_VERSION_OF_LEADERS:
            _add_current_leader(context, part, data, response)
        parts.append((part.cached, data))
    answer = operation.fetch_context.answer(parts, _now_ms(context))
    if answer.error is not None:
        response.error_code = code_of(answer.error)
    response.session_id = answer.session_id
    response.responses = _by_topic(answer.partitions)
    return response


def _by_topic(
    parts: Iterable[tuple[CachedPartition, PartitionData]],
) -> list[FetchableTopicResponse]:
    """Groups adjacent partitions of the same topic, as Kafka does."""
    topics: list[FetchableTopicResponse] = []
    for cached, data in parts:
        last = topics[-1] if topics else None
        if last is None or (last.topic, last.topic_id) != (cached.topic, cached.topic_id):
            last = FetchableTopicResponse(topic=cached.topic, topic_id=cached.topic_id)
            topics.append(last)
        last.partitions.append(data)
    return topics


def _add_current_leader(
    context: Context, part: PartitionRead, data: PartitionData, response: FetchResponse
) -> None:
    """Adds the current leader and its endpoint to a leader error (KIP-951)."""
    if part.error is None or part.error.name not in _LEADER_ERRORS or part.topic is None:
        return
    partition = part.topic.partition(part.cached.requested.partition)
    leader = partition.leader_and_isr.leader
    data.current_leader = LeaderIdAndEpoch(
        leader_id=leader, leader_epoch=partition.log.epochs.current
    )
    for endpoint in context.cluster.endpoints(context.endpoint.listener):
        known = response.node_endpoints.find(node_id=leader)
        if endpoint.node_id == leader and known is None:
            node = NodeEndpoint(
                node_id=leader, host=endpoint.host, port=endpoint.port, rack=endpoint.rack
            )
            response.node_endpoints.append(node)


def _partition(part: PartitionRead, committed: bool, version: int) -> PartitionData:
    partition = part.partition
    if part.error is not None or partition is None:
        return _failed(part, part.error)
    data = PartitionData(
        partition_index=part.cached.requested.partition,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log.start_offset,
        aborted_transactions=None,
        records=b"",
    )
    if part.preferred is not None:
        data.preferred_read_replica = part.preferred
    elif part.diverged is not None:
        data.diverging_epoch = EpochEndOffset(
            epoch=part.diverged.epoch, end_offset=part.diverged.end_offset
        )
    else:
        try:
            data.records = _records(part, version)
        except BrokerResponseError as error:
            return _failed(part, error)
        data.aborted_transactions = _aborted(part, partition) if committed else None
    return data


def _aborted(part: PartitionRead, partition: Partition) -> list[AbortedTransaction]:
    """Returns the aborted transactions that overlap the offsets of the batches in `part`."""
    if not part.log_slice.batches:
        return []
    producer_states = partition.producer_states
    producer_states.remove_aborted_before(partition.log.start_offset)
    return [
        AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
        for aborted in producer_states.aborted_transactions(
            part.cached.requested.fetch_offset, part.log_slice.batches[-1].next_offset
        )
    ]


def _records(part: PartitionRead, version: int) -> bytes:
    magic = _MAGIC_OF_MESSAGE_SETS.get(version)
    if magic is None:
        return part.log_slice.join()
    return part.log_slice.join_as_message_set(magic, part.cached.requested.fetch_offset)


def _unsupported_codec(part: PartitionRead, version: int) -> PartitionData:
    error = api_error("UNSUPPORTED_COMPRESSION_TYPE", f"Fetch v{version} cannot carry zstd")
    data = _failed(part, error)
    data.aborted_transactions = []
    return data


def _failed(part: PartitionRead, error: BrokerResponseError | None) -> PartitionData:
    return PartitionData(
        partition_index=part.cached.requested.partition,
        error_code=error.code if error else 0,
        high_watermark=-1,
        aborted_transactions=[] if part.topic is None else None,
        records=b"",
    )
