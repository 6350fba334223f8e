"""The reader of a batch: on the driver its ranges, in each task the rows of one range.

Owns what Spark calls on either side. It is pickled on the driver and unpickled in every task, so it
holds plain data alone. In a task the way leads one way: `read_ahead` fetches, `columns` makes Arrow
of what came, Spark takes it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kproto.stored.aborted_transactions import AbortedTransactions

from ...columns import arrow_batches, events_as_arrow, records_as_arrow
from ..clients import with_client
from ..planning.asking import ranges_to_read
from ..planning.narrowing import ALL
from ..worker_imports import keep_archives
from ..worker_sockets import ForWorkers
from .read_ahead import read_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from ..options.read_options import ReadOptions
    from ..planning.ranges import OffsetRange

__all__ = ["KprotoReader", "RangePartition", "rows_of"]


class RangePartition(InputPartition):
    """One Spark task: ranges of offsets, one after the other. Without any it is an empty read."""

    def __init__(self, *wanted: OffsetRange) -> None:
        super().__init__(wanted)


class KprotoReader(ForWorkers, DataSourceReader):
    """Plans the ranges of a batch read on the driver, and reads one range in each task."""

    def __init__(self, options: ReadOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self.narrowing = ALL

    def __repr__(self) -> str:
        return "KprotoReader()"

    def partitions(self) -> list[InputPartition]:
        """One input partition a range; offsets are those of now."""
        ranges = with_client(
            self._options.client,
            lambda client: ranges_to_read(client, self._options, self.narrowing),
        )
        return [RangePartition(wanted) for wanted in ranges] or [RangePartition()]

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
    keep_archives()
    as_arrow: Callable[..., pa.RecordBatch] = records_as_arrow
    if options.cloud_events:
        as_arrow = partial(events_as_arrow, all_headers=options.include_headers)
    for wanted, fetched in read_ahead(options, ranges):
        convert = partial(as_arrow, topic=wanted.topic, partition=wanted.partition, schema=schema)
        yield from arrow_batches(
            fetched.records,
            convert,
            start=fetched.offset,
            end=wanted.end,
            aborted=AbortedTransactions(fetched.aborted) if options.read_committed else None,
        )
