"""Plans a batch read on the driver: one input partition for each offset range.

`partition_reader` reads the ranges in the tasks.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ..client_pool import with_client
from ..planning.offset_reader import plan_batch
from ..planning.range_filter import ALL
from .partition_reader import KprotoInputPartition, PartitionReader

__all__ = ["KprotoReader"]


class KprotoReader(PartitionReader, DataSourceReader):
    """The reader of a batch: plans offset ranges on the driver, and reads them in the tasks."""

    #: The filters that Spark pushed down, as limits of offset ranges.
    range_filter = ALL

    def partitions(self) -> list[InputPartition]:
        """Returns one input partition per offset range; one empty partition without a range."""
        ranges = with_client(
            self._options.client,
            lambda client: plan_batch(client, self._options, self.range_filter),
        )
        return [KprotoInputPartition(offset_range) for offset_range in ranges] or [
            KprotoInputPartition()
        ]
