"""The requests of a transaction as plain data, their messages, and the results in the responses.

Does no I/O. A request has no version; `message_of` builds the message for the version that was
negotiated, up to `highest_version`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from ....messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from ....messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from ....messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from ....messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from ....messages.base import Request, Response
from ....messages.describe_transactions_request import DescribeTransactionsRequest
from ....messages.describe_transactions_response import DescribeTransactionsResponse
from ....messages.end_txn_request import EndTxnRequest
from ....messages.end_txn_response import EndTxnResponse
from ....messages.init_producer_id_request import InitProducerIdRequest
from ....messages.init_producer_id_response import InitProducerIdResponse
from ....messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ....messages.txn_offset_commit_response import TxnOffsetCommitResponse
from ....protocol.error_codes import error_of_code, raise_for_code
from ....wire.errors import BrokerResponseError, ProtocolError, UnsupportedVersionError
from ...commits.transactional_commit import TransactionalCommit
from ...metadata.cluster import TopicPartition
from ..producer_state import NO_PRODUCER_ID, ProducerIdAndEpoch
from .transaction_errors import TransactionApi

__all__ = [
    "AddOffsets",
    "AddPartitions",
    "CommitOffsets",
    "DescribeTransaction",
    "EndTransaction",
    "InitProducerId",
    "TransactionRequest",
    "TransactionResult",
    "api_of",
    "highest_version",
    "message_class_of",
    "message_of",
    "result_of",
]

#: The transaction version in which leaders and group coordinators add partitions (KIP-890).
EPOCH_BUMP_VERSION: Final = 2

#: The first version of TxnOffsetCommit with generation, member id and instance id (KIP-447).
_FIRST_WITH_MEMBER: Final = 3

#: The first version of InitProducerId with the current producer id and epoch (KIP-360).
FIRST_WITH_EPOCH: Final = 3

#: The version of InitProducerId with two-phase commit (KIP-939); it is unstable.
_TWO_PHASE_VERSION: Final = 6


class InitProducerId(NamedTuple):
    """Requests a producer id and an epoch, and fences other producers with the transactional id.

    `current` is the producer id and epoch that the coordinator bumps (KIP-360); NO_PRODUCER_ID for
    a producer that has none. With `has_two_phases` transactions never time out, and with
    `keeps_prepared` an ongoing transaction is not aborted (KIP-939).
    """

    current: ProducerIdAndEpoch
    has_two_phases: bool = False
    keeps_prepared: bool = False


class AddPartitions(NamedTuple):
    """Adds partitions to the transaction, before the first Produce to each of them."""

    partitions: tuple[TopicPartition, ...]


class AddOffsets(NamedTuple):
    """Adds the offsets of a group to the transaction, before the first TxnOffsetCommit."""

    group_id: str


class CommitOffsets(NamedTuple):
    """Commits offsets of a group, which take effect when the transaction is committed."""

    commit: TransactionalCommit


class DescribeTransaction(NamedTuple):
    """Requests the state of the last transaction, before the first write of the next one."""


class EndTransaction(NamedTuple):
    """Commits or aborts the transaction."""

    is_commit: bool


TransactionRequest: TypeAlias = (
    InitProducerId
    | AddPartitions
    | AddOffsets
    | CommitOffsets
    | DescribeTransaction
    | EndTransaction
)


class TransactionResult(NamedTuple):
    """The result in a response that has no error at its top level.

    `producer` is the producer id and epoch in the response, None if the response has none. `errors`
    maps the failed partitions to their errors. `state` is the state of the transaction, empty if
    the response has none. `ongoing` is the transaction that InitProducerId has kept, None if there
    is none.
    """

    producer: ProducerIdAndEpoch | None = None
    errors: Mapping[TopicPartition, BrokerResponseError] = {}
    state: str = ""
    ongoing: ProducerIdAndEpoch | None = None


_APIS: Final[Mapping[type[Any], tuple[TransactionApi, type[Request[Any]]]]] = {
    InitProducerId: (TransactionApi.INIT_PRODUCER_ID, InitProducerIdRequest),
    AddPartitions: (TransactionApi.ADD_PARTITIONS, AddPartitionsToTxnRequest),
    AddOffsets: (TransactionApi.ADD_OFFSETS, AddOffsetsToTxnRequest),
    CommitOffsets: (TransactionApi.TXN_OFFSET_COMMIT, TxnOffsetCommitRequest),
    EndTransaction: (TransactionApi.END_TXN, EndTxnRequest),
}

#: The highest version of each API for transaction version 1, then for transaction version 2.
#: AddPartitionsToTxn v4 and later are for brokers, which verify transactions (KIP-890).
_HIGHEST: Final[Mapping[type[Any], tuple[int, int]]] = {
    InitProducerId: (5, 5),
    AddPartitions: (3, 3),
    AddOffsets: (4, 4),
    CommitOffsets: (4, 5),
    DescribeTransaction: (0, 0),
    EndTransaction: (4, 5),
}


def api_of(request: TransactionRequest) -> TransactionApi:
    """Returns the API of a request, except DescribeTransaction."""
    return _APIS[type(request)][0]


def message_class_of(request: TransactionRequest) -> type[Request[Any]]:
    """Returns the class of the message of a request."""
    if isinstance(request, DescribeTransaction):
        return DescribeTransactionsRequest
    return _APIS[type(request)][1]


def highest_version(request: TransactionRequest, transaction_version: int) -> int:
    """Returns the highest version of the API that a client of `transaction_version` may send."""
    if isinstance(request, InitProducerId) and request.has_two_phases:
        return _TWO_PHASE_VERSION
    return _HIGHEST[type(request)][transaction_version >= EPOCH_BUMP_VERSION]


def message_of(
    request: TransactionRequest,
    transactional_id: str,
    timeout_ms: int,
    producer: ProducerIdAndEpoch,
    version: int,
) -> Request[Any]:
    """Returns the message of a request in `version`.

    `timeout_ms` is the transaction timeout, and `producer` is the present producer id and epoch.
    Raises UnsupportedVersionError if `version` lacks a field that the request needs: the group
    metadata of a TxnOffsetCommit, or two-phase commit.
    """
    match request:
        case InitProducerId(current, has_two_phases, keeps_prepared):
            if has_two_phases and version < _TWO_PHASE_VERSION:
                raise UnsupportedVersionError(
                    "the broker does not support two-phase commit: it needs InitProducerId v6, "
                    "which brokers have with unstable.api.versions.enable (KIP-939)"
                )
            if version < FIRST_WITH_EPOCH:
                current = NO_PRODUCER_ID
            return InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                producer_id=current.producer_id,
                producer_epoch=current.producer_epoch,
                enable_2pc=has_two_phases,
                keep_prepared_txn=keeps_prepared,
            )
        case AddPartitions(partitions):
            by_topic: dict[str, list[int]] = {}
            for topic, partition in partitions:
                by_topic.setdefault(topic, []).append(partition)
            return AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=transactional_id,
                v3_and_below_producer_id=producer.producer_id,
                v3_and_below_producer_epoch=producer.producer_epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnTopic(name=topic, partitions=its)
                    for topic, its in by_topic.items()
                ],
            )
        case AddOffsets(group_id):
            return AddOffsetsToTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                group_id=group_id,
            )
        case CommitOffsets(commit):
            return _offset_commit(commit, transactional_id, producer, version)
        case DescribeTransaction():
            return DescribeTransactionsRequest(transactional_ids=[transactional_id])
        case EndTransaction(is_commit):
            return EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                committed=is_commit,
            )


def _offset_commit(
    commit: TransactionalCommit, transactional_id: str, producer: ProducerIdAndEpoch, version: int
) -> TxnOffsetCommitRequest:
    topics: dict[str, TxnOffsetCommitRequestTopic] = {}
    for (topic, partition), its in commit.offsets.items():
        if topic not in topics:
            topics[topic] = TxnOffsetCommitRequestTopic(name=topic)
        topics[topic].partitions.append(
            TxnOffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=its.offset,
                committed_leader_epoch=its.leader_epoch,
                committed_metadata=its.metadata,
            )
        )
    message = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=commit.group_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=topics.values(),
    )
    if commit.member is not None:
        if version < _FIRST_WITH_MEMBER:
            raise UnsupportedVersionError(
                "brokers before Kafka 2.5 cannot check that the consumer still owns its partitions "
                "(KIP-447): pass offsets and group_id, with a transactional id for each partition"
            )
        message.generation_id_or_member_epoch = commit.member.generation
        message.member_id = commit.member.member_id
        message.group_instance_id = commit.member.instance_id
    return message


def result_of(request: TransactionRequest, response: Response) -> TransactionResult:
    """Returns the result in a response.

    Raises BrokerResponseError for an error of the whole request, and ProtocolError if the response
    lacks a partition.
    """
    if isinstance(response, DescribeTransactionsResponse):
        return TransactionResult(state=_state_in(response))
    what = api_of(request).value
    match response:
        case InitProducerIdResponse():
            raise_for_code(response.error_code, what)
            ongoing = ProducerIdAndEpoch(
                response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch
            )
            return TransactionResult(
                ProducerIdAndEpoch(response.producer_id, response.producer_epoch),
                ongoing=None if ongoing.producer_id < 0 else ongoing,
            )
        case EndTxnResponse():
            raise_for_code(response.error_code, what)
            found = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
            return TransactionResult(None if found.producer_id < 0 else found)
        case AddOffsetsToTxnResponse():
            raise_for_code(response.error_code, what)
            return TransactionResult()
        case AddPartitionsToTxnResponse():
            assert isinstance(request, AddPartitions)
            codes = {
                (topic.name, each.partition_index): each.partition_error_code
                for topic in response.results_by_topic_v3_and_below
                for each in topic.results_by_partition
            }
            return _partition_results(what, request.partitions, codes)
        case TxnOffsetCommitResponse():
            assert isinstance(request, CommitOffsets)
            codes = {
                (topic.name, each.partition_index): each.error_code
                for topic in response.topics
                for each in topic.partitions
            }
            return _partition_results(what, tuple(request.commit.offsets), codes)
    raise ProtocolError(f"{type(response).__name__} is no response to {what}")


def _state_in(response: DescribeTransactionsResponse) -> str:
    what = "requesting the state of the last transaction"
    if len(response.transaction_states) != 1:
        raise ProtocolError(f"{what}: the response lacks the transactional id")
    (its,) = response.transaction_states
    raise_for_code(its.error_code, what)
    return its.transaction_state


def _partition_results(
    what: str, partitions: tuple[TopicPartition, ...], codes: Mapping[TopicPartition, int]
) -> TransactionResult:
    errors = {}
    for topic, partition in partitions:
        code = codes.get((topic, partition))
        if code is None:
            raise ProtocolError(f"the response to {what} lacks {topic}[{partition}]")
        if code:
            errors[topic, partition] = error_of_code(code, f"{what}: {topic}[{partition}]")
    return TransactionResult(None, errors)
