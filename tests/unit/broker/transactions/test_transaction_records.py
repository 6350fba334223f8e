"""Tests that metadata loaded from `__transaction_state` equals the stored metadata."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.broker.coordinator_log import coordinator_batch
from kproto.broker.groups.committed_offsets import CommittedOffset, TopicPartition
from kproto.broker.groups.coordinator_records import offset_record
from kproto.broker.transactions import TransactionMetadata, TransactionState
from kproto.broker.transactions.transaction_records import (
    TRANSACTION_TOPIC,
    load,
    transaction_record,
    transaction_tombstone,
)
from kproto.messages.transaction_log_value import TransactionLogValue
from kproto.records import Record, RecordBatch, encode_batch
from kproto.stored.coordinator_records import CoordinatorRecord, encode_coordinator_record
from tests.support.batches import TIMESTAMP

INT64 = st.integers(-(2**63), 2**63 - 1)
PARTITION = st.builds(TopicPartition, st.sampled_from("tuvé"), st.integers(0, 2**31 - 1))

METADATA = st.builds(
    TransactionMetadata,
    transactional_id=st.text(st.characters(codec="utf-8"), min_size=1, max_size=20),
    producer_id=INT64,
    timeout_ms=st.integers(1, 2**31 - 1),
    previous_producer_id=INT64,
    next_producer_id=INT64,
    epoch=st.integers(-1, 2**15 - 1),
    last_epoch=st.integers(-1, 2**15 - 1),
    state=st.sampled_from(TransactionState),
    partitions=st.frozensets(PARTITION, max_size=5),
    start_ms=INT64,
    update_ms=INT64,
    client_version=st.integers(0, 2),
    has_failed_fence=st.booleans(),
)


def records(*batches: Iterable[CoordinatorRecord]) -> list[Record]:
    return [
        record
        for batch in batches
        for record in RecordBatch(coordinator_batch(list(batch), TIMESTAMP)).records()
    ]


@given(METADATA)
def test_metadata_is_loaded_as_it_was_stored(metadata: TransactionMetadata) -> None:
    loaded = load(records([transaction_record(metadata, 2)]))
    # As in Kafka, the record has neither the last epoch nor a failed fence, and an Empty id has no
    # partitions.
    expected = replace(metadata, last_epoch=-1, has_failed_fence=False)
    if metadata.state is TransactionState.EMPTY:
        expected = replace(expected, partitions=frozenset())
    assert loaded == {metadata.transactional_id: expected}


@given(METADATA)
def test_value_of_version_0_lacks_the_fields_of_kip_890(metadata: TransactionMetadata) -> None:
    record = transaction_record(metadata, 0)
    assert record.version == 0
    (loaded,) = load(records([record])).values()
    assert (loaded.previous_producer_id, loaded.next_producer_id) == (-1, -1)
    assert loaded.client_version == 0
    assert (loaded.producer_id, loaded.epoch) == (metadata.producer_id, metadata.epoch)
    assert (loaded.state, loaded.timeout_ms) == (metadata.state, metadata.timeout_ms)
    assert (loaded.start_ms, loaded.update_ms) == (metadata.start_ms, metadata.update_ms)


@given(st.lists(st.tuples(st.sampled_from("abc"), METADATA, st.booleans()), max_size=12))
def test_last_record_of_each_id_counts(
    changes: list[tuple[str, TransactionMetadata, bool]],
) -> None:
    stored: list[CoordinatorRecord] = []
    expected: dict[str, tuple[int, int, TransactionState]] = {}
    for transactional_id, metadata, is_tombstone in changes:
        if is_tombstone:
            stored.append(transaction_tombstone(transactional_id))
            expected.pop(transactional_id, None)
        else:
            changed = replace(metadata, transactional_id=transactional_id)
            stored.append(transaction_record(changed, 1))
            expected[transactional_id] = (metadata.producer_id, metadata.epoch, metadata.state)
    loaded = load(records(*([record] for record in stored)))
    assert {
        name: (metadata.producer_id, metadata.epoch, metadata.state)
        for name, metadata in loaded.items()
    } == expected


@pytest.mark.parametrize(("transaction_version", "expected"), [(0, 0), (1, 1), (2, 1)])
def test_version_of_value_depends_on_transaction_version(
    transaction_version: int, expected: int
) -> None:
    record = transaction_record(TransactionMetadata("tx", 7, 1), transaction_version)
    assert record.version == expected


def test_partitions_are_grouped_by_topic_and_null_while_empty() -> None:
    partitions = frozenset(TopicPartition(*tp) for tp in [("u", 1), ("t", 2), ("t", 0)])
    metadata = TransactionMetadata(
        "tx", 7, 1, state=TransactionState.ONGOING, partitions=partitions
    )
    value = transaction_record(metadata, 2).value
    assert isinstance(value, TransactionLogValue)
    assert [(it.topic, it.partition_ids) for it in value.transaction_partitions or ()] == [
        ("t", [0, 2]),
        ("u", [1]),
    ]
    empty = transaction_record(replace(metadata, state=TransactionState.EMPTY), 2).value
    assert isinstance(empty, TransactionLogValue)
    assert empty.transaction_partitions is None
    complete = replace(metadata, state=TransactionState.COMPLETE_ABORT, partitions=frozenset())
    done = transaction_record(complete, 2).value
    assert isinstance(done, TransactionLogValue)
    assert done.transaction_partitions == []


def test_other_and_broken_records_are_skipped(caplog: pytest.LogCaptureFixture) -> None:
    good = transaction_record(TransactionMetadata("tx", 7, 1), 2)
    key, value = encode_coordinator_record(good)
    other = offset_record("g", "t", 0, CommittedOffset(1))
    assert value is not None
    raw = RecordBatch(
        encode_batch(
            [
                (key, value[:5], (), TIMESTAMP),
                (b"\0\x63", b"", (), TIMESTAMP),
                (None, b"v", (), TIMESTAMP),
                (*encode_coordinator_record(other), (), TIMESTAMP),
                (key, value, (), TIMESTAMP),
            ]
        )
    )
    with caplog.at_level(logging.WARNING, "kproto.broker"):
        loaded = load(raw.records())
    assert list(loaded) == ["tx"]
    assert any(f"{TRANSACTION_TOPIC}: offset 0 is skipped" in it for it in caplog.messages)


def test_record_with_an_unknown_state_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    known = transaction_record(TransactionMetadata("tx", 7, 1), 2)
    value = TransactionLogValue(producer_id=8, transaction_status=99, transaction_partitions=None)
    unknown = CoordinatorRecord(known.key, value, 1)
    with caplog.at_level(logging.WARNING, "kproto.broker"):
        (loaded,) = load(records([known, unknown])).values()
    assert loaded.producer_id == 7
    assert f"{TRANSACTION_TOPIC}: offset 1 is skipped: it has the unknown state 99" in caplog.text
