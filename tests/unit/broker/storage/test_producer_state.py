"""Tests the state of idempotent producers: sequences, duplicates, expiration and truncation.

The results of the sequence checks are those of Kafka 4.4.0 and 3.9.2.
"""

from __future__ import annotations

import pytest

from kproto import BrokerResponseError
from kproto.broker.storage.log_append import append_records
from kproto.broker.storage.partition import Partition
from kproto.broker.storage.producer_state import ProducerStateManager
from kproto.broker.topic_configs import TopicConfig
from kproto.records import RecordBatch
from tests.support.batches import TIMESTAMP, batch_bytes, view

PRODUCER = 7


def batch(sequence: int, count: int = 1, epoch: int = 0) -> RecordBatch:
    return view(count, producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence)


def append(producer_states: ProducerStateManager, sent: RecordBatch, offset: int) -> None:
    assert producer_states.duplicate_of(sent) is None
    producer_states.check(sent)
    producer_states.update(sent, offset, sent.max_timestamp, offset)


def verdict(producer_states: ProducerStateManager, sent: RecordBatch) -> str:
    try:
        producer_states.check(sent)
    except BrokerResponseError as error:
        return error.name
    return "NONE"


def test_unknown_producer_may_start_at_any_sequence() -> None:
    assert verdict(ProducerStateManager(), batch(5)) == "NONE"


def test_duplicates_of_last_five_batches_are_known() -> None:
    producer_states = ProducerStateManager()
    for index in range(7):
        append(producer_states, batch(index), 10 + index)
    again = [producer_states.duplicate_of(batch(index)) for index in range(7)]
    assert again[:2] == [None, None]
    assert [known.base_offset for known in again if known is not None] == [12, 13, 14, 15, 16]
    assert verdict(producer_states, batch(0)) == "OUT_OF_ORDER_SEQUENCE_NUMBER", (
        "older ones are not"
    )


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (batch(2), "NONE"),
        (batch(2, 3), "NONE"),
        (batch(3), "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (batch(1, 2), "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (batch(0, epoch=1), "NONE"),
        (batch(2, epoch=1), "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (batch(2, epoch=-1), "INVALID_PRODUCER_EPOCH"),
    ],
)
def test_next_sequence_is_checked(sent: RecordBatch, expected: str) -> None:
    producer_states = ProducerStateManager()
    append(producer_states, batch(0, 2), 0)
    assert verdict(producer_states, sent) == expected


def test_duplicate_of_older_epoch_is_fenced() -> None:
    producer_states = ProducerStateManager()
    append(producer_states, batch(0), 0)
    append(producer_states, batch(0, epoch=1), 1)
    assert producer_states.duplicate_of(batch(0)) is None
    assert verdict(producer_states, batch(0)) == "INVALID_PRODUCER_EPOCH"
    assert verdict(producer_states, batch(1, epoch=1)) == "NONE"


def test_sequences_wrap_to_zero() -> None:
    producer_states = ProducerStateManager()
    append(producer_states, batch(2**31 - 2, 4), 0)
    append(producer_states, batch(2), 4)
    assert producer_states.duplicate_of(batch(2**31 - 2, 4)) == (2**31 - 2, 1, 0, 1_700_000_000_003)


def test_idle_producer_expires() -> None:
    producer_states = ProducerStateManager()
    for producer_id in range(100):
        for sequence in range(2):
            sent = view(1, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
            append(producer_states, sent, producer_id)
    append(producer_states, view(1, producer_id=3, producer_epoch=0, base_sequence=2), 1_000)
    producer_states.expire(98)
    assert list(producer_states._producers) == [99, 3]
    assert (
        producer_states.duplicate_of(view(1, producer_id=7, producer_epoch=0, base_sequence=1))
        is None
    )
    producer_states.expire(1_000)
    assert not producer_states._producers


def test_truncation_rebuilds_producer_state() -> None:
    partition = Partition(0)
    config = TopicConfig({}, 1_000_000)

    def write(producer: int, sequence: int) -> None:
        records = batch_bytes(producer_id=producer, producer_epoch=0, base_sequence=sequence)
        append_records(partition, config, records, 9, TIMESTAMP)

    for sequence in range(8):
        write(PRODUCER, sequence)
    write(8, 0)
    write(9, 0)
    partition.log.delete_before(9)
    write(PRODUCER, 8)
    write(9, 1)
    assert partition.truncate(10) == 10
    producer_states = partition.producer_states
    assert verdict(producer_states, batch(3)) == "NONE", "nothing of it is left"
    assert verdict(producer_states, view(producer_id=8, producer_epoch=0, base_sequence=5)) == (
        "OUT_OF_ORDER_SEQUENCE_NUMBER"
    ), "it is known, though its batches were deleted"
    again = producer_states.duplicate_of(view(producer_id=9, producer_epoch=0, base_sequence=0))
    assert again is not None
    assert again.base_offset == 9
    assert (
        verdict(producer_states, view(producer_id=9, producer_epoch=0, base_sequence=1)) == "NONE"
    )
    write(9, 1)
    assert [each.base_sequence for each in partition.log] == [0, 1]
