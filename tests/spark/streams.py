"""Runs streaming queries for tests until they have read all records, and reads their output."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from kproto.client import Client, ProducerRecord
from tests.spark.conftest import Topics
from tests.spark.programs.on_a_cluster import MOST_STARTS, PLANNER_TOO_SLOW

__all__ = ["options", "read_all", "rows_of", "send", "start"]

#: The statuses of a query whose planning process has not connected yet.
_BEFORE_PLANNING: Final = ("Initializing StreamExecution", "Initializing sources")


def options(topics: Topics, topic: str, **others: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": topics.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        **others,
    }


def send(topics: Topics, topic: str, values: Iterable[int], partition: int = 0) -> None:
    async def run() -> None:
        async with Client(topics.bootstrap) as client, client.producer() as producer:
            await producer.send_many(
                topic, [ProducerRecord(b"%d" % n, partition=partition) for n in values]
            )

    asyncio.run(run())


def start(spark: Any, options: dict[str, str], folder: Path, **trigger: Any) -> Any:
    """Starts a query from a topic to Parquet; `folder` has the output and the checkpoint.

    Starts the query again if the planning process of Spark was too slow; see `planned`.
    """
    return planned(lambda: _start(spark, options, folder, trigger))


def planned(start: Callable[[], Any]) -> Any:
    """Starts a query by calling `start`; returns the query once its planning process is ready.

    On a busy machine the planning process can be too slow to start. The query then fails without
    having read anything, and the function calls `start` again.
    """
    for _ in range(MOST_STARTS - 1):
        query = start()
        while query.isActive and query.status["message"] in _BEFORE_PLANNING:
            time.sleep(0.05)
        failure = query.exception()
        if failure is None or PLANNER_TOO_SLOW not in str(failure):
            return query
    return start()


def _start(spark: Any, options: dict[str, str], folder: Path, trigger: dict[str, Any]) -> Any:
    return (
        spark.readStream.format("kproto")
        .options(**options)
        .load()
        .writeStream.format("parquet")
        .option("path", str(folder / "rows"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(**trigger)
        .start()
    )


def read_all(spark: Any, options: dict[str, str], folder: Path) -> list[dict[str, Any]]:
    """Runs a query over all available records; returns its progress, one entry per batch."""
    import json

    query = start(spark, options, folder, availableNow=True)
    query.awaitTermination(120)
    assert not query.isActive
    return [json.loads(each.json) for each in query.recentProgress]


def rows_of(spark: Any, folder: Path) -> list[Any]:
    """Returns the rows written so far, ordered by partition and offset."""
    frame = spark.read.parquet(str(folder / "rows"))
    found: list[Any] = frame.orderBy("topic", "partition", "offset").collect()
    return found
