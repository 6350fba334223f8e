"""Tests the messages of the requests of a transaction in every version, and their results."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from kproto.client.commits.offset_requests import OffsetAndMetadata
from kproto.client.commits.transactional_commit import TransactionalCommit
from kproto.client.producer.producer_state import NO_PRODUCER_ID, ProducerIdAndEpoch
from kproto.client.producer.transactions.transaction_requests import (
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    EndTransaction,
    InitProducerId,
    TransactionRequest,
    TransactionResult,
    highest_version,
    message_class_of,
    message_of,
    result_of,
)
from kproto.messages import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from kproto.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnTopicResult,
)
from kproto.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kproto.wire.errors import BrokerResponseError, ProtocolError, UnsupportedVersionError

PRODUCER = ProducerIdAndEpoch(7, 3)


class Member(NamedTuple):
    member_id: str = "m"
    generation: int = 5
    instance_id: str | None = "i"
    has_epoch: bool = False


COMMIT = TransactionalCommit(
    "g",
    Member(),
    {("t", 0): OffsetAndMetadata(5, 2), ("t", 1): OffsetAndMetadata(6)},
)
REQUESTS: tuple[TransactionRequest, ...] = (
    InitProducerId(PRODUCER),
    AddPartitions((("t", 0), ("u", 1), ("t", 2))),
    AddOffsets("g"),
    CommitOffsets(COMMIT),
    EndTransaction(is_commit=True),
)


@pytest.mark.parametrize("transaction_version", [1, 2])
@pytest.mark.parametrize("request_data", REQUESTS, ids=lambda each: type(each).__name__)
def test_each_version_can_be_encoded_and_names_the_producer(
    request_data: TransactionRequest, transaction_version: int
) -> None:
    highest = highest_version(request_data, transaction_version)
    lowest = 3 if isinstance(request_data, CommitOffsets) else 0  # earlier ones have no member
    for version in range(lowest, highest + 1):
        message = message_of(request_data, "id", 60_000, PRODUCER, version)
        assert type(message) is message_class_of(request_data)
        again = type(message).decode(message.encode(version), version)
        text = again.to_json(version)
        assert "id" in text.values()


def test_member_is_named_from_version_3_on() -> None:
    for version in range(6):
        commit = COMMIT if version >= 3 else COMMIT._replace(member=None)
        message = message_of(CommitOffsets(commit), "id", 60_000, PRODUCER, version)
        assert isinstance(message, TxnOffsetCommitRequest)
        found = (
            message.member_id,
            message.generation_id_or_member_epoch,
            message.group_instance_id,
        )
        assert found == (("m", 5, "i") if version >= 3 else ("", -1, None))
        (topic,) = message.topics
        assert [each.committed_offset for each in topic.partitions] == [5, 6]


def test_member_is_not_left_out_before_version_3() -> None:
    for version in range(3):
        with pytest.raises(UnsupportedVersionError, match=r"before Kafka 2\.5"):
            message_of(CommitOffsets(COMMIT), "id", 60_000, PRODUCER, version)


def test_current_epoch_is_sent_from_version_3_on() -> None:
    for version in range(6):
        message = message_of(InitProducerId(PRODUCER), "id", 60_000, NO_PRODUCER_ID, version)
        assert isinstance(message, InitProducerIdRequest)
        found = (message.producer_id, message.producer_epoch)
        assert found == (PRODUCER if version >= 3 else NO_PRODUCER_ID)


def test_results_have_the_producer_or_the_errors_of_partitions() -> None:
    init = InitProducerIdResponse(producer_id=7, producer_epoch=3)
    assert result_of(REQUESTS[0], init) == TransactionResult(PRODUCER)
    assert result_of(REQUESTS[2], AddOffsetsToTxnResponse()) == TransactionResult()
    assert result_of(REQUESTS[4], EndTxnResponse()) == TransactionResult()
    ended = EndTxnResponse(producer_id=7, producer_epoch=3)
    assert result_of(REQUESTS[4], ended) == TransactionResult(PRODUCER)
    codes = TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name="t",
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=0),
                    TxnOffsetCommitResponsePartition(partition_index=1, error_code=22),
                ],
            )
        ]
    )
    errors = result_of(REQUESTS[3], codes).errors
    assert {tp: error.name for tp, error in errors.items()} == {("t", 1): "ILLEGAL_GENERATION"}


def test_error_of_the_whole_request_is_raised() -> None:
    with pytest.raises(BrokerResponseError, match="PRODUCER_FENCED"):
        result_of(REQUESTS[4], EndTxnResponse(error_code=90))
    with pytest.raises(BrokerResponseError, match="NOT_COORDINATOR"):
        result_of(REQUESTS[2], AddOffsetsToTxnResponse(error_code=16))


def test_response_that_lacks_a_partition_is_refused() -> None:
    response = AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnTopicResult(
                name="t",
                results_by_partition=[AddPartitionsToTxnPartitionResult(partition_index=0)],
            )
        ]
    )
    with pytest.raises(ProtocolError, match=r"lacks u\[1\]"):
        result_of(REQUESTS[1], response)
    with pytest.raises(ProtocolError, match="no response"):
        result_of(REQUESTS[1], InitProducerIdRequest())  # type: ignore[arg-type]
