"""Tests which records a read_committed consumer sees (KIP-98), given transactions and markers.

The tests need no broker.
"""

from __future__ import annotations

from kproto.client.fetch.completed_fetch import aborted_transactions
from kproto.messages.fetch_response import AbortedTransaction, PartitionData
from kproto.records import RecordBatch
from kproto.stored.aborted_transactions import AbortedTransactions
from tests.unit.client.scripted_log import ABORT, COMMIT, batch, marker


def of(base_offset: int, producer_id: int, transactional: bool = True) -> RecordBatch:
    data = batch(
        base_offset,
        [b"x"],
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=transactional,
    )
    return RecordBatch(data)


def aborted(*entries: tuple[int, int]) -> AbortedTransactions:
    listed = [AbortedTransaction(producer_id=producer, first_offset=at) for producer, at in entries]
    return AbortedTransactions(aborted_transactions(PartitionData(aborted_transactions=listed)))


def test_an_aborted_transaction_is_hidden_until_its_marker() -> None:
    seen = aborted((4, 2))
    assert not seen.is_aborted(of(1, 4)), "an earlier transaction, which was committed"
    assert seen.is_aborted(of(2, 4))
    assert not seen.is_aborted(of(3, 5))
    assert seen.is_aborted(of(4, 4))
    assert not seen.is_aborted(of(4, 4, transactional=False))
    seen.on_control_batch(RecordBatch(marker(5, ABORT, 4)))
    assert not seen.is_aborted(of(6, 4))


def test_a_commit_marker_ends_no_aborted_transaction() -> None:
    seen = aborted((4, 0))
    seen.on_control_batch(RecordBatch(marker(1, COMMIT, 5)))
    assert seen.is_aborted(of(2, 4))


def test_two_aborted_transactions_of_one_producer_are_hidden() -> None:
    seen = aborted((4, 6), (4, 0))
    assert seen.is_aborted(of(0, 4))
    seen.on_control_batch(RecordBatch(marker(3, ABORT, 4)))
    assert not seen.is_aborted(of(4, 4))
    assert seen.is_aborted(of(6, 4))
    seen.on_control_batch(RecordBatch(marker(7, ABORT, 4)))
    assert not seen.is_aborted(of(8, 4))


def test_a_marker_without_records_is_skipped() -> None:
    """Compaction can remove all records of a transaction, but keep its marker."""
    seen = aborted((4, 0))
    seen.on_control_batch(RecordBatch(marker(5, ABORT, 4)))
    assert not seen.is_aborted(of(6, 4))


def test_without_a_list_no_record_is_hidden() -> None:
    nothing = aborted_transactions(PartitionData(aborted_transactions=None))
    assert not AbortedTransactions(nothing).is_aborted(of(0, 4))
