"""Reads the offset ranges of one input partition in a task, as Arrow record batches.

Spark pickles a reader on the driver and unpickles it in every task, so a reader has only plain
data. `range_fetcher` fetches; `columns` converts each response to Arrow record batches.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from kproto.wire.errors import CorruptBatchError

from ..worker_imports import drop_archive_finders, freeze_imported_once
from ..worker_sockets import WorkerSocketTuning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from ..options.option_table import ReadOptions
    from ..planning.offset_ranges import OffsetRange

__all__ = ["KprotoInputPartition", "PartitionReader"]


#: Spark's limit for the rows of an Arrow batch that Python returns; 0 and -1 mean no limit.
_OUTPUT_LIMIT: Final = "spark.sql.execution.arrow.maxRecordsPerOutputBatch"


class KprotoInputPartition(InputPartition):
    """The offset ranges of one task, in order; without a range, the task reads nothing."""

    def __init__(self, *ranges: OffsetRange) -> None:
        super().__init__(ranges)


class PartitionReader(WorkerSocketTuning):
    """The common base of batch and stream readers, which reads in the tasks."""

    def __init__(self, options: ReadOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema

    def __repr__(self) -> str:
        # Options may be secrets, and Spark prints readers in errors.
        return f"{type(self).__name__}()"

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of an input partition; a fetch response usually becomes one batch.

        Raises:
            DataLossError: with `failOnDataLoss`, the log no longer has the range.
            CorruptBatchError: a record cannot be decoded, unless `mode` is PERMISSIVE.
            KprotoError: any error of the client.
        """
        drop_archive_finders()
        limit = _max_rows_per_batch()
        if limit is None:
            yield from self._batches(partition)
            return
        for batch in self._batches(partition):
            for first in range(0, batch.num_rows, limit):
                yield batch.slice(first, limit)

    def _batches(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of an input partition in batches of any size; see `read`."""
        # Imported here, because the process that plans a stream reads no records.
        from kproto.stored.aborted_transactions import AbortedTransactions

        from ...columns import arrow_batches, records_as_arrow
        from .range_fetcher import fetch_ranges

        options = self._options
        as_arrow: Callable[..., pa.RecordBatch] = records_as_arrow
        if options.cloud_events:
            # Imported here, because a reader of records needs neither them nor pyarrow.compute.
            from kproto_cloudevents import Profile

            from ...columns import events_as_arrow

            as_arrow = partial(
                events_as_arrow,
                all_headers=options.include_headers,
                profile=Profile(
                    json_events=options.events_without_headers,
                    event_grid_dataschema=options.event_grid_dataschema,
                ),
            )
        freeze_imported_once()
        if options.corrupt_column is not None:
            as_arrow = partial(as_arrow, corrupt_column=options.corrupt_column)
        for offset_range, fetched in fetch_ranges(options, partition.value):
            convert = partial(
                as_arrow,
                topic=offset_range.topic,
                partition=offset_range.partition,
                schema=self._schema,
            )
            batches = arrow_batches(
                fetched.records,
                convert,
                start=fetched.offset,
                end=offset_range.end,
                aborted=AbortedTransactions(fetched.aborted) if options.read_committed else None,
                keep_unreadable=options.corrupt_column is not None,
            )
            try:
                yield from batches
            except CorruptBatchError as error:
                error.topic, error.partition = offset_range.topic, offset_range.partition
                hint = "with mode=PERMISSIVE an unreadable record is a row with its bytes"
                error.args = (f"{error.topic}[{error.partition}]: {error}; {hint}",)
                raise


def _max_rows_per_batch() -> int | None:
    """Returns the most rows that Spark accepts in a batch of this task; None if it has no limit.

    Spark divides a larger batch. PySpark 4.2.0 then returns some rows twice, so the reader itself
    divides the batch. Spark applies the limit only if the task has the local property.
    """
    context = TaskContext.get()
    text = None if context is None else context.getLocalProperty(_OUTPUT_LIMIT)
    limit = int(text) if text else 0
    return limit if limit > 0 else None
