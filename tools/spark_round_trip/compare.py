"""Events to a topic and back, by Spark, and which of them are not what they were."""

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

__all__ = ["MODES", "Compared", "round_trip", "write_events"]

MODES: Final = ("binary", "structured")
PARTITIONS: Final = 4
_ROWS_OF_A_FILE: Final = 50_000


@dataclass(frozen=True)
class Compared:
    """What came of one mode: how many came back, and how many of them in another way."""

    mode: str
    sent: int
    read: int
    differing: int
    no_events: int
    examples: list[str]

    @property
    def is_right(self) -> bool:
        """Whether every event came back once, as it was."""
        return self.sent == self.read and not self.differing and not self.no_events


def write_events(
    folder: Path, rows: int, seed: int, progress: Callable[[int], None] = lambda _: None
) -> None:
    """Random events as Parquet files."""
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    for first in range(0, rows, _ROWS_OF_A_FILE):
        count = min(_ROWS_OF_A_FILE, rows - first)
        pq.write_table(random_events(first, count, seed), folder / f"{first:09}.parquet")
        progress(first + count)


def round_trip(spark: SparkSession, bootstrap: str, folder: Path, mode: str) -> Compared:
    """Write the events of `folder` to a new topic in that mode, read them, and compare."""
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


def _compared(events: DataFrame, found: DataFrame, mode: str) -> Compared:
    from pyspark.sql import functions as sf

    both = _comparable(events, "sent").join(_comparable(found, "read"), "number", "full_outer")
    differs = ~sf.col("sent").eqNullSafe(sf.col("read"))
    row = both.agg(
        sf.count("sent").alias("sent"),
        sf.count("read").alias("read"),
        sf.count_if(differs).alias("differing"),
    ).first()
    assert row is not None
    no_events = found.where("error is not null")
    examples = [str(each) for each in both.where(differs).limit(3).collect()]
    examples += [f"{each['error']}: {each['value']!r}" for each in no_events.limit(3).collect()]
    return Compared(mode, row["sent"], row["read"], row["differing"], no_events.count(), examples)


def _comparable(frame: DataFrame, name: str) -> DataFrame:
    """The number of each event, and all of it in one column; maps cannot be compared."""
    from pyspark.sql import functions as sf

    columns: list[Any] = [sf.col(each) for each in SCHEMA.names if each != "extensions"]
    entries = sf.sort_array(sf.map_entries("extensions")).alias("extensions")
    number = sf.substring_index("id", "-", 1).cast("long").alias("number")
    return frame.select(number, sf.struct(*columns, entries).alias(name))
