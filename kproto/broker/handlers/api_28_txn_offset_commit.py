"""TxnOffsetCommit (28), v0 to v6.

v0      offsets that take effect when the producer's transaction commits (KIP-98)
v2      leader epoch (KIP-320)
v3      flexible; generation, member id and group instance id of the consumer (KIP-447)
v4      TRANSACTION_ABORTABLE (KIP-890)
v5      adds the group's partition to the transaction, without AddOffsetsToTxn (KIP-890)
v6      topics by id; GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH, in whose place older versions get
        ILLEGAL_GENERATION (KIP-1319)

The offsets are records of one transactional batch of `__consumer_offsets`. Up to v4, the client
must first add the partition to the transaction by AddOffsetsToTxn.

Left out: nothing.
"""

from __future__ import annotations

from typing import Final

from ...messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ...messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import authorized_topic, check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..groups import ConsumerGroup
from ..groups.committed_offsets import CommittedOffset, TopicPartition, exceeds_max_length
from ..groups.consumer.offset_checks import validate_transactional_commit as validate_epoch
from ..groups.coordinator_records import offset_record
from ..groups.group_coordinator import OFFSETS_TOPIC
from ..groups.offset_commit_checks import validate_transactional_commit
from ..registry import handles
from ..topics import Topic
from ..transactions.transaction_decisions import ProducerIdAndEpoch
from ..transactions.transaction_errors import checks_epoch_first, error_of_txn_offset_commit

_FIRST_VERSION_OF_ABORTABLE: Final = 4
_FIRST_VERSION_THAT_ADDS: Final = 5
_FIRST_VERSION_BY_ID: Final = 6
_NONE: Final = code_of("NONE")

#: A position of a partition in the request: topic and partition.
_Place = tuple[int, int]
_Requested = tuple[_Place, Topic, TxnOffsetCommitRequestPartition]


@handles(TxnOffsetCommitRequest, versions=range(7))
def txn_offset_commit(
    context: Context, request: TxnOffsetCommitRequest, version: int
) -> TxnOffsetCommitResponse:
    """Stores the offsets of a transaction, and returns an error code for each partition."""
    try:
        check(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        check(context, Operation.READ, ResourceType.GROUP, request.group_id)
    except BrokerResponseError as error:
        return _response(request, {}, error.code)
    codes: dict[_Place, int] = {}
    requested: list[_Requested] = []
    for topic_at, topic in enumerate(request.topics):
        for partition_at, partition in enumerate(topic.partitions):
            place = topic_at, partition_at
            try:
                found = _topic(context, topic, version)
                found.partition(partition.partition_index)
            except BrokerResponseError as error:
                codes[place] = error.code
            else:
                requested.append((place, found, partition))
    if requested:
        try:
            codes.update(_commit(context, request, requested, version))
        except BrokerResponseError as error:
            codes.update({place: error.code for place, _, _ in requested})
    return _response(request, codes, _NONE)


def _topic(context: Context, topic: TxnOffsetCommitRequestTopic, version: int) -> Topic:
    return authorized_topic(
        context,
        Operation.READ,
        topic.name,
        topic.topic_id,
        by_id=version >= _FIRST_VERSION_BY_ID,
    )


def _commit(
    context: Context,
    request: TxnOffsetCommitRequest,
    requested: list[_Requested],
    version: int,
) -> dict[_Place, int]:
    """Stores offsets; returns the error code of each partition.

    Raises BrokerResponseError if the whole commit is refused, or if the offsets cannot be stored.
    """
    group_id, now = request.group_id, context.now
    coordinator = context.group_coordinator
    if not group_id:
        raise api_error("INVALID_GROUP_ID", "the group id is empty")
    partition = coordinator.check_coordinator(context.node_id, group_id)
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    if not partition.producer_states.has_ongoing_transaction(*producer):
        if checks_epoch_first(context.settings):
            partition.producer_states.check_epoch(*producer)
        _check_transaction(context, request, producer, partition.index, version)
    group = coordinator.find_with_offsets(context.node_id, group_id, now)
    member = request.member_id, request.generation_id_or_member_epoch, request.group_instance_id
    if isinstance(group, ConsumerGroup):
        validate_epoch(
            group,
            *member,
            version,
            [(topic.topic_id, each.partition_index) for _, topic, each in requested],
        )
    else:
        validate_transactional_commit(group, *member, version)
    codes: dict[_Place, int] = {}
    commits: list[tuple[str, int, CommittedOffset]] = []
    for place, topic, each in requested:
        if exceeds_max_length(each.committed_metadata, context.settings.offset_metadata_max_bytes):
            codes[place] = code_of("OFFSET_METADATA_TOO_LARGE")
            continue
        codes[place] = _NONE
        committed = CommittedOffset(
            each.committed_offset,
            each.committed_leader_epoch,
            each.committed_metadata or "",
            now.timestamp_ms,
            None,
            topic.topic_id,
        )
        commits.append((topic.name, each.partition_index, committed))
    records = [offset_record(group_id, *commit) for commit in commits]
    coordinator.append(group_id, records, now, producer)
    if group is None:
        group = coordinator.get_or_create(context.node_id, group_id, now)
    for commit in commits:
        group.offsets.put_pending(producer.producer_id, *commit)
    return codes


def _check_transaction(
    context: Context,
    request: TxnOffsetCommitRequest,
    producer: ProducerIdAndEpoch,
    index: int,
    version: int,
) -> None:
    """Adds the group's partition to the transaction; before v5 checks that the client added it.

    Raises the errors of the transaction coordinator.
    """
    tp = TopicPartition(OFFSETS_TOPIC, index)
    coordinator = context.transaction_coordinator
    try:
        if version >= _FIRST_VERSION_THAT_ADDS:
            coordinator.add_partitions(
                request.transactional_id, producer, frozenset({tp}), context.now, 2
            )
        else:
            coordinator.verify_partition(request.transactional_id, producer, tp, context.now)
    except BrokerResponseError as error:
        raise error_of_txn_offset_commit(
            error, knows_abortable=version >= _FIRST_VERSION_OF_ABORTABLE
        ) from None


def _response(
    request: TxnOffsetCommitRequest, codes: dict[_Place, int], default: int
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=codes.get((topic_at, partition_at), default),
                    )
                    for partition_at, each in enumerate(topic.partitions)
                ],
            )
            for topic_at, topic in enumerate(request.topics)
        ]
    )
