"""The Spark data source `kproto`: a topic as a DataFrame, column by column.

Owns what Spark asks of a Python data source: schema, plan and read. Offsets are resolved once,
when the read is planned, so that a batch is the same however often one of its tasks runs; one
input partition is one range of one topic partition. Decoding is `columnar`'s, fetching
`fetching`'s.

    register(spark)
    flights = (
        spark.read.format("kproto")
        .option("kafka.bootstrap.servers", "localhost:9092")
        .option("subscribe", "flights")
        .load()
    )
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from .arrow_columns import good_batches
from .columnar import RECORD_FIELDS, decode_records, record_batch
from .event_columns import EVENT_FIELDS, event_batch
from .fetching import open_client, read_ahead
from .offsets import OffsetRange, TopicPartition, concrete_offsets, plan_ranges, split_ranges
from .options import OptionError, ReadOptions, parse_read_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from kproto.client import Client

__all__ = ["KprotoDataSource", "KprotoReader", "RangePartition", "register"]

_HEADERS: Final = "headers"


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("kproto")` known to a session.

    On a local master without PYSPARK_PYTHON, workers get this process's interpreter. Spark would
    take the first `python3` on the PATH, which need not have this package.
    """
    if "PYSPARK_PYTHON" not in os.environ:
        context = getattr(spark, "_sc", None)  # a Spark Connect session has none
        if context is not None and context.master.startswith("local"):
            context.pythonExec = sys.executable
    spark.dataSource.register(KprotoDataSource)


class KprotoDataSource(DataSource):
    """Kafka topics; options as in `kproto_pipeline.options`.

    The columns are those of Spark's JVM connector (`headers` with `includeHeaders`), or with
    `cloudEvents` those of `EVENT_FIELDS`. A schema given to `spark.read.schema(…)` may name any
    of them in any order; the others are then not decoded at all.
    """

    @classmethod
    def name(cls) -> str:
        return "kproto"

    def schema(self) -> StructType:
        fields = _fields(parse_read_options(self.options))
        return from_arrow_schema(pa.schema(list(fields.items())))

    def reader(self, schema: StructType) -> KprotoReader:
        options = parse_read_options(self.options)
        return KprotoReader(options, _checked_schema(schema, _fields(options)))

    def __repr__(self) -> str:
        # Options may hold secrets, and Spark prints data sources in plans and errors.
        return "KprotoDataSource()"


def _fields(options: ReadOptions) -> dict[str, pa.DataType]:
    """The columns that a read with these options has."""
    if options.cloud_events:
        return dict(EVENT_FIELDS)
    fields = dict(RECORD_FIELDS)
    if not options.include_headers:
        del fields[_HEADERS]
    return fields


def _checked_schema(schema: StructType, known: Mapping[str, pa.DataType]) -> pa.Schema:
    """The schema that Spark asks for, in Arrow's terms.

    Raises:
        OptionError: it names a column that is not there, or with another type.
    """
    wanted = to_arrow_schema(schema, timezone="UTC")
    for field in wanted:
        if field.name not in known:
            raise OptionError(
                f"the schema's column {field.name!r} is not one of {', '.join(known)}"
            )
        if not field.type.equals(known[field.name]):
            raise OptionError(
                f"the schema's column {field.name!r} is {field.type}; it must be "
                f"{known[field.name]}"
            )
    return wanted


class RangePartition(InputPartition):
    """One Spark task: one range of offsets. None stands for an empty read."""

    def __init__(self, wanted: OffsetRange | None) -> None:
        super().__init__(wanted)


class KprotoReader(DataSourceReader):
    """Plans the ranges of a batch read on the driver, and reads one range in each task."""

    def __init__(self, options: ReadOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema

    def __repr__(self) -> str:
        return "KprotoReader()"

    def partitions(self) -> list[InputPartition]:
        """One input partition a range; offsets are those of now."""
        ranges = asyncio.run(_planned_ranges(self._options))
        return [RangePartition(wanted) for wanted in ranges] or [RangePartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one range, one Arrow record batch for each chunk of a fetch response."""
        wanted: OffsetRange | None = partition.value
        if wanted is None:
            return
        to_batch: Callable[..., pa.RecordBatch] = record_batch
        if self._options.cloud_events:
            to_batch = partial(event_batch, all_headers=self._options.include_headers)
        names = self._schema.names
        for records in read_ahead(self._options, wanted):
            for columns in decode_records(records, start=wanted.start, end=wanted.end):
                convert = partial(
                    to_batch, topic=wanted.topic, partition=wanted.partition, names=names
                )
                for batch in good_batches(columns, convert):
                    # The same columns under the fields that Spark asked for, nullability included.
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)


async def _planned_ranges(options: ReadOptions) -> list[OffsetRange]:
    """The ranges to read: what the options ask for, made concrete by what the brokers have."""
    async with open_client(options) as client:
        parts = await _selected_partitions(client, options)
        earliest = await client.list_offsets(dict.fromkeys(parts, "earliest"))
        latest = await client.list_offsets(dict.fromkeys(parts, "latest"))
    starts = concrete_offsets("startingOffsets", options.starting, parts, earliest, latest)
    ends = concrete_offsets("endingOffsets", options.ending, parts, earliest, latest)
    ranges = plan_ranges(
        starts, ends, earliest, latest, fail_on_data_loss=options.fail_on_data_loss
    )
    return split_ranges(
        ranges,
        min_partitions=options.min_partitions,
        max_records=options.max_records_per_partition,
    )


async def _selected_partitions(client: Client, options: ReadOptions) -> list[TopicPartition]:
    """The partitions that `subscribe`, `assign` or `subscribePattern` mean.

    Raises:
        OptionError: a partition that its topic does not have.
        BrokerResponseError: a topic that the cluster does not have.
    """
    selection = options.selection
    if selection.pattern is not None:
        # Java's Matcher.matches(): the whole name.
        matching = re.compile(selection.pattern)
        found = [info for info in await client.refresh() if matching.fullmatch(info.name)]
    else:
        named = selection.topics or {topic: None for topic, _ in selection.partitions}
        found = [await client.topic(topic) for topic in named]
    existing = [(info.name, partition) for info in found for partition in sorted(info.partitions)]
    for topic, partition in selection.partitions:
        if (topic, partition) not in existing:
            raise OptionError(f"option assign: topic {topic} has no partition {partition}")
    return list(selection.partitions) or existing
