"""Tests that the columns skip batches of aborted transactions (KIP-98)."""

from __future__ import annotations

from kproto_pipeline.columns import arrow_batches, records_as_arrow

from kproto.stored.aborted_transactions import AbortedTransactions
from tests.unit.client.scripted_log import ABORT, COMMIT, batch, marker


def transactional(base_offset: int, producer_id: int) -> bytes:
    return batch(
        base_offset,
        [b"%d" % base_offset],
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=True,
    )


FETCHED = b"".join(
    (
        transactional(0, 1),
        transactional(1, 2),
        batch(2, [b"2"]),
        marker(3, ABORT, 1),
        transactional(4, 1),
        marker(5, COMMIT, 1),
        marker(6, COMMIT, 2),
    )
)


def values(aborted: AbortedTransactions | None, start: int = 0) -> list[bytes]:
    return [
        value
        for found in arrow_batches(
            FETCHED,
            lambda columns: records_as_arrow(columns, topic="t", partition=0),
            start=start,
            aborted=aborted,
        )
        for value in found.column("value").to_pylist()
    ]


def test_aborted_transactions_are_skipped() -> None:
    assert values(AbortedTransactions([(0, 1)])) == [b"1", b"2", b"4"]
    assert values(AbortedTransactions([])) == [b"0", b"1", b"2", b"4"]
    assert values(None) == [b"0", b"1", b"2", b"4"]


def test_control_batch_before_the_requested_offsets_counts() -> None:
    assert values(AbortedTransactions([(0, 1)]), start=4) == [b"4"]
