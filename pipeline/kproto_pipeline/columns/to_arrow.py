"""Decodes a fetch response into Arrow record batches.

Usually a response becomes one record batch; see `column_chunks` for the exceptions. The caller
chooses the columns: those of `arrow_records` or of `arrow_events`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .batch_sections import MAX_CHUNK_BYTES
from .chunks import column_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from kproto.stored.aborted_transactions import AbortedTransactions

    from .record_columns import RecordColumns

__all__ = ["arrow_batches"]


def arrow_batches(
    fetched: bytes,
    convert: Callable[[RecordColumns], pa.RecordBatch],
    *,
    start: int = 0,
    end: int | None = None,
    chunk_bytes: int = MAX_CHUNK_BYTES,
    aborted: AbortedTransactions | None = None,
    keep_unreadable: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yields Arrow record batches with a row for each data record in `fetched`.

    `fetched` has the batches of one partition from a fetch response. Leaves out records before
    `start`, records from `end` on, and with `aborted` the records of aborted transactions.
    `convert` converts columns to Arrow; it is `records_as_arrow` or `events_as_arrow` with its
    other arguments bound. A record batch has up to `chunk_bytes` of records, or more if one Kafka
    batch has more. If a Kafka batch is corrupt, yields the records before it, then raises. With
    `keep_unreadable` an unreadable record is a row.

    Raises:
        CorruptBatchError: as in `column_chunks`.
        MissingCodecError: a batch is compressed with a codec that is not installed.
    """
    for columns in column_chunks(
        fetched,
        start=start,
        end=end,
        chunk_bytes=chunk_bytes,
        aborted=aborted,
        keep_unreadable=keep_unreadable,
    ):
        yield convert(columns)
