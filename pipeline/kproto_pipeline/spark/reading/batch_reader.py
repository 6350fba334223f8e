"""The reader of a batch: on the driver its ranges, in each task the rows of one range.

Spark pickles the reader on the driver and unpickles it in every task, so it holds plain data alone.
In a task `fetch_ranges` fetches and `columns` turns each response into Arrow record batches.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kproto.stored.aborted import AbortedTransactions

from ...columns import arrow_batches, events_as_arrow, records_as_arrow
from ..client_pool import with_client
from ..planning.offset_reader import plan_batch
from ..planning.range_filter import ALL
from ..worker_imports import keep_archive_finders
from ..worker_sockets import WorkerSocketTuning
from .range_fetcher import fetch_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from ..options.read_options import ReadOptions
    from ..planning.offset_ranges import OffsetRange

__all__ = ["KprotoInputPartition", "KprotoReader", "rows_of"]


class KprotoInputPartition(InputPartition):
    """One Spark task: ranges of offsets, one after the other. Without any it is an empty read."""

    def __init__(self, *wanted: OffsetRange) -> None:
        super().__init__(wanted)


class KprotoReader(WorkerSocketTuning, DataSourceReader):
    """Plans the ranges of a batch read on the driver, and reads one range in each task."""

    def __init__(self, options: ReadOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self.range_filter = ALL

    def __repr__(self) -> str:
        return "KprotoReader()"

    def partitions(self) -> list[InputPartition]:
        """One input partition a range; offsets are those of now."""
        ranges = with_client(
            self._options.client,
            lambda client: plan_batch(client, self._options, self.range_filter),
        )
        return [KprotoInputPartition(wanted) for wanted in ranges] or [KprotoInputPartition()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task, as Arrow record batches: one or more for a fetch response."""
        return rows_of(self._options, self._schema, partition.value)


def rows_of(
    options: ReadOptions, schema: pa.Schema, ranges: Iterable[OffsetRange]
) -> Iterator[pa.RecordBatch]:
    """The rows of a task's ranges with the columns of `schema`.

    Raises:
        DataLossError: the log no longer holds the range and the options ask to fail then.
        KprotoError: whatever the client raises.
    """
    keep_archive_finders()
    as_arrow: Callable[..., pa.RecordBatch] = records_as_arrow
    if options.cloud_events:
        as_arrow = partial(events_as_arrow, all_headers=options.include_headers)
    for wanted, fetched in fetch_ranges(options, ranges):
        convert = partial(as_arrow, topic=wanted.topic, partition=wanted.partition, schema=schema)
        yield from arrow_batches(
            fetched.records,
            convert,
            start=fetched.offset,
            end=wanted.end,
            aborted=AbortedTransactions(fetched.aborted) if options.read_committed else None,
        )
