"""Writes events to a topic with Spark, reads them again, and compares the events."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kproto.client import Client, NewTopic

from .events import SCHEMA, random_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["MODES", "RoundTripResult", "round_trip", "write_events"]

MODES: Final = ("binary", "structured")
PARTITIONS: Final = 4
_ROWS_OF_A_FILE: Final = 50_000


@dataclass(frozen=True)
class RoundTripResult:
    """The result of one mode, as numbers of events; `differing` includes events that were not read.

    `invalid` counts the rows that the source returned without an event. `examples` describe up to
    three events that differ, and up to three rows without an event.
    """

    mode: str
    sent: int
    read: int
    differing: int
    invalid: int
    examples: list[str]

    @property
    def is_right(self) -> bool:
        """Returns True if every event was read exactly once and unchanged."""
        return self.sent == self.read and not self.differing and not self.invalid


def write_events(
    folder: Path, rows: int, seed: int, progress: Callable[[int], None] = lambda _: None
) -> None:
    """Writes random events as Parquet files."""
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    for first in range(0, rows, _ROWS_OF_A_FILE):
        count = min(_ROWS_OF_A_FILE, rows - first)
        pq.write_table(random_events(first, count, seed), folder / f"{first:09}.parquet")
        progress(first + count)


def round_trip(spark: SparkSession, bootstrap: str, folder: Path, mode: str) -> RoundTripResult:
    """Writes the events in `folder` to a new topic in `mode`, reads the topic, and compares."""
    topic = f"round-trip-{mode}-{os.getpid()}-{time.time_ns()}"

    async def make() -> None:
        async with Client(bootstrap) as client:
            await client.create_topics(NewTopic(topic, partitions=PARTITIONS))

    async def remove() -> None:
        async with Client(bootstrap) as client:
            await client.delete_topics(topic)

    events = spark.read.parquet(str(folder))
    asyncio.run(make())
    try:
        (
            events.write.format("kproto")
            .mode("append")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", topic)
            .option("cloudEvents", mode)
            .save()
        )
        found = (
            spark.read.format("kproto")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .option("cloudEvents", "true")
            .load()
        )
        return _compared(events, found, mode)
    finally:
        asyncio.run(remove())


def _compared(events: DataFrame, found: DataFrame, mode: str) -> RoundTripResult:
    from pyspark.sql import functions as sf

    both = _comparable(events, "sent").join(_comparable(found, "read"), "number", "full_outer")
    differs = ~sf.col("sent").eqNullSafe(sf.col("read"))
    row = both.agg(
        sf.count("sent").alias("sent"),
        sf.count("read").alias("read"),
        sf.count_if(differs).alias("differing"),
    ).first()
    assert row is not None
    invalid = found.where("error is not null")
    examples = [str(each) for each in both.where(differs).limit(3).collect()]
    examples += [f"{each['error']}: {each['value']!r}" for each in invalid.limit(3).collect()]
    return RoundTripResult(
        mode, row["sent"], row["read"], row["differing"], invalid.count(), examples
    )


def _comparable(frame: DataFrame, name: str) -> DataFrame:
    """Returns each event's number, and the event as a column; maps become comparable arrays."""
    from pyspark.sql import functions as sf

    columns: list[Any] = [sf.col(each) for each in SCHEMA.names if each != "extensions"]
    entries = sf.sort_array(sf.map_entries("extensions")).alias("extensions")
    number = sf.substring_index("id", "-", 1).cast("long").alias("number")
    return frame.select(number, sf.struct(*columns, entries).alias(name))
