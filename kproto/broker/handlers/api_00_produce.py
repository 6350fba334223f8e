"""Produce (0), v0 to v13.

v0-v2   message sets of magic 0 and 1, or one record batch; since v1 throttle time, since v2 log
        append time in the response
v3      record batches, transactional id (KIP-98)
v4      KAFKA_STORAGE_ERROR; older versions get NOT_LEADER_OR_FOLLOWER in its place
v5      log start offset in the response
v7      zstd (KIP-110)
v8      record errors and an error message in the response (KIP-467)
v9      flexible
v10     the current leader in the response, for NOT_LEADER_OR_FOLLOWER (KIP-951)
v11     TRANSACTION_ABORTABLE; older versions get INVALID_TXN_STATE in its place (KIP-890)
v12     a Produce adds its partitions to the transaction (KIP-890)
v13     topics by id (KIP-516)

Message sets are converted to record batches with the same codec, as in Kafka up to 3.9; Kafka 4.0
lists v0-v2 and refuses them. For a message set without a complete message, the response has offset
-1 and no error.

With acks=-1, a partition whose ISR is too small gets NOT_ENOUGH_REPLICAS. The ISR must have
min.insync.replicas nodes, or all replicas of a partition with fewer replicas.

Internal topics are read-only (INVALID_TOPIC_EXCEPTION), except for the client id `__admin_client`.

`record_errors` has each record without a key in a batch for a compacted topic, and each record
with a timestamp too far in the future.

The partition of a transactional batch must belong to the ongoing transaction of its producer. Since
v12 the leader adds the partition to the transaction. Before v12 the client adds the partition by
AddPartitionsToTxn, and the leader verifies this (KIP-890). A batch without a transactional id gets
TRANSACTIONAL_ID_AUTHORIZATION_FAILED.

Left out: nothing.
"""

from __future__ import annotations

from struct import Struct

from ...messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from ...messages.produce_response import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    NodeEndpointCollection,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ...wire.uuid import ZERO_UUID
from ..api_error import api_error
from ..authorization import allows, authorized_topic
from ..authorizer import AUTHORIZATION_ERRORS, Operation, ResourceType
from ..context import Context
from ..groups.committed_offsets import TopicPartition
from ..registry import CloseConnection, handles
from ..storage.log_append import InvalidRecordsError, append_records
from ..storage.partition import Partition
from ..topics import Topic
from ..transactions.transaction_decisions import ProducerIdAndEpoch
from ..transactions.transaction_errors import checks_epoch_first, error_of_produce

_NO_OFFSET = -1
_FIRST_VERSION_BY_ID = 13
#: The first version with KAFKA_STORAGE_ERROR; older versions get NOT_LEADER_OR_FOLLOWER instead.
_FIRST_VERSION_OF_STORAGE_ERROR = 4
#: Positions in a record batch: `_MAGIC_AT` of the magic, `_ATTRIBUTES_AT` of the low byte of the
#: attributes.
_MAGIC_AT = 16
_MAGIC_OF_BATCHES = 2
_ATTRIBUTES_AT = 22
_TRANSACTIONAL = 0x10
#: Producer id, epoch and base sequence in a record batch.
_PRODUCER = Struct(">qhi")
_PRODUCER_AT = 43
_PRODUCER_END = _PRODUCER_AT + _PRODUCER.size
_FIRST_VERSION_OF_ABORTABLE = 11
_FIRST_VERSION_THAT_ADDS = 12
#: The transaction version of clients that send no AddPartitionsToTxn: the partition's leader adds
#: the partition to the transaction.
_EPOCH_BUMP_VERSION = 2
_STORAGE_ERROR = code_of("KAFKA_STORAGE_ERROR")
_ALL_IN_SYNC = -1
#: The client id of Kafka's admin client, which may write to internal topics.
_ADMIN_CLIENT = "__admin_client"
_FIRST_VERSION_OF_LEADERS = 10
_NOT_LEADER = code_of("NOT_LEADER_OR_FOLLOWER")


@handles(ProduceRequest, versions=range(14))
def produce(context: Context, request: ProduceRequest, version: int) -> ProduceResponse | None:
    """Appends the batch of each partition.

    With acks=0 there is no response, and an error closes the connection. If a batch is
    transactional, and the client may not use its transactional id, nothing is appended. If the
    client may not write to a topic, only that topic fails.
    """
    denied = (
        None
        if _may_use_id(context, request)
        else AUTHORIZATION_ERRORS[ResourceType.TRANSACTIONAL_ID]
    )
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    _partition(context, request, topic, data, version, denied)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
    if request.acks != 0:
        if version >= _FIRST_VERSION_OF_LEADERS:
            _name_leaders(context, response)
        return response
    for answered in response.responses:
        for partition in answered.partition_responses:
            if partition.error_code:
                raise CloseConnection(f"a Produce with acks=0 failed: {partition.error_message}")
    return None


def _partition(
    context: Context,
    request: ProduceRequest,
    topic: TopicProduceData,
    data: PartitionProduceData,
    version: int,
    denied: str | None,
) -> PartitionProduceResponse:
    try:
        if denied is not None:
            raise api_error(denied, "the client may not write with its transactional id")
        found = authorized_topic(
            context,
            Operation.WRITE,
            topic.name,
            topic.topic_id,
            by_id=version >= _FIRST_VERSION_BY_ID,
        )
        if request.acks not in (-1, 0, 1):
            raise api_error(
                "INVALID_REQUIRED_ACKS", f"acks is {request.acks}; it must be -1, 0 or 1"
            )
        partition = found.partition(data.index)
        if found.is_internal and context.client_id != _ADMIN_CLIENT:
            raise api_error(
                "INVALID_TOPIC_EXCEPTION", f"topic {found.name!r} is an internal topic of Kafka"
            )
        found.check_leader(data.index, context.node_id)
        if request.acks == _ALL_IN_SYNC:
            found.check_in_sync(data.index)
        now_ms = context.clock.now_ms()
        if not context.cluster.storage_limit.has(len(data.records or b"")):
            context.cluster.topics.apply_cleanup(now_ms)
        _check_transaction(context, request, found, partition, data.records, version)
        appended = append_records(
            partition, found.config_at(context.node_id), data.records, version, now_ms
        )
        start_offset = found.after_cleanup(data.index, now_ms).log.start_offset
    except BrokerResponseError as error:
        return PartitionProduceResponse(
            index=data.index,
            error_code=_code_known_to(version, error.code),
            base_offset=_NO_OFFSET,
            error_message=error.detail,
            record_errors=[
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=reason)
                for index, reason in (
                    error.record_errors if isinstance(error, InvalidRecordsError) else {}
                ).items()
            ],
        )
    return PartitionProduceResponse(
        index=data.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time,
        log_start_offset=start_offset,
    )


def _name_leaders(context: Context, response: ProduceResponse) -> None:
    """Adds the current leader and its endpoint for NOT_LEADER_OR_FOLLOWER errors (KIP-951)."""
    endpoints: dict[int, NodeEndpoint] = {}
    for topic in response.responses:
        for answered in topic.partition_responses:
            if answered.error_code != _NOT_LEADER:
                continue
            found = context.cluster.topics.requested(
                topic.name, topic.topic_id, by_id=topic.topic_id != ZERO_UUID
            )
            partition = found.partition(answered.index)
            leader = partition.leader_and_isr.leader
            answered.current_leader = LeaderIdAndEpoch(
                leader_id=leader, leader_epoch=partition.log.epochs.current
            )
            endpoint = context.cluster.endpoint_of(leader, context.endpoint.listener)
            if endpoint is not None:
                endpoints[leader] = NodeEndpoint(
                    node_id=leader, host=endpoint.host, port=endpoint.port, rack=endpoint.rack
                )
    response.node_endpoints = NodeEndpointCollection(endpoints.values())


def _may_use_id(context: Context, request: ProduceRequest) -> bool:
    """Returns True if the client may write with the transactional id of the request.

    Also returns True if no batch is transactional, because the client then needs no permission.
    Returns False for a transactional batch without an id.
    """
    if not any(
        _is_transactional(data.records)
        for topic in request.topic_data
        for data in topic.partition_data
    ):
        return True
    name = request.transactional_id
    return name is not None and allows(
        context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name
    )


def _is_transactional(records: bytes | None) -> bool:
    """Returns True if the first batch is transactional, by its attributes."""
    return (
        records is not None
        and len(records) > _ATTRIBUTES_AT
        and records[_MAGIC_AT] == _MAGIC_OF_BATCHES
        and bool(records[_ATTRIBUTES_AT] & _TRANSACTIONAL)
    )


def _check_transaction(
    context: Context,
    request: ProduceRequest,
    topic: Topic,
    partition: Partition,
    records: bytes | None,
    version: int,
) -> None:
    """Adds the partition of a transactional batch to the transaction, or checks that it was added.

    Raises the transaction coordinator's errors, mapped by `error_of_produce`.
    """
    if records is None or not _is_transactional(records) or len(records) < _PRODUCER_END:
        return
    producer_id, epoch, sequence = _PRODUCER.unpack_from(records, _PRODUCER_AT)
    if partition.producer_states.has_ongoing_transaction(producer_id, epoch):
        return
    if checks_epoch_first(context.settings):
        partition.producer_states.check_epoch(producer_id, epoch)
    adds = version >= _FIRST_VERSION_THAT_ADDS
    now_ms = context.clock.now_ms()
    partition.producer_states.expire(
        now_ms - topic.config_at(context.node_id).producer_id_expiration_ms
    )
    partition.producer_states.start_verification(
        producer_id, epoch, sequence, now_ms, starts_at_zero=adds
    )
    transactional_id = request.transactional_id or ""
    producer = ProducerIdAndEpoch(producer_id, epoch)
    tp = TopicPartition(topic.name, partition.index)
    coordinator, now = context.transaction_coordinator, context.now
    try:
        if adds:
            partitions = frozenset({tp})
            coordinator.add_partitions(
                transactional_id, producer, partitions, now, _EPOCH_BUMP_VERSION
            )
        else:
            coordinator.verify_partition(transactional_id, producer, tp, now)
    except BrokerResponseError as error:
        raise error_of_produce(
            error, knows_abortable=version >= _FIRST_VERSION_OF_ABORTABLE
        ) from None


def _code_known_to(version: int, code: int) -> int:
    """Returns `code`, but before v4 NOT_LEADER_OR_FOLLOWER instead of KAFKA_STORAGE_ERROR."""
    if code == _STORAGE_ERROR and version < _FIRST_VERSION_OF_STORAGE_ERROR:
        return code_of("NOT_LEADER_OR_FOLLOWER")
    return code
