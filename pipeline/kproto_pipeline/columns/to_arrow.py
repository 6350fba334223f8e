"""A fetch response as Arrow record batches: the way into this room.

Owns the order alone: bytes, chunks of columns, Arrow. Usually a response becomes one record batch;
more where `column_chunks` says so. What the columns are, the caller chooses: those of
`arrow_records` or of `arrow_events`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.wire.errors import CorruptBatchError

from .batch_sections import MAX_CHUNK_BYTES
from .chunks import column_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from kproto.stored.aborted import AbortedTransactions

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
) -> Iterator[pa.RecordBatch]:
    """The data records of a fetch response with `start <= offset < end`, a row a record.

    Those of `aborted` transactions are left out, where it is given.

    `convert` is `records_as_arrow` or `events_as_arrow` with all but the columns filled in. A
    record batch is of up to `chunk_bytes` of records. The good Kafka batches in front of a broken
    one are given out before that raises.

    Raises:
        CorruptBatchError: as `column_chunks`, and where a header key is not UTF-8.
        MissingCodecError: a batch is compressed with a codec that is not installed.
    """
    for columns in column_chunks(
        fetched, start=start, end=end, chunk_bytes=chunk_bytes, aborted=aborted
    ):
        yield from _converted(columns, convert)


def _converted(
    columns: RecordColumns, convert: Callable[[RecordColumns], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The columns in Arrow; where that finds a broken header key, the batches before its own."""
    try:
        made = convert(columns)
    except CorruptBatchError as error:
        good = columns.before(error)
        if len(good):
            yield convert(good)
        raise
    yield made
